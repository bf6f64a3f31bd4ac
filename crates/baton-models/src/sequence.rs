//! Bodies that are written while they are made.

use serde::{Serialize, Serializer};

use crate::fault::ModelFault;

/// Room for what is around the system prompt; most requests need no more.
const ROOM: usize = 1024;

/// The body in one buffer. `system`: the bytes of its longest text.
pub(crate) fn written(body: &impl Serialize, system: usize) -> Result<Vec<u8>, ModelFault> {
    let mut buffer = Vec::with_capacity(system + ROOM);
    serde_json::to_writer(&mut buffer, body).map_err(|error| ModelFault::not_json(&error))?;
    Ok(buffer)
}

/// Serialises what the function iterates over, without collecting it.
pub(crate) struct Sequence<F>(pub F);

impl<F, I> Serialize for Sequence<F>
where
    F: Fn() -> I,
    I: IntoIterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
