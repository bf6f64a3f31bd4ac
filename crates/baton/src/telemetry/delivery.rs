//! Sends spans, on the thread that collects them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::runtime::{Builder, Runtime};

/// The exporter with the runtime that its connections need. That of the runs is not asked: it has better things to do, and may be
/// gone when the last spans are sent.
#[derive(Debug)]
pub(super) struct Delivery {
    otlp: Otlp,
    runtime: Runtime,
    is_failing: AtomicBool,
}

impl Delivery {
    pub(super) fn new(otlp: Otlp) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { otlp, runtime, is_failing: AtomicBool::new(false) })
    }

    /// Once when it begins to fail, and once when it is over.
    fn report(&self, result: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !was_failing => {
                tracing::warn!(%error, "traces do not reach the collector; what happens meanwhile is not recorded");
            }
            Ok(()) if was_failing => tracing::info!("traces reach the collector again"),
            _ => {}
        }
    }
}

impl SpanExporter for Delivery {
    /// Called on a thread that does nothing else, so it may be blocked.
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        let result = self.runtime.block_on(self.otlp.export(batch));
        self.report(&result);
        std::future::ready(result)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
