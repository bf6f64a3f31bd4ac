//! Whose signature it is.
//!
//! A provider refuses reasoning that another one signed, and a session may change its provider between two turns. So a
//! signature carries a mark of its writer while it is outside this crate, and only its writer gets it back.

/// `writer` must hold no line break.
pub(crate) fn seal(writer: &str, signature: &str) -> String {
    format!("{writer}\n{signature}")
}

/// The signature, if `writer` made it.
pub(crate) fn open<'a>(writer: &str, sealed: Option<&'a str>) -> Option<&'a str> {
    let (marked, signature) = sealed?.split_once('\n')?;
    (marked == writer).then_some(signature)
}
