//! `semantic_search`: the sections of the documents that are about a question, also if they use other words.
//!
//! Sections are ranked by their words as in `search_docs`. With an endpoint for embeddings ([`embedder`]) they are also ranked by the
//! similarity of their vectors ([`vectors`]), and both ranks are fused. Without an endpoint, or while it fails, words alone decide.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::store::SectionHash;
use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Store, TenantId, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

pub mod embedder;
mod vectors;

use embedder::Embedder;
pub use embedder::EmbeddingSettings;
use vectors::SectionVectors;

use crate::offload::offload;
use crate::schema::{arguments, object};
use crate::search::corpus::Corpora;
use crate::search::{Hit, Index};
use crate::search_docs::{listing, nothing};

const DEFAULT_HITS: usize = 5;
const MAX_HITS: usize = 20;
/// Of each rank that is fused.
const CANDIDATES: usize = 50;
/// Of reciprocal rank fusion, as its authors set it: how little the first places count more than the next.
const RANK_OFFSET: f32 = 60.0;
const MAX_QUERY_CHARS: usize = 1_000;
/// The owner of vectors of documents that all tenants share.
const SHARED: &str = "_system";

#[derive(Debug)]
pub struct SemanticSearch {
    spec: ToolSpec,
    corpora: Corpora,
    shared: Option<Arc<SectionVectors>>,
    tenants: BTreeMap<TenantId, Arc<SectionVectors>>,
}

#[derive(Debug, Deserialize)]
struct SemanticSearchArguments {
    query: String,
    limit: Option<usize>,
}

impl SemanticSearch {
    /// Nothing is read and nothing is embedded before the first question.
    pub fn new(corpora: Corpora, embedding: Option<&EmbeddingSettings>, store: &Arc<dyn Store>) -> Self {
        let spec = ToolSpec {
            name: "semantic_search".to_owned(),
            description: "Searches the documentation by meaning and returns the sections that fit best, each with its file, \
                          headings, line and a passage. Takes a question in whole words; other words for the same thing are \
                          found too. Name the file and heading of what you use."
                .to_owned(),
            parameters: object(
                json!({
                    "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS, "description": "A question, such as: how many days off do employees have?"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS, "description": "The most sections to return. Default 5"},
                }),
                &["query"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_mins(2),
        };
        let embedder = embedding.map(|settings| Arc::new(Embedder::new(settings.clone())));
        let vectors = |owner: &TenantId| {
            let embedder = Arc::clone(embedder.as_ref()?);
            Some(Arc::new(SectionVectors::new(embedder, store.tenant(owner))))
        };
        let shared = TenantId::parse(SHARED).ok().and_then(|owner| vectors(&owner));
        let own = corpora.tenants().filter_map(|tenant| Some((tenant.clone(), vectors(tenant)?)));
        let tenants = own.collect();
        Self { spec, corpora, shared, tenants }
    }
}

impl Tool for SemanticSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let corpus = Arc::clone(self.corpora.of(&context.tenant));
        let vectors = self.tenants.get(&context.tenant).or(self.shared.as_ref()).cloned();
        Box::pin(async move {
            let SemanticSearchArguments { query, limit } = arguments(input)?;
            let limit = limit.unwrap_or(DEFAULT_HITS).clamp(1, MAX_HITS);
            let index = offload(move |abandoned| corpus.refresh(abandoned)).await?;
            let ranked = match &vectors {
                Some(vectors) => vectors.scores(&index, &query).await,
                None => Ok(None),
            };
            let text = offload(move |_| Ok(answer(&index, &query, limit, ranked)));
            Ok(text.await?.into())
        })
    }
}

/// How similar sections are to the question, and how many have no vector yet.
#[derive(Debug)]
struct Scores {
    by_section: HashMap<SectionHash, f32>,
    missing: usize,
}

fn answer(index: &Index, query: &str, limit: usize, ranked: Result<Option<Scores>, ToolError>) -> String {
    let words = index.search(query, CANDIDATES);
    let (hits, note) = match ranked {
        Ok(None) => (words, String::new()),
        Ok(Some(scores)) => {
            let similar = index.ranked_by(|section| scores.by_section.get(section).copied(), CANDIDATES);
            let note = match scores.missing {
                0 => String::new(),
                1 => "\n\n(1 section was ranked by its words only: it has no embedding yet)".to_owned(),
                count => format!(
                    "\n\n({count} sections were ranked by their words only: they have no embeddings yet)"
                ),
            };
            (fused(words, similar), note)
        }
        Err(error) => {
            let reason = error.detail();
            (words, format!("\n\n(ranked by words only, because embeddings are not available: {reason})"))
        }
    };
    let hits: Vec<Hit> = hits.into_iter().take(limit).collect();
    let text = if hits.is_empty() { nothing(index, query) } else { listing(&hits, query) };
    text + &note
}

/// Reciprocal rank fusion: a section counts by its places in both lists, whatever the scores mean.
fn fused(words: Vec<Hit>, similar: Vec<Hit>) -> Vec<Hit> {
    let mut fused: BTreeMap<(PathBuf, usize), (f32, Hit)> = BTreeMap::new();
    for ranks in [words, similar] {
        let mut place = RANK_OFFSET;
        for hit in ranks {
            place += 1.0;
            let entry = fused.entry((hit.path.clone(), hit.range.start)).or_insert_with(|| (0.0, hit));
            entry.0 += 1.0 / place;
        }
    }
    let mut hits: Vec<(f32, Hit)> = fused.into_values().collect();
    hits.sort_by(|a, b| b.0.total_cmp(&a.0));
    hits.into_iter().map(|(_, hit)| hit).collect()
}
