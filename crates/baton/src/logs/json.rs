//! Lines for programs: one JSON object each. Values are masked one by one, so a line stays JSON whatever was in it.

use std::fmt::Debug;
use std::io::Write as _;

use baton_core::TraceParent;
use baton_engine::telemetry::TRACE;
use baton_sanitize::{Mask, sanitize, sanitize_value};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::progress;
use crate::report::visible;

/// What stands at the top of a line when it is known, from the event or from the run or request around it.
const PLACES: [&str; 4] = ["trace_id", "tenant_id", "thread_id", "run_id"];

pub(super) struct Json<W>(pub(super) W);

impl<S, W> Layer<S> for Json<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut place = SpanLocation::default();
        attributes.record(&mut place);
        span.extensions_mut().insert(place);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(place) = span.extensions_mut().get_mut::<SpanLocation>()
        {
            values.record(place);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        // From the outermost to the innermost, which knows best.
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(place) = span.extensions().get::<SpanLocation>() {
                fields.around.extend(place.0.clone());
            }
        }
        let line = format!("{}\n", fields.line(event));
        // A failing log output must not end the program.
        progress::aside(|| {
            let _ = self.0.make_writer().write_all(line.as_bytes());
        });
    }
}

/// The target and fields of a span.
#[derive(Default)]
struct SpanLocation(Map<String, Value>);

impl Visit for SpanLocation {
    fn record_str(&mut self, field: &Field, text: &str) {
        if field.name() == TRACE {
            let trace = TraceParent::try_from(text.to_owned()).ok();
            self.0.extend(trace.map(|trace| ("trace_id".to_owned(), trace.trace_id().into())));
            return;
        }
        let name = match field.name() {
            "baton.run.id" => "run_id",
            "baton.tenant.id" => "tenant_id",
            "gen_ai.conversation.id" => "thread_id",
            _ => return,
        };
        self.0.insert(name.to_owned(), text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// What an event says.
#[derive(Default)]
struct EventFields {
    message: String,
    own: Map<String, Value>,
    around: Map<String, Value>,
}

impl EventFields {
    fn line(mut self, event: &Event<'_>) -> Value {
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".into(), Timestamp::now().to_string().into());
        line.insert("level".into(), metadata.level().as_str().into());
        line.insert("target".into(), metadata.target().into());
        line.insert("message".into(), self.message.into());
        for place in PLACES {
            if let Some(known) = self.own.shift_remove(place).or_else(|| self.around.shift_remove(place)) {
                line.insert(place.into(), known);
            }
        }
        if !self.own.is_empty() {
            line.insert("fields".into(), self.own.into());
        }
        shown(sanitize_value(&Value::Object(line), Mask::Everything))
    }

    /// A number can be a secret too, and then its name or its length says so.
    fn add_number(&mut self, field: &Field, number: Value) {
        let said = format!("{}={number}", field.name());
        let is_plain = sanitize(&said, Mask::Everything) == said;
        let value = if is_plain {
            number
        } else {
            sanitize(&said, Mask::Everything).replacen(&format!("{}=", field.name()), "", 1).into()
        };
        self.own.insert(field.name().to_owned(), value);
    }
}

/// Without what a terminal would obey.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (key, shown(value))).collect(),
        other => other,
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, text: &str) {
        if field.name() == "message" {
            text.clone_into(&mut self.message);
        } else {
            self.own.insert(field.name().to_owned(), text.into());
        }
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        self.add_number(field, number.into());
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.add_number(field, number.into());
    }

    fn record_f64(&mut self, field: &Field, number: f64) {
        self.add_number(field, number.into());
    }

    fn record_bool(&mut self, field: &Field, is_so: bool) {
        self.own.insert(field.name().to_owned(), is_so.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
