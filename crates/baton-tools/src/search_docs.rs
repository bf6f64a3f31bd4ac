//! `search_docs`: the sections of the documents that answer a question.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, TenantId, Tool, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offload::offload;
use crate::schema::{arguments, object};
use crate::search::corpus::Corpora;
use crate::search::passage::passage;
use crate::search::{Hit, Index};

const DEFAULT_HITS: usize = 5;
const MAX_HITS: usize = 20;
const SUGGESTIONS: usize = 5;
/// Of a word that is suggested, in letters.
const SHORTEST_HINT: usize = 5;

/// The folders with shared documents, which no tool writes to.
#[derive(Debug, Clone, Default)]
pub struct DocFolders {
    /// For all tenants.
    pub shared: Vec<PathBuf>,
    /// Of tenants that have their own: all their folders, the shared ones included.
    pub tenants: BTreeMap<TenantId, Vec<PathBuf>>,
}

impl DocFolders {
    pub fn of(&self, tenant: &TenantId) -> &[PathBuf] {
        self.tenants.get(tenant).unwrap_or(&self.shared)
    }
}

#[derive(Debug)]
pub struct SearchDocs {
    spec: ToolSpec,
    corpora: Corpora,
}

#[derive(Debug, Deserialize)]
struct SearchDocsArguments {
    query: String,
    limit: Option<usize>,
}

impl SearchDocs {
    /// Nothing is read before the first question.
    pub fn new(corpora: Corpora) -> Self {
        let spec = ToolSpec {
            name: "search_docs".to_owned(),
            description: "Searches the documentation and returns the sections that fit best, each with its file, headings, \
                          line and a passage. Takes a question or keywords; words in other forms are found too. Search \
                          again with other words when the hits do not answer the question, and name the file and heading \
                          of what you use."
                .to_owned(),
            parameters: object(
                json!({
                    "query": {"type": "string", "minLength": 1, "description": "A question or keywords, such as: configure rate limiting"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS, "description": "The most sections to return. Default 5"},
                }),
                &["query"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(60),
        };
        Self { spec, corpora }
    }
}

impl Tool for SearchDocs {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let corpus = Arc::clone(self.corpora.of(&context.tenant));
        Box::pin(async move {
            let SearchDocsArguments { query, limit } = arguments(input)?;
            let limit = limit.unwrap_or(DEFAULT_HITS).clamp(1, MAX_HITS);
            let text = offload(move |abandoned| {
                let index = corpus.refresh(abandoned)?;
                let hits = index.search(&query, limit);
                Ok(if hits.is_empty() { nothing(&index, &query) } else { listing(&hits, &query) })
            });
            Ok(text.await?.into())
        })
    }
}

/// `[1] docs/configuration.md › Limits (line 12)` and the passage, for each hit.
pub(crate) fn listing(hits: &[Hit], query: &str) -> String {
    let entries = hits.iter().enumerate().map(|(index, hit)| {
        let path: String = hit.headings.iter().map(|heading| format!(" › {heading}")).collect();
        let shown = passage(&hit.section_text(), query);
        format!("[{}] {}{path} (line {})\n{shown}", index + 1, hit.source, hit.line)
    });
    entries.collect::<Vec<_>>().join("\n\n")
}

pub(crate) fn nothing(index: &Index, query: &str) -> String {
    let query: String = query.chars().take(200).collect();
    if index.documents.is_empty() {
        return format!("Nothing found for \"{query}\": there are no documents to search.");
    }
    // Short words are near to everything and help nobody.
    let mut nearest = index.nearest(&query, SUGGESTIONS);
    nearest.retain(|word| word.chars().count() >= SHORTEST_HINT);
    let documents = match index.documents.len() {
        1 => "1 document".to_owned(),
        count => format!("{count} documents"),
    };
    let found = format!("Nothing found for \"{query}\" in {documents}.");
    let hint = match nearest.as_slice() {
        [] => " Try other words.".to_owned(),
        words => format!(" Similar words: {}.", words.join(", ")),
    };
    let left_out = match index.left_out {
        0 => String::new(),
        n => format!(" {n} files are too large, or too many, to be searched."),
    };
    found + &hint + &left_out
}
