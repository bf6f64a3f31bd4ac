//! From the spans of the engine and the server to those of OpenTelemetry.
//!
//! Names, kinds and states are read from the same fields that `tracing-opentelemetry` reads. Ids are not made here: the code that opens a
//! span chooses its id, because others have been told of it before it ends.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::SystemTime;

use baton_core::TraceParent;
use baton_engine::telemetry::{ID, PARENT, TRACE, new_span_id, new_trace};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A list in OpenTelemetry, though there is only one of them here.
const LIST: &str = "gen_ai.response.finish_reasons";

#[derive(Debug)]
pub(crate) struct Spans {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

impl Spans {
    pub(super) fn new(processor: Arc<BatchSpanProcessor>) -> Self {
        let scope = InstrumentationScope::builder("baton").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { processor, scope }
    }
}

/// A span that has not ended.
struct OpenSpan {
    trace: TraceParent,
    /// The span that it comes from; 0 if it comes from none.
    parent: u64,
    is_parent_elsewhere: bool,
    since: SystemTime,
    said: SpanFields,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = SpanFields::default();
        attributes.record(&mut said);
        let around = span.parent().and_then(|span| {
            let open = span.extensions();
            open.get::<OpenSpan>().map(|open| open.trace.clone())
        });
        let id = said.id.unwrap_or_else(new_span_id);
        let (trace, parent) = match (said.trace.take(), around) {
            (Some(own), _) => (own, said.parent.unwrap_or_default()),
            (None, Some(around)) => (around.at_span(id), around.ids().1),
            (None, None) => (new_trace().at_span(id), 0),
        };
        let (is_parent_elsewhere, since) = (said.parent.is_some(), SystemTime::now());
        let open = OpenSpan { trace, parent, is_parent_elsewhere, since, said };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
        {
            values.record(&mut open.said);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let open = span.extensions_mut().remove::<OpenSpan>();
        // The root of the trace decides whether it is recorded.
        if let Some(open) = open.filter(|open| open.trace.is_sampled) {
            self.processor.on_end(open.ended(span.name(), self.scope.clone()));
        }
    }
}

impl OpenSpan {
    fn ended(self, name: &'static str, instrumentation_scope: InstrumentationScope) -> SpanData {
        let SpanFields { name: said, kind, status, attributes, .. } = self.said;
        SpanData {
            span_context: context(&self.trace),
            parent_span_id: SpanId::from(self.parent),
            parent_span_is_remote: self.is_parent_elsewhere,
            span_kind: kind,
            name: said.map_or(name.into(), Into::into),
            start_time: self.since,
            end_time: SystemTime::now(),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope,
        }
    }
}

fn context(trace: &TraceParent) -> SpanContext {
    let (trace_id, span_id) = trace.ids();
    let flags = if trace.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let state = trace.state().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    SpanContext::new(TraceId::from(trace_id), SpanId::from(span_id), flags, false, state)
}

/// What the fields of a span say.
struct SpanFields {
    id: Option<u64>,
    trace: Option<TraceParent>,
    parent: Option<u64>,
    name: Option<String>,
    kind: SpanKind,
    status: Status,
    attributes: Vec<KeyValue>,
}

impl Default for SpanFields {
    fn default() -> Self {
        let (id, trace, parent, name) = (None, None, None, None);
        Self {
            id,
            trace,
            parent,
            name,
            kind: SpanKind::Internal,
            status: Status::Unset,
            attributes: Vec::new(),
        }
    }
}

impl SpanFields {
    /// A later value replaces an earlier one.
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        let value = value.into();
        match self.attributes.iter_mut().find(|known| known.key.as_str() == field.name()) {
            Some(known) => known.value = value,
            None => self.attributes.push(KeyValue::new(field.name(), value)),
        }
    }
}

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, text: &str) {
        match field.name() {
            TRACE => self.trace = TraceParent::try_from(text.to_owned()).ok(),
            "otel.name" => self.name = Some(text.to_owned()),
            "otel.kind" if text == "client" => self.kind = SpanKind::Client,
            "otel.kind" if text == "server" => self.kind = SpanKind::Server,
            "otel.status_code" if text == "ERROR" => self.status = Status::error(""),
            "otel.kind" | "otel.status_code" => {}
            LIST => self.add(field, Value::Array(Array::String(vec![StringValue::from(text.to_owned())]))),
            _ => self.add(field, text.to_owned()),
        }
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        match field.name() {
            ID => self.id = Some(number),
            PARENT => self.parent = Some(number),
            _ => self.add(field, i64::try_from(number).unwrap_or(i64::MAX)),
        }
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.add(field, number);
    }

    fn record_f64(&mut self, field: &Field, number: f64) {
        self.add(field, number);
    }

    fn record_bool(&mut self, field: &Field, is_so: bool) {
        self.add(field, is_so);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}
