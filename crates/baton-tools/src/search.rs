//! Full-text search over folders of documents.
//!
//! [`corpus`] finds the files and keeps what was read of them; [`section`] cuts a file at its headings; [`words`] makes
//! words comparable; [`index`] ranks sections for a question; [`passage`] picks what is shown of a section.

pub mod corpus;
pub mod index;
pub mod passage;
pub mod section;
pub mod words;

pub use corpus::Corpus;
pub use index::{Hit, Index};
