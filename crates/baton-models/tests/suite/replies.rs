//! Recorded bodies over a real connection: whole, cut at a sample of places, byte by byte.

use baton_core::Chunk;
use baton_core::media::sniff;

use crate::server::{End, Play, Server};
use crate::{ask, log, provider};

fn bodies(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut bodies: Vec<(String, Vec<u8>)> = paths
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    bodies.sort();
    bodies
}

fn play(name: &str, body: &[u8]) -> Play {
    match name {
        "ollama" => Play::status("200 OK", "content-type: application/x-ndjson\r\n", body),
        _ => Play::stream(body),
    }
}

/// The logs of all recorded bodies of a provider, each the same however its bytes arrive.
async fn logs(name: &str) -> String {
    let mut logs = String::new();
    for (title, body) in bodies(name) {
        let whole = play(name, &body);
        let halves = (0..body.len())
            .step_by((body.len() / 12).max(1))
            .map(|at| whole.clone().in_pieces([body[..at].to_vec(), body[at..].to_vec()].into_iter()));
        let bytes = whole.clone().in_pieces(body.chunks(1).map(<[u8]>::to_vec));
        let closed = whole.clone().ending(End::Close);
        let plays: Vec<Play> = [whole.clone(), bytes, closed].into_iter().chain(halves).collect();
        let count = plays.len();
        let server = Server::start(plays).await;
        let model = provider(name, &server);
        let expected = log(&ask(&*model).await);
        for _ in 1..count {
            assert_eq!(log(&ask(&*model).await), expected, "{title}");
        }
        logs.push_str(&format!("{title}\n{}\n\n", expected.replace('\n', "\n  ").replacen("", "  ", 1)));
    }
    logs
}

#[tokio::test]
async fn openai() {
    insta::assert_snapshot!(logs("openai").await);
}

#[tokio::test]
async fn anthropic() {
    insta::assert_snapshot!(logs("anthropic").await);
}

#[tokio::test]
async fn gemini() {
    insta::assert_snapshot!(logs("gemini").await);
}

#[tokio::test]
async fn ollama() {
    insta::assert_snapshot!(logs("ollama").await);
}

/// D8: images that models make arrive as files, in the form of gateways with the API of OpenAI and of Gemini.
#[tokio::test]
async fn d8_images_in_replies_are_files() {
    for (name, title) in [("openai", "image_openrouter"), ("gemini", "image")] {
        let (_, body) = bodies(name).into_iter().find(|(found, _)| found == title).unwrap();
        let server = Server::start([play(name, &body)]).await;
        let items = ask(&*provider(name, &server)).await;
        let files: Vec<_> = items
            .iter()
            .flatten()
            .filter_map(|chunk| match chunk {
                Chunk::File(file) => Some((file.media_type.as_deref(), sniff(&file.bytes))),
                _ => None,
            })
            .collect();
        assert_eq!(files, [(Some("image/png"), Some("image/png"))], "{name}");
    }
}
