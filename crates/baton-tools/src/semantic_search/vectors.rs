//! The vectors of the sections of one corpus: in memory, in the store, and from the server for embeddings.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::store::{Embedding, SectionHash};
use baton_core::{StoreError, TenantStore, ToolError};

use super::Scores;
use super::embedder::Embedder;
use crate::offload::offload;
use crate::search::{Hit, Index};

/// Sections beyond it are found by their words only. 50,000 vectors of 1,536 numbers take 300 MB.
const MAX_SECTIONS: usize = 50_000;
/// Texts of one request.
const BATCH: usize = 64;
/// Of one text: more than models read.
const MAX_TEXT_BYTES: usize = 4_000;
/// How long one call embeds what is new. The next call goes on.
const EMBED_WITHIN: Duration = Duration::from_mins(1);
const PAGE: u32 = 500;

#[derive(Debug)]
pub(super) struct SectionVectors {
    embedder: Arc<Embedder>,
    store: Arc<dyn TenantStore>,
    known: Mutex<KnownVectors>,
    /// Whether a call embeds new sections. Others do not wait for it and use what there is.
    is_embedding: AtomicBool,
}

#[derive(Debug, Default)]
struct KnownVectors {
    /// Whether those of the store were read.
    is_loaded: bool,
    by_section: HashMap<SectionHash, Arc<[f32]>>,
}

/// Clears the flag when the call ends or is dropped.
struct EmbeddingTurn<'a>(&'a AtomicBool);

impl Drop for EmbeddingTurn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl SectionVectors {
    pub(super) fn new(embedder: Arc<Embedder>, store: Arc<dyn TenantStore>) -> Self {
        Self { embedder, store, known: Mutex::default(), is_embedding: AtomicBool::new(false) }
    }

    fn known(&self) -> MutexGuard<'_, KnownVectors> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How similar each section is to the question. Sections that are new or changed are embedded first, as far as there is time.
    pub(super) async fn scores(&self, index: &Arc<Index>, query: &str) -> Result<Option<Scores>, ToolError> {
        let sections: HashSet<SectionHash> = index.section_hashes().take(MAX_SECTIONS).collect();
        if sections.is_empty() {
            return Ok(None);
        }
        let question = self.embedder.embed(&[query.to_owned()]).await?;
        let Some(question) = question.into_iter().next() else { return Ok(None) };
        let turn = self.is_embedding.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        if turn.is_ok() {
            let _turn = EmbeddingTurn(&self.is_embedding);
            self.load(&sections).await.map_err(|error| unavailable(&error))?;
            self.embed_missing(index, &sections, question.len()).await?;
        }
        let known = self.known();
        let of_length = known.by_section.iter().filter(|(_, vector)| vector.len() == question.len());
        let by_section: HashMap<SectionHash, f32> = of_length
            .filter(|(section, _)| sections.contains(*section))
            .map(|(section, vector)| (*section, product(vector, &question)))
            .collect();
        let missing = index.section_hashes().filter(|section| !by_section.contains_key(section)).count();
        Ok(Some(Scores { by_section, missing }))
    }

    /// Reads the vectors of the store once, and deletes those that no section needs any more.
    async fn load(&self, sections: &HashSet<SectionHash>) -> Result<(), StoreError> {
        if self.known().is_loaded {
            return Ok(());
        }
        let model = self.embedder.name();
        let (mut after, mut stale) = (None, Vec::new());
        loop {
            let page = self.store.embeddings(&model, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.section);
            let mut known = self.known();
            for Embedding { section, vector } in page {
                if sections.contains(&section) {
                    known.by_section.insert(section, vector);
                } else {
                    stale.push(section);
                }
            }
        }
        self.store.delete_embeddings(&model, stale).await?;
        self.known().is_loaded = true;
        Ok(())
    }

    /// Embeds sections without a vector of this length, and stores each batch. What fails after the first batch is tried again by
    /// the next call.
    async fn embed_missing(
        &self,
        index: &Arc<Index>,
        sections: &HashSet<SectionHash>,
        length: usize,
    ) -> Result<(), ToolError> {
        let started = Instant::now();
        let missing = {
            let mut known = self.known();
            known.by_section.retain(|section, vector| sections.contains(section) && vector.len() == length);
            index.sections_where(|section| {
                sections.contains(section) && !known.by_section.contains_key(section)
            })
        };
        let model = self.embedder.name();
        for batch in missing.chunks(BATCH) {
            if started.elapsed() > EMBED_WITHIN {
                break;
            }
            let hits: Vec<Hit> = batch.iter().map(|(_, hit)| hit.clone()).collect();
            let texts = offload(move |_| Ok(hits.iter().map(text_of).collect::<Vec<String>>())).await?;
            let vectors = self.embedder.embed(&texts).await?;
            let made = batch.iter().zip(vectors);
            let made: Vec<Embedding> =
                made.map(|((section, _), vector)| Embedding { section: *section, vector }).collect();
            self.known().by_section.extend(made.iter().map(|made| (made.section, Arc::clone(&made.vector))));
            self.store.put_embeddings(&model, made).await.map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }
}

/// What is embedded of a section: its headings and its text.
fn text_of(hit: &Hit) -> String {
    let mut text = format!("{}\n{}", hit.headings.join(" › "), hit.section_text().trim());
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unavailable(error: &StoreError) -> ToolError {
    tracing::warn!(%error, "embeddings cannot be stored");
    ToolError::Execution("the store is unavailable".to_owned())
}
