//! Requests that broke other servers.

const ORDER: &str = "POST /test/order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const CLOSE: &str = "Host: localhost\r\nConnection: close\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn order(body: &[u8]) -> Vec<u8> {
    let head = format!("{ORDER}Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\n{CLOSE}").into_bytes()
}

fn chunked(chunks: &str) -> Vec<u8> {
    format!("{ORDER}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").into_bytes()
}

fn with_header(header: &[u8]) -> Vec<u8> {
    [b"GET /version HTTP/1.1\r\n", header, b"\r\n", CLOSE.as_bytes()].concat()
}

fn after_preface(bytes: &[u8]) -> Vec<u8> {
    [PREFACE, bytes].concat()
}

/// A frame of HTTP/2 whose header may lie about its length.
fn frame(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// With names for those who have to look into what went wrong.
pub fn requests() -> Vec<(&'static str, Vec<u8>)> {
    [lines(), headers(), bodies(), paths(), second_version()].concat()
}

fn lines() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", Vec::new()),
        ("a line break", b"\r\n\r\n".to_vec()),
        ("zeros", vec![0; 4096]),
        ("high bytes", vec![0xff; 4096]),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        ("no version", b"GET /livez\r\n\r\n".to_vec()),
        ("version 0.9", b"GET /livez HTTP/0.9\r\n\r\n".to_vec()),
        ("version 1.0", b"GET /livez HTTP/1.0\r\n\r\n".to_vec()),
        ("version 9", b"GET /livez HTTP/9.9\r\nHost: x\r\n\r\n".to_vec()),
        ("no method", b" /livez HTTP/1.1\r\n\r\n".to_vec()),
        ("a long method", [vec![b'G'; 70_000], b" / HTTP/1.1\r\n\r\n".to_vec()].concat()),
        ("NUL in the line", b"GET /li\0vez HTTP/1.1\r\n\r\n".to_vec()),
        ("only line feeds", b"GET /livez HTTP/1.1\nHost: localhost\n\n".to_vec()),
        ("a proxy request", b"GET http://evil.example/livez HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("CONNECT", b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n".to_vec()),
        ("CONNECT to nowhere", b"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("OPTIONS *", format!("OPTIONS * HTTP/1.1\r\n{CLOSE}").into_bytes()),
        ("an endless line", vec![b'A'; 300_000]),
    ]
}

fn headers() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a huge header", with_header(&[b"x: ".to_vec(), vec![b'y'; 300_000]].concat())),
        ("a huge name", with_header(&[vec![b'y'; 300_000], b": x".to_vec()].concat())),
        ("many headers", with_header("a: b\r\n".repeat(5000).trim_end().as_bytes())),
        ("bytes that are no text", with_header(b"x: \xff\xfe")),
        ("NUL in a header", with_header(b"x: a\0b")),
        ("a lonely carriage return", with_header(b"x: a\rb")),
        ("a folded line", with_header(b"x: a\r\n b")),
        ("a space before the colon", with_header(b"x : a")),
        ("no colon", with_header(b"x")),
        ("an empty name", with_header(b": a")),
        ("two hosts", with_header(b"Host: evil.example")),
        (
            "a traceparent that lies",
            with_header(b"traceparent: 00-00000000000000000000000000000000-0000000000000000-ff"),
        ),
        ("a traceparent of letters", with_header(&[b"traceparent: ".to_vec(), vec![b'z'; 5000]].concat())),
        ("credentials of bytes", with_header(b"Authorization: Bearer \xff\xff\xff")),
        (
            "a long credential",
            with_header(&[b"Authorization: Bearer ".to_vec(), vec![b'x'; 30_000]].concat()),
        ),
        ("an upgrade to nothing", with_header(b"Connection: upgrade\r\nUpgrade: nothing")),
        (
            "an upgrade to h2c",
            with_header(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"),
        ),
        (
            "half a websocket",
            with_header(b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"),
        ),
        ("an expectation", with_header(b"Expect: miracles")),
        ("ranges", with_header(format!("Range: bytes={}", "0-0,".repeat(5000)).as_bytes())),
        ("an event of the future", with_header(b"Last-Event-ID: 99999999999999999999999999")),
    ]
}

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str| open.repeat(100_000);
    let length =
        |value: &str| format!("{ORDER}Connection: close\r\nContent-Length: {value}\r\n\r\n{{}}").into_bytes();
    vec![
        ("a negative length", length("-1")),
        ("a length that overflows", length("99999999999999999999999")),
        ("the longest length", length("18446744073709551615")),
        ("a length in hexadecimal", length("0x2")),
        ("a length with a sign", length("+2")),
        ("two lengths", length("2\r\nContent-Length: 3")),
        ("a list of lengths", length("2, 2")),
        ("a length and chunks", length("2\r\nTransfer-Encoding: chunked")),
        ("less than promised", length("500")),
        ("more than promised", length("1")),
        ("chunks twice", chunked("0\r\n\r\n0\r\n\r\n")),
        ("a chunk that is no number", chunked("zz\r\n{}\r\n0\r\n\r\n")),
        ("a huge chunk", chunked("ffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
        ("a chunk that overflows", chunked("fffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
        ("a negative chunk", chunked("-2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk without an end", chunked("2\r\n{}")),
        ("a chunk that is longer than it says", chunked("1\r\n{}\r\n0\r\n\r\n")),
        (
            "a chunk with a long extension",
            chunked(&format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(100_000))),
        ),
        ("endless trailers", chunked(&format!("2\r\n{{}}\r\n0\r\n{}\r\n", "a: b\r\n".repeat(5000)))),
        ("tiny chunks", chunked(&"1\r\n \r\n".repeat(20_000))),
        (
            "an encoding nobody has",
            chunked("").iter().map(|byte| if *byte == b'k' { b'q' } else { *byte }).collect(),
        ),
        ("deep lists", order(deep("[").as_bytes())),
        ("deep objects", order(deep("{\"a\":").as_bytes())),
        ("deep metadata", order(format!("{{\"count\":1,\"metadata\":{}", deep("[")).as_bytes())),
        ("bytes that are no text", order(b"{\"count\": 1, \"note\": \"\xff\xfe\xfd\"}")),
        ("half a surrogate", order(br#"{"count": 1, "note": "\ud800"}"#)),
        ("NUL in JSON", order(b"{\"count\": 1, \"note\": \"\0\"}")),
        ("a written NUL", order(br#"{"count": 1, "note": "\u0000"}"#)),
        ("a huge number", order(format!("{{\"count\": {}}}", "9".repeat(100_000)).as_bytes())),
        ("many keys", order(format!("{{{}}}", "\"a\":1,".repeat(50_000)).as_bytes())),
        ("a long key", order(format!("{{\"{}\": 1}}", "k".repeat(500_000)).as_bytes())),
        (
            "not JSON",
            order(
                b"<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY y SYSTEM \"file:///etc/passwd\">]><x>&y;</x>",
            ),
        ),
        ("a slow body that is cut", [ORDER.as_bytes(), b"Content-Length: 100\r\n\r\n{\"count\""].concat()),
        ("pipelined", [order(b"{}"), get("/livez"), get("/nowhere")].concat()),
        ("many at once", get("/livez").repeat(200)),
        ("keep-alive to the end", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200).into_bytes()),
        ("smuggled", chunked("0\r\n\r\nGET /test/panic HTTP/1.1\r\nHost: localhost\r\nX: ")),
    ]
}

fn paths() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("parents", get("/../../../etc/passwd")),
        ("encoded parents", get("/test/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd")),
        ("twice encoded", get("/test/runs/%252e%252e%252f")),
        ("overlong slashes", get("/test/runs/%c0%af%c0%af")),
        ("an encoded NUL", get("/test/runs/%00")),
        ("bytes that are no text", get("/test/runs/%ff%fe")),
        (
            "raw bytes",
            b"GET /test/runs/\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        ),
        ("half an encoding", get("/test/runs/%2")),
        ("an encoding of nothing", get("/test/runs/%zz")),
        ("slashes", get(&"/".repeat(5000))),
        ("a backslash", get("\\livez")),
        ("a fragment", get("/livez#x")),
        ("a line break in the query", get("/test/list?limit=%0d%0aSet-Cookie:%20x=y")),
        ("a query that is no text", get("/test/list?%ff=%fe")),
        ("a query of nothing", get("/test/list?&&&===&")),
        ("many parameters", get(&format!("/test/list?{}", "a=1&".repeat(2000)))),
        ("a long URL", get(&format!("/{}", "x".repeat(9000)))),
        ("a very long URL", get(&format!("/{}", "x".repeat(70_000)))),
        ("a template", get("/test/threads/{thread_id}/of/%7B%7B7*7%7D%7D")),
        ("SQL", get("/test/list?cursor='%20OR%201=1;--")),
    ]
}

fn second_version() -> Vec<(&'static str, Vec<u8>)> {
    let settings = frame(0, 4, 0, 0, b"");
    let headers = |payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap();
        after_preface(&[settings.clone(), frame(length, 1, 5, 1, payload)].concat())
    };
    vec![
        ("half a preface", PREFACE[..12].to_vec()),
        ("only a preface", PREFACE.to_vec()),
        ("a preface and noise", after_preface(&[0x5a; 3000])),
        ("a preface and HTTP/1", after_preface(&get("/livez"))),
        ("a frame that is too long", after_preface(&frame(0x00ff_ffff, 0, 0, 1, b"x"))),
        ("data for nobody", after_preface(&[settings.clone(), frame(1, 0, 1, 77, b"x")].concat())),
        ("headers that are no HPACK", headers(&[0xff; 64])),
        ("an index that does not exist", headers(&[0xff, 0xff, 0xff, 0xff, 0x0f])),
        ("a table that is too large", headers(&[0x3f, 0xff, 0xff, 0xff, 0xff, 0x0f])),
        ("headers without an end", after_preface(&[settings.clone(), frame(1, 1, 0, 1, &[0x82])].concat())),
        (
            "endless continuations",
            after_preface(
                &[settings.clone(), frame(1, 1, 0, 1, &[0x82]), frame(1, 9, 0, 1, &[0x84]).repeat(5000)]
                    .concat(),
            ),
        ),
        (
            "streams that are reset at once",
            after_preface(
                &(0..500u32)
                    .flat_map(|n| {
                        [
                            frame(3, 1, 5, 2 * n + 1, &[0x82, 0x84, 0x86]),
                            frame(4, 3, 0, 2 * n + 1, &[0, 0, 0, 8]),
                        ]
                    })
                    .fold(settings.clone(), |all, frame| [all, frame].concat()),
            ),
        ),
        ("pings", after_preface(&[settings.clone(), frame(8, 6, 0, 0, b"pingpong").repeat(5000)].concat())),
        ("settings", after_preface(&settings.repeat(5000))),
        ("empty data", after_preface(&[settings.clone(), frame(0, 0, 0, 1, b"").repeat(5000)].concat())),
        (
            "a window that overflows",
            after_preface(&[settings, frame(4, 8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])].concat()),
        ),
    ]
}

/// Requests with the one right answer: the statuses of everything that comes back.
pub fn deserved() -> Vec<(Vec<u8>, Vec<&'static str>)> {
    let named = |name: &str| {
        let found = requests().into_iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no request is called {name}")).1
    };
    vec![
        (get("/livez"), vec!["200"]),
        (order(br#"{"count": 1}"#), vec!["200"]),
        (named("an endless line"), vec!["431"]),
        (named("a huge header"), vec!["431"]),
        (named("many headers"), vec!["431"]),
        (named("a space before the colon"), vec!["400"]),
        (named("a negative length"), vec!["400"]),
        (named("two lengths"), vec!["400"]),
        // Whoever believes the one header and not the other would take the rest for another request.
        (named("a length and chunks"), vec!["400"]),
        (named("deep lists"), vec!["400"]),
        (named("deep metadata"), vec!["400"]),
        (named("half a surrogate"), vec!["400"]),
        (named("a written NUL"), vec!["200"]),
        (named("a chunk that is no number"), vec!["400"]),
        (named("a very long URL"), vec!["431"]),
        (named("a long URL"), vec!["414"]),
        (named("encoded parents"), vec!["404"]),
        (named("parents"), vec!["404"]),
        (named("a line break in the query"), vec!["400"]),
    ]
}
