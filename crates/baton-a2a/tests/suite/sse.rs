//! The reader of server-sent events.

use baton_a2a::sse::{self, SseError, SseEvent, SseReader};
use proptest::prelude::*;

fn events(stream: &[u8], chunk: usize) -> Vec<SseEvent> {
    let mut reader = SseReader::new(1000);
    stream.chunks(chunk).flat_map(|chunk| reader.read(chunk).unwrap()).collect()
}

fn event(event: &str, data: &str) -> SseEvent {
    SseEvent { event: event.to_owned(), data: data.to_owned() }
}

#[test]
fn frames_are_read_whatever_the_chunks() {
    let mut stream = sse::frame(r#"{"a":1}"#).to_vec();
    stream.extend_from_slice(sse::KEEP_ALIVE);
    stream.extend_from_slice(b"id: 5\r\ndata: one\r\ndata:two\r\n\r\ndata: x\r\rretry: 3\n\n");
    stream.extend_from_slice(&sse::error_frame("{}"));
    stream.extend_from_slice(b"data: unfinished\n");
    let expected = [
        event("message", r#"{"a":1}"#),
        event("message", "one\ntwo"),
        event("message", "x"),
        event("error", "{}"),
    ];
    for chunk in 1..stream.len() {
        assert_eq!(events(&stream, chunk), expected, "in chunks of {chunk}");
    }
}

#[test]
fn an_event_that_is_too_large_is_refused() {
    let mut reader = SseReader::new(10);
    assert_eq!(reader.read(b"data: 1234\n\n").unwrap().len(), 1);
    assert_eq!(reader.read(b"data: 12345"), Err(SseError::TooLarge(10)));
    let mut reader = SseReader::new(10);
    let comments = b": comment\n".repeat(100);
    assert_eq!(reader.read(&comments), Ok(Vec::new()), "comments are not held");
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    assert_eq!(SseReader::new(10).read(b"data: \xff\n"), Err(SseError::NotUtf8));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_stream_makes_the_reader_panic(stream in prop::collection::vec(any::<u8>(), 0..200), chunk in 1_usize..20) {
        let mut reader = SseReader::new(64);
        for chunk in stream.chunks(chunk) {
            if reader.read(chunk).is_err() {
                break;
            }
        }
    }
}
