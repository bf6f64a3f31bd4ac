//! Requests by chance: sometimes almost right, sometimes noise.

use fastrand::Rng;

const METHODS: [&str; 8] = ["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "G\u{fffd}T"];
const PATHS: [&str; 14] = [
    "/livez",
    "/readyz",
    "/version",
    "/test/order",
    "/test/repeat",
    "/test/file",
    "/test/hang",
    "/test/list",
    "/test/runs/1",
    "/test/threads/%00/of/%ff",
    "/api/v1/threads",
    "/api/v1/threads/x/messages",
    "//",
    "*",
];
const HEADERS: [&str; 14] = [
    "Host: localhost",
    "Connection: close",
    "Connection: keep-alive",
    "Content-Type: application/json",
    "Content-Length: 12",
    "Content-Length: 99999",
    "Content-Length: -5",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
    "Upgrade: websocket",
    "Idempotency-Key: \u{1F9E1}",
    "Accept: text/event-stream",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "Origin: https://evil.example",
];
const BODIES: [&str; 9] = [
    "{\"count\": 1}",
    "{\"count\": 1, \"metadata\": {\"a\": [1, null, \"x\"]}}",
    "5\r\nhello\r\n0\r\n\r\n",
    "[[[[[[[[",
    "\u{0}\u{0}\u{0}",
    "{\"count\": 1e400}",
    "c\r\n{\"count\": 1}\r\n0\r\n\r\n",
    "\r\n\r\n",
    "",
];

pub fn request(random: &mut Rng) -> Vec<u8> {
    let mut bytes = match random.u8(..10) {
        0 => noise(random),
        1 => [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), noise(random)].concat(),
        _ => (0..random.usize(1..4)).flat_map(|_| plausible(random)).collect(),
    };
    // Now and then something is broken on the way.
    if random.bool() && !bytes.is_empty() {
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.insert(at, random.u8(..)),
                _ => bytes.truncate(at.max(1)),
            }
        }
    }
    bytes
}

fn noise(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(..3000);
    (0..length).map(|_| random.u8(..)).collect()
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

fn plausible(random: &mut Rng) -> Vec<u8> {
    let mut text = format!("{} {} HTTP/1.1\r\n", pick(random, &METHODS), pick(random, &PATHS));
    for _ in 0..random.usize(..6) {
        text.push_str(pick(random, &HEADERS));
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.push_str(pick(random, &BODIES));
    text.into_bytes()
}
