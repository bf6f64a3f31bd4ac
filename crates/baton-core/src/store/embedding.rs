//! Vectors of the sections of shared documents. They hold nothing of users and threads.

use std::sync::Arc;

use crate::store::Pending;

/// SHA-256 of the text that was embedded.
pub type SectionHash = [u8; 32];

#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub section: SectionHash,
    pub vector: Arc<[f32]>,
}

pub trait Embeddings: Send + Sync {
    /// The vectors of a model, sorted by section, after one of them.
    fn embeddings(&self, model: &str, after: Option<SectionHash>, limit: u32) -> Pending<'_, Vec<Embedding>>;

    /// Replaces those that exist. The sections are distinct.
    fn put_embeddings(&self, model: &str, embeddings: Vec<Embedding>) -> Pending<'_, ()>;

    /// Deletes these sections of the model, and everything of other models.
    fn delete_embeddings(&self, model: &str, sections: Vec<SectionHash>) -> Pending<'_, ()>;
}
