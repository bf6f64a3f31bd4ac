//! What is logged and traced in this thread, which is all of a test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

#[derive(Clone, Default)]
pub struct Lines {
    events: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Vec<(u64, Fields)>>>,
}

/// While there is only one listener in a process, a thread that does not listen decides for all what is worth hearing.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

pub type Said = BTreeMap<String, String>;

#[derive(Clone, Default)]
struct Fields(Vec<(String, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name().to_owned(), value.to_owned()));
    }
}

impl Lines {
    /// Listens until the guard is dropped.
    pub fn listen() -> (Self, DefaultGuard) {
        LazyLock::force(&ANOTHER);
        let lines = Self::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        (lines, tracing::subscriber::set_default(subscriber))
    }

    /// Each event as `LEVEL message field=value …`, Baton's own only.
    pub fn all(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    /// The fields of the span with this name.
    pub fn span(&self, name: &str) -> Said {
        let spans = self.spans.lock().unwrap();
        let mut fields = spans.iter().map(|(_, fields)| fields.0.iter().cloned().collect::<Said>());
        fields.find(|fields| fields.get("otel.name").is_some_and(|found| found == name)).expect(name)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        // An id is used again when its span has ended; the newest is meant.
        self.spans.lock().unwrap().insert(0, (id.into_u64(), fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.spans.lock().unwrap();
        if let Some((_, fields)) = spans.iter_mut().find(|(known, _)| *known == id.into_u64()) {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with("baton") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (message, others): (Vec<_>, Vec<_>) =
            fields.0.into_iter().partition(|(name, _)| name == "message");
        let message = message.into_iter().map(|(_, text)| text).collect::<String>();
        let others: String = others.into_iter().map(|(name, value)| format!(" {name}={value}")).collect();
        self.events.lock().unwrap().push(format!("{} {message}{others}", event.metadata().level()));
    }
}
