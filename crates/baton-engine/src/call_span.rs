//! The span of a model or tool call. [`crate::telemetry`] makes and fills it.

use baton_core::TraceParent;
use tracing::Span;

/// A span within a run, and the id that callees within it receive.
#[derive(Debug, Clone)]
pub(crate) struct CallSpan {
    pub(crate) span: Span,
    /// 0 if spans are disabled. The trace is then passed on unchanged.
    id: u64,
}

impl CallSpan {
    pub(crate) fn new(id: u64, span: Span) -> Self {
        Self { id: if span.is_disabled() { 0 } else { id }, span }
    }

    /// The run's trace context with this span as its parent.
    pub(crate) fn trace(&self, run: Option<&TraceParent>) -> Option<TraceParent> {
        run.map(|trace| trace.at_span(self.id))
    }
}
