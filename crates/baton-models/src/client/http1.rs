//! HTTP/1.1 on a plain connection, read by the task that waits for the reply.
//!
//! `hyper` keeps a read and a write buffer of 8 KiB each per connection, and passes each part of a body through a channel. A server
//! with thousands of open replies needs neither: here a connection has a buffer only while there is something to read. The parser is
//! `httparse`, which `hyper` uses too. Supported is what a response to `GET` and `POST` can be: a body with a length, in chunks, or
//! until the connection is closed.

use std::io::{self, ErrorKind, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};
use httparse::{EMPTY_HEADER, Status};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::TcpStream;

/// Free bytes of the buffer before each read.
const READ_BYTES: usize = 4096;
/// Limit in bytes of the head of a response.
const MAX_HEAD_BYTES: usize = 128 * 1024;
/// Limit in bytes of the line with the size of a chunk.
const MAX_CHUNK_LINE_BYTES: usize = 1024;
/// Limit in bytes of the trailers of a response.
const MAX_TRAILER_BYTES: usize = 16 * 1024;
/// Responses with a status of 1xx that may come before the response to a request.
const MAX_INTERIM_RESPONSES: usize = 16;
/// A response with more headers is an error.
const MAX_HEADERS: usize = 100;
/// Slices of one write: the head and the body.
const SLICES: usize = 2;

/// A socket, and the bytes that were read from it and are not used yet.
#[derive(Debug)]
pub(super) struct Http1Connection {
    socket: TcpStream,
    buffer: BytesMut,
    /// Bytes at the front of the buffer that were searched for the end of the head, so that a head in many small parts is not searched from
    /// its start each time.
    searched: usize,
    /// What is left of the current response.
    body: BodyState,
    /// Whether the connection can be used again after the current response.
    is_persistent: bool,
}

/// What is left of a body (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    /// 0 at the end of the body.
    Bytes(u64),
    /// The line with the size of the next chunk.
    ChunkSize,
    /// The rest of a chunk.
    Chunk(u64),
    /// The line break after a chunk.
    ChunkEnd,
    /// Trailers, which are ignored, and an empty line. At most this many bytes.
    Trailers(usize),
    UntilClosed,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) struct ExchangeError {
    pub(super) error: io::Error,
    /// Nothing of the request was sent, so it can be sent on another connection.
    pub(super) is_unsent: bool,
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        Self { error, is_unsent: false }
    }
}

impl Http1Connection {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket, buffer: BytesMut::new(), searched: 0, body: BodyState::Bytes(0), is_persistent: true }
    }

    /// Sends a request in origin form. Returns when the head of the response has arrived.
    ///
    /// Not cancel safe: a connection whose exchange was dropped must not be used again.
    pub(super) async fn exchange(&mut self, request: &Request<Bytes>) -> Result<Response<()>, ExchangeError> {
        let mut interim = 0;
        let mut head = self.send(request, &mut interim).await?;
        let head = loop {
            if let Some(head) = head {
                break head;
            }
            if self.fill().await? == 0 {
                return Err(closed("the server closed the connection before it answered").into());
            }
            head = self.take_head(&mut interim)?;
        };
        self.body = body_state(&head)?;
        self.is_persistent &= is_persistent(&head) && self.body != BodyState::UntilClosed;
        Ok(head)
    }

    /// Writes a request, and stops if the server answers before it has all of it: then the head of the answer is returned.
    async fn send(
        &mut self,
        request: &Request<Bytes>,
        interim: &mut usize,
    ) -> Result<Option<Response<()>>, ExchangeError> {
        let mut unsent = head(request).chain(request.body().clone());
        let total = unsent.remaining();
        while unsent.has_remaining() {
            // A server that reads quickly would keep this task from yielding until a large request is sent.
            tokio::task::coop::consume_budget().await;
            let ready = self.socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
            let is_unsent = unsent.remaining() == total;
            if ready.is_readable() {
                match self.try_fill() {
                    Ok(0) => {
                        return Err(ExchangeError {
                            error: closed("the server closed the connection"),
                            is_unsent,
                        });
                    }
                    // Not an answer: nothing was asked yet.
                    Ok(_) if is_unsent => {
                        let error = malformed("the server sent a response before the request");
                        return Err(ExchangeError { error, is_unsent });
                    }
                    Ok(_) => {
                        if let Some(head) = self.take_head(interim)? {
                            self.is_persistent = false;
                            return Ok(Some(head));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(ExchangeError { error, is_unsent }),
                }
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let used = unsent.chunks_vectored(&mut slices);
            match self.socket.try_write_vectored(&slices[..used]) {
                Ok(written) => unsent.advance(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if is_unsent => return Err(ExchangeError { error, is_unsent }),
                // The server has closed the connection; what it answered before says why.
                Err(error) => {
                    self.is_persistent = false;
                    while self.fill().await.is_ok_and(|read| read > 0) {
                        if let Some(head) = self.take_head(interim)? {
                            return Ok(Some(head));
                        }
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(None)
    }

    /// Takes the head of the response from the front of the buffer. `None` if it is not whole. Responses with a status of 1xx come
    /// before it and are ignored; `interim` counts them.
    fn take_head(&mut self, interim: &mut usize) -> io::Result<Option<Response<()>>> {
        loop {
            if self.buffer.first().is_some_and(|first| *first != b'H') {
                return Err(malformed("the server does not answer with HTTP"));
            }
            if !self.has_head() {
                if self.buffer.len() > MAX_HEAD_BYTES {
                    return Err(malformed("the head of the response is larger than 128 KiB"));
                }
                return Ok(None);
            }
            let Some((length, head)) = parse_head(&self.buffer)? else { return Ok(None) };
            self.buffer.advance(length);
            self.searched = 0;
            if !head.status().is_informational() {
                return Ok(Some(head));
            }
            if head.status() == StatusCode::SWITCHING_PROTOCOLS {
                return Err(malformed("the server switches to another protocol"));
            }
            *interim += 1;
            if *interim > MAX_INTERIM_RESPONSES {
                return Err(malformed("the server sends too many responses with a status of 1xx"));
            }
        }
    }

    /// Whether the buffer contains the empty line at the end of a head.
    fn has_head(&mut self) -> bool {
        // The line break before an empty line may have been searched already.
        let start = self.searched.saturating_sub(2);
        self.searched = self.buffer.len();
        let mut breaks = memchr::memchr_iter(b'\n', &self.buffer[start..]);
        breaks.any(|at| matches!(self.buffer[start + at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
    }

    /// The next part of the body; `None` is its end. After an error the connection must be dropped.
    pub(super) fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match self.body.decode(&mut self.buffer) {
                Ok(Decoded::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Decoded::End) => return Poll::Ready(None),
                Ok(Decoded::NeedsMore) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            match ready!(self.poll_fill(context)) {
                Ok(0) if self.body == BodyState::UntilClosed => self.body = BodyState::Bytes(0),
                Ok(0) => return Poll::Ready(Some(Err(closed("the server closed the connection too early")))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// Whether the response was read to its end and the server keeps the connection open after it.
    pub(super) fn is_idle(&self) -> bool {
        self.is_persistent && self.body == BodyState::Bytes(0) && self.buffer.is_empty()
    }

    /// Whether the connection is idle and the server has not closed it. Asks the system: what the runtime knows may be older.
    pub(super) fn is_reusable(&self) -> bool {
        // A server sends nothing without a request, except that it closes the connection.
        let is_quiet = || {
            let peeked = SockRef::from(&self.socket).peek(&mut [MaybeUninit::uninit()]);
            matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        self.is_idle() && is_quiet()
    }

    /// Waits for more bytes. 0 is the end of the connection.
    async fn fill(&mut self) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_fill(context)).await
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut read = self.socket.poll_read_ready(context)?.map(|()| Ok(0));
        if read.is_ready() {
            self.buffer.reserve(READ_BYTES);
            // Unlike `try_read_buf`, it notes after a short read that nothing is left, which saves a system call for each token.
            read = pin!(self.socket.read_buf(&mut self.buffer)).poll(context);
        }
        if read.is_pending() && self.buffer.is_empty() {
            // No memory while the model works.
            self.buffer = BytesMut::new();
        }
        read
    }

    fn try_fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES);
        self.socket.try_read_buf(&mut self.buffer)
    }
}

/// What [`BodyState::decode`] found in the buffer.
#[derive(Debug, PartialEq, Eq)]
enum Decoded {
    Data(Bytes),
    NeedsMore,
    End,
}

impl BodyState {
    /// Takes the next part of the body from the front of `buffer`.
    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Decoded> {
        loop {
            match *self {
                Self::Bytes(0) => return Ok(Decoded::End),
                _ if buffer.is_empty() => return Ok(Decoded::NeedsMore),
                Self::Bytes(left) => {
                    let data = split(buffer, left);
                    *self = Self::Bytes(left - data.len() as u64);
                    return Ok(Decoded::Data(data));
                }
                Self::UntilClosed => return Ok(Decoded::Data(split(buffer, u64::MAX))),
                Self::Chunk(left) => {
                    let data = split(buffer, left);
                    let left = left - data.len() as u64;
                    *self = if left == 0 { Self::ChunkEnd } else { Self::Chunk(left) };
                    return Ok(Decoded::Data(data));
                }
                Self::ChunkSize => {
                    let Some(line) = line(buffer, MAX_CHUNK_LINE_BYTES)? else {
                        return Ok(Decoded::NeedsMore);
                    };
                    // The parser takes a line without digits for the size 0.
                    if !line[0].is_ascii_hexdigit() {
                        return Err(malformed("the size of a chunk is missing"));
                    }
                    let Ok(Status::Complete((length, size))) = httparse::parse_chunk_size(line) else {
                        return Err(malformed("the size of a chunk is invalid"));
                    };
                    buffer.advance(length);
                    *self = if size == 0 { Self::Trailers(MAX_TRAILER_BYTES) } else { Self::Chunk(size) };
                }
                Self::ChunkEnd => match &buffer[..] {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        *self = Self::ChunkSize;
                    }
                    [b'\r'] => return Ok(Decoded::NeedsMore),
                    _ => return Err(malformed("a chunk is longer than its size")),
                },
                Self::Trailers(left) => {
                    let Some(line) = line(buffer, left)? else { return Ok(Decoded::NeedsMore) };
                    *self = if line == b"\r\n" { Self::Bytes(0) } else { Self::Trailers(left - line.len()) };
                    let length = line.len();
                    buffer.advance(length);
                }
            }
        }
    }
}

/// The line at the front of `buffer` with its `\r\n`. `None` if it is incomplete; an error if it has more than `most` bytes or ends
/// without `\r`.
fn line(buffer: &[u8], most: usize) -> io::Result<Option<&[u8]>> {
    let searched = &buffer[..buffer.len().min(most)];
    match memchr::memchr(b'\n', searched) {
        Some(end) if searched[..end].ends_with(b"\r") => Ok(Some(&searched[..=end])),
        Some(_) => Err(malformed("a line of the response does not end with CRLF")),
        None if searched.len() == most => {
            Err(malformed("a chunk line or the trailers of the response are too long"))
        }
        None => Ok(None),
    }
}

/// At most `most` bytes from the front.
fn split(buffer: &mut BytesMut, most: u64) -> Bytes {
    let length = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
    buffer.split_to(length).freeze()
}

/// The head of a request in origin form.
fn head(request: &Request<Bytes>) -> Bytes {
    let mut head = Vec::with_capacity(512);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Writing to memory cannot fail.
    let _ = write!(head, "{} {path} HTTP/1.1\r\n", request.method());
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if !request.body().is_empty() || request.method() == Method::POST {
        let _ = write!(head, "content-length: {}\r\n", request.body().len());
    }
    head.extend_from_slice(b"\r\n");
    Bytes::from(head)
}

/// The head of a response and its length in bytes. `None` if it is not whole.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(usize, Response<()>)>> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let Status::Complete(length) = parsed.parse(bytes).map_err(malformed)? else { return Ok(None) };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(malformed)?;
    *response.version_mut() = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let headers = response.headers_mut();
    headers.reserve(parsed.headers.len());
    for header in &*parsed.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(malformed)?;
        headers.append(name, HeaderValue::from_bytes(header.value).map_err(malformed)?);
    }
    Ok(Some((length, response)))
}

fn body_state(head: &Response<()>) -> io::Result<BodyState> {
    if matches!(head.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(BodyState::Bytes(0));
    }
    if let Some(coding) = tokens(head.headers(), &TRANSFER_ENCODING).last() {
        let is_chunked = coding.eq_ignore_ascii_case("chunked");
        return Ok(if is_chunked { BodyState::ChunkSize } else { BodyState::UntilClosed });
    }
    let mut lengths = tokens(head.headers(), &CONTENT_LENGTH);
    let Some(length) = lengths.next() else { return Ok(BodyState::UntilClosed) };
    if lengths.any(|other| other != length) || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed("the length of the response is ambiguous"));
    }
    length.parse().map(BodyState::Bytes).map_err(malformed)
}

/// A response with two lengths may have been altered on its way, so its connection is not used again (RFC 9112, section 6.3).
fn is_persistent(head: &Response<()>) -> bool {
    let has_two_lengths =
        head.headers().contains_key(TRANSFER_ENCODING) && head.headers().contains_key(CONTENT_LENGTH);
    head.version() == Version::HTTP_11
        && !has_two_lengths
        && !tokens(head.headers(), &CONNECTION).any(|token| token.eq_ignore_ascii_case("close"))
}

/// The values of a header that is a list. A value that is not ASCII is read as an empty one.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| value.to_str().unwrap_or_default().split(',').map(str::trim))
}

fn malformed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn closed(message: &'static str) -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, message)
}

#[cfg(test)]
mod tests;
