//! Every recorded body, cut at every byte.

use baton_core::Chunk;
use baton_core::model::Finish;

use crate::answer::{Decode, ReplyReading};
use crate::fault::ModelFault;
use crate::frames::Framing;
use crate::tool_names::ToolNames;
use crate::{anthropic, gemini, ollama, openai};

type SplitOutcome = (Vec<Chunk>, Result<Finish, ModelFault>);

fn read(framing: Framing, decoder: impl Decode, pieces: &[&[u8]]) -> SplitOutcome {
    let mut reading = ReplyReading::new(framing, decoder);
    let mut ready = Vec::new();
    for piece in pieces {
        match reading.feed(piece, &mut ready) {
            Ok(None) => {}
            Ok(Some(finish)) => return (ready, Ok(finish)),
            Err(fault) => return (ready, Err(fault)),
        }
    }
    let finish = reading.end(&mut ready);
    (ready, finish)
}

/// Reads all recorded bodies of a provider whole, in two pieces for every place to cut, and byte by byte.
fn check<D: Decode>(provider: &str, framing: Framing, decoder: impl Fn() -> D) {
    let folder = format!("{}/tests/fixtures/{provider}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let whole = read(framing, decoder(), &[&bytes]);
        for at in 0..=bytes.len() {
            let halves = read(framing, decoder(), &[&bytes[..at], &bytes[at..]]);
            assert_eq!(halves, whole, "{} cut at {at}", path.display());
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(framing, decoder(), &single), whole, "{} byte by byte", path.display());
        never_done_early(&bytes, &path.display().to_string(), |part| read(framing, decoder(), &[part]));
        count += 1;
    }
    assert!(count > 0, "no recorded bodies of {provider}");
}

/// A body that stops anywhere is an error or complete; it is never taken for a shorter answer.
fn never_done_early(bytes: &[u8], name: &str, read: impl Fn(&[u8]) -> SplitOutcome) {
    let said =
        |(chunks, _): &SplitOutcome| chunks.iter().filter(|chunk| !matches!(chunk, Chunk::Tokens(_))).count();
    let whole = read(bytes);
    for at in 0..bytes.len() {
        let part = read(&bytes[..at]);
        if part.1.is_ok() {
            assert_eq!(said(&part), said(&whole), "{name} stopped at {at}");
        }
    }
}

#[test]
fn openai() {
    check("openai", Framing::Sse, || openai::OpenAiDecoder::new(ToolNames::default()));
}

#[test]
fn anthropic() {
    check("anthropic", Framing::Sse, || {
        anthropic::AnthropicDecoder::new(ToolNames::default(), "claude-sonnet-4-5")
    });
}

#[test]
fn gemini() {
    check("gemini", Framing::Sse, || gemini::GeminiDecoder::new(ToolNames::default(), "gemini-2.5-flash"));
}

#[test]
fn ollama() {
    check("ollama", Framing::Ndjson, || ollama::OllamaDecoder::new(ToolNames::default()));
}
