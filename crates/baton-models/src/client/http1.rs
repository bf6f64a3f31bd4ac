//! HTTP/1.1 on a plain connection, read by the task that waits for the reply.
//!
//! `hyper` keeps a read and a write buffer of 8 KiB each per connection, and passes each part of a body through a channel. A server
//! with thousands of open replies needs neither: here a connection has a buffer only while there is something to read. The parser is
//! `httparse`, which `hyper` uses too. Supported is what a response to `GET` and `POST` can be: a body with a length, in chunks, or
//! until the connection is closed.

use std::io::{self, ErrorKind, IoSlice, Write as _};
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};
use httparse::{EMPTY_HEADER, Status};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::TcpStream;

/// Free bytes of the buffer before each read.
const READ_BYTES: usize = 4096;
/// Limit in bytes of the head of a response, of its trailers and of the line with the size of a chunk.
const MAX_HEAD_BYTES: usize = 128 * 1024;
/// A response with more headers is an error.
const MAX_HEADERS: usize = 100;
/// Slices of one write: the head and the body.
const SLICES: usize = 2;

/// A socket, and the bytes that were read from it and are not used yet.
#[derive(Debug)]
pub(super) struct Http1Connection {
    socket: TcpStream,
    buffer: BytesMut,
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
    /// Trailers, which are ignored, and an empty line.
    Trailers,
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
        Self { socket, buffer: BytesMut::new(), body: BodyState::Bytes(0), is_persistent: true }
    }

    /// Sends a request in origin form. Returns when the head of the response has arrived.
    ///
    /// Not cancel safe: a connection whose exchange was dropped must not be used again.
    pub(super) async fn exchange(&mut self, request: &Request<Bytes>) -> Result<Response<()>, ExchangeError> {
        self.send(request).await?;
        loop {
            match parse_head(&self.buffer)? {
                Some((length, head)) if head.status().is_informational() => {
                    if head.status() == StatusCode::SWITCHING_PROTOCOLS {
                        return Err(malformed("the server switches to another protocol").into());
                    }
                    self.buffer.advance(length);
                }
                Some((length, head)) => {
                    self.buffer.advance(length);
                    self.body = body_state(&head)?;
                    self.is_persistent &= is_persistent(&head) && self.body != BodyState::UntilClosed;
                    return Ok(head);
                }
                None if self.fill().await? == 0 => {
                    return Err(closed("the server closed the connection before it answered").into());
                }
                None => self.check_size()?,
            }
        }
    }

    /// Writes a request, and stops if the server answers before it has all of it.
    async fn send(&mut self, request: &Request<Bytes>) -> Result<(), ExchangeError> {
        let mut unsent = head(request).chain(request.body().clone());
        let total = unsent.remaining();
        while unsent.has_remaining() {
            // A server that reads quickly would keep this task from yielding until a large request is sent.
            tokio::task::coop::consume_budget().await;
            let ready = self.socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
            if ready.is_readable() {
                match self.try_fill() {
                    Ok(0) => {
                        let is_unsent = unsent.remaining() == total;
                        let error = closed("the server closed the connection");
                        return Err(ExchangeError { error, is_unsent });
                    }
                    // Not an answer: nothing was asked yet.
                    Ok(_) if unsent.remaining() == total => {
                        let error = malformed("the server sent a response before the request");
                        return Err(ExchangeError { error, is_unsent: true });
                    }
                    Ok(_) => {
                        self.is_persistent = false;
                        return Ok(());
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => {
                        return Err(ExchangeError { error, is_unsent: unsent.remaining() == total });
                    }
                }
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let used = unsent.chunks_vectored(&mut slices);
            match self.socket.try_write_vectored(&slices[..used]) {
                Ok(written) => unsent.advance(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(ExchangeError { error, is_unsent: unsent.remaining() == total }),
            }
        }
        Ok(())
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
            let read = match self.check_size() {
                Ok(()) => ready!(self.poll_fill(context)),
                Err(error) => Err(error),
            };
            match read {
                Ok(0) if self.body == BodyState::UntilClosed => self.body = BodyState::Bytes(0),
                Ok(0) => return Poll::Ready(Some(Err(closed("the server closed the connection too early")))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// Whether the connection is open and has no response left to read.
    pub(super) fn is_reusable(&self) -> bool {
        let is_read = self.body == BodyState::Bytes(0) && self.buffer.is_empty();
        // A server sends nothing without a request, except that it closes the connection.
        let is_quiet =
            || matches!(self.socket.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.is_persistent && is_read && is_quiet()
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

    fn check_size(&self) -> io::Result<()> {
        if self.buffer.len() > MAX_HEAD_BYTES {
            return Err(malformed(
                "a head, a chunk line or the trailers of the response are larger than 128 KiB",
            ));
        }
        Ok(())
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
                // The parser takes a line without digits for the size 0.
                Self::ChunkSize if !buffer[0].is_ascii_hexdigit() => {
                    return Err(malformed("the size of a chunk is missing"));
                }
                Self::ChunkSize => match httparse::parse_chunk_size(buffer) {
                    Ok(Status::Complete((length, size))) => {
                        buffer.advance(length);
                        *self = if size == 0 { Self::Trailers } else { Self::Chunk(size) };
                    }
                    Ok(Status::Partial) => return Ok(Decoded::NeedsMore),
                    Err(_) => return Err(malformed("the size of a chunk is invalid")),
                },
                Self::ChunkEnd => match &buffer[..] {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        *self = Self::ChunkSize;
                    }
                    [b'\r'] => return Ok(Decoded::NeedsMore),
                    _ => return Err(malformed("a chunk is longer than its size")),
                },
                Self::Trailers => {
                    let mut trailers = [EMPTY_HEADER; MAX_HEADERS];
                    match httparse::parse_headers(buffer, &mut trailers).map_err(malformed)? {
                        Status::Complete((length, _)) => {
                            buffer.advance(length);
                            *self = Self::Bytes(0);
                        }
                        Status::Partial => return Ok(Decoded::NeedsMore),
                    }
                }
            }
        }
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
