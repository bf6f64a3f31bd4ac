//! Traces for an OTLP collector. Off unless one is named, and never in the way: spans wait in a queue that drops what does not fit,
//! a thread of its own delivers them, and the end of the program waits for it only so long.
//!
//! [`spans`] makes OpenTelemetry's spans of those of the engine and the server, [`delivery`] sends them.

mod delivery;
mod spans;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_core::TraceParent;
use baton_engine::telemetry::{CONTEXT, PARENT, TRACE, new_span_id, new_trace};
use baton_sanitize::{Mask, sanitize};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanProcessor as _};
use tracing::Span;

use crate::config::{ConfigError, OtlpEndpoint, Telemetry};
use delivery::Delivery;
pub(crate) use spans::Spans;

/// The names that OpenTelemetry gives to what every program can be told.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The way to the collector.
#[derive(Clone)]
pub struct Exporter(Arc<BatchSpanProcessor>);

impl Exporter {
    /// As the environment and the configuration say, `None` if neither names a collector. Nothing is connected yet.
    pub fn new(settings: &Telemetry) -> Result<Option<Self>, ConfigError> {
        let Some(exporter) = exporter(settings)? else { return Ok(None) };
        let failed = |error: std::io::Error| environment(ENDPOINT, &error);
        let mut processor = BatchSpanProcessor::builder(Delivery::new(exporter).map_err(failed)?).build();
        processor.set_resource(&resource(settings));
        baton_engine::telemetry::capture(
            variable(CONTENT).is_some_and(|value| value.eq_ignore_ascii_case("true")),
        );
        Ok(Some(Self(Arc::new(processor))))
    }

    pub(crate) fn spans(&self) -> Spans {
        Spans::new(Arc::clone(&self.0))
    }

    /// Sends what is left, as far as that is possible within `patience`.
    pub fn end(&self, patience: Duration) {
        let _ = self.0.shutdown_with_timeout(patience);
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exporter")
    }
}

/// The span of a command, and its trace context for the run. It continues the trace of its caller, which
/// `TRACEPARENT` and `TRACESTATE` name.
pub(crate) fn command(name: &'static str) -> (TraceParent, Span) {
    let given = variable("TRACEPARENT").and_then(|text| TraceParent::parse(&text).ok());
    let from = given.as_ref().map(|given| given.ids().1);
    let stated = |given: TraceParent| given.with_state(&variable("TRACESTATE").unwrap_or_default());
    let trace = given.map_or_else(new_trace, stated).at_span(new_span_id());
    let span = tracing::info_span!(
        target: CONTEXT, parent: None, "command", otel.name = name, { TRACE } = String::from(trace.clone()), { PARENT } = from
    );
    (trace, span)
}

/// What the environment says comes before the file, as everywhere.
fn exporter(settings: &Telemetry) -> Result<Option<SpanExporter>, ConfigError> {
    if variable(DISABLED).is_some_and(|value| value == "true")
        || variable(EXPORTER).is_some_and(|value| value == "none")
    {
        return Ok(None);
    }
    let named = if let Some(address) = variable(TRACES_ENDPOINT) {
        Some((TRACES_ENDPOINT, address))
    } else if let Some(address) = variable(ENDPOINT) {
        let address = OtlpEndpoint::try_from(address).map_err(|error| environment(ENDPOINT, &error))?;
        Some((ENDPOINT, address.traces()))
    } else {
        settings.otlp_endpoint.as_ref().map(|address| ("BATON_TELEMETRY_OTLP_ENDPOINT", address.traces()))
    };
    let Some((name, address)) = named else { return Ok(None) };
    let exporter = SpanExporter::builder().with_http().with_endpoint(address).build();
    exporter.map(Some).map_err(|error| environment(name, &error))
}

fn resource(settings: &Telemetry) -> Resource {
    Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_service_name(variable(SERVICE_NAME).unwrap_or_else(|| settings.service_name.clone()))
        .build()
}

/// Empty is as good as absent.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// An address may hold a password, and errors quote addresses.
fn environment(name: &str, error: &dyn fmt::Display) -> ConfigError {
    let message = sanitize(&error.to_string(), Mask::SecretsOnly).into_owned();
    ConfigError::Environment { name: name.to_owned(), message }
}
