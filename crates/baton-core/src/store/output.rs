//! Tool output too long for a model's context.
//!
//! The [`Append`](super::Append) that records the tool's result writes it in chunks; it is read in slices. It belongs to one
//! session of a run: another agent of the run gets what the first one passes on, masked, and not the output itself.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::hash::fnv1a_32;
use crate::id::{RunId, SessionId};
use crate::store::Pending;

/// Identifies a spooled output: `out_` and 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputHandle(Uuid);

impl OutputHandle {
    /// A random handle for an output of the session. Its last four bytes are a hash of the session.
    pub fn random(session: &SessionId) -> Self {
        let (random, hash) = (Uuid::new_v4().as_u128(), fnv1a_32(session.as_str()));
        Self(Uuid::from_u128(random >> 32 << 32 | u128::from(hash)))
    }

    /// Whether the handle was made for this session. A handle that is changed to fit another session names no output.
    pub fn belongs_to(self, session: &SessionId) -> bool {
        self.0.as_bytes().ends_with(&fnv1a_32(session.as_str()).to_be_bytes())
    }

    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Parses the format that [`fmt::Display`] writes; otherwise returns `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let handle = Self(Uuid::try_parse(text.strip_prefix("out_")?).ok()?);
        (handle.to_string() == text).then_some(handle)
    }
}

impl fmt::Display for OutputHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out_{}", self.0.simple())
    }
}

/// A whole output to be written. Clones share its content.
#[derive(Clone, PartialEq, Eq)]
pub struct SpooledOutput {
    pub handle: OutputHandle,
    chunks: Vec<Arc<[u8]>>,
    size: u64,
}

impl SpooledOutput {
    /// Size of every chunk except the last.
    pub const CHUNK_BYTES: usize = 64 * 1024;

    pub fn new(handle: OutputHandle, text: &str) -> Self {
        let chunks = text.as_bytes().chunks(Self::CHUNK_BYTES).map(Arc::from).collect();
        Self { handle, chunks, size: text.len() as u64 }
    }

    /// In bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn chunks(&self) -> &[Arc<[u8]>] {
        &self.chunks
    }
}

/// Omits the content, which may be megabytes.
impl fmt::Debug for SpooledOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handle, size, .. } = self;
        f.debug_struct("SpooledOutput").field("handle", handle).field("size", size).finish_non_exhaustive()
    }
}

/// Part of a spooled output. It may begin and end within a UTF-8 sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSlice {
    pub bytes: Vec<u8>,
    /// Start of the slice; the size of the output if the requested offset is beyond it.
    pub offset: u64,
    /// Size of the whole output in bytes.
    pub size: u64,
}

/// Reads spooled output. [`super::Append::outputs`] writes it.
pub trait Outputs: Send + Sync {
    /// Returns at most `limit` bytes from `offset` on. Reads only the chunks that contain them.
    fn output_slice(
        &self,
        run: RunId,
        handle: OutputHandle,
        offset: u64,
        limit: u32,
    ) -> Pending<'_, OutputSlice>;

    /// Bytes of all spooled output of the tenant.
    fn spooled_bytes(&self) -> Pending<'_, u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(run: u128) -> SessionId {
        SessionId::root(RunId::from_uuid(Uuid::from_u128(run)))
    }

    #[test]
    fn a_handle_belongs_to_its_session() {
        let handle = OutputHandle::random(&session(1));
        assert!(handle.belongs_to(&session(1)) && !handle.belongs_to(&session(2)));
        assert_ne!(OutputHandle::random(&session(1)), handle);
    }

    #[test]
    fn a_handle_has_one_spelling() {
        let handle = OutputHandle::random(&session(1));
        let text = handle.to_string();
        assert_eq!((text.len(), OutputHandle::parse(&text)), (36, Some(handle)));
        let hyphenated = format!("out_{}", handle.as_uuid());
        let upper = format!("out_{}", text[4..].to_uppercase());
        for wrong in ["", "out_", "..", &text[4..], &text[..35], &hyphenated, &upper] {
            assert_eq!(OutputHandle::parse(wrong), None, "{wrong}");
        }
    }
}
