//! The scrape: all counters, and gauges that are read at that moment.

use baton_core::store::StoreLoad;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::Metrics;

/// `OpenMetrics`, which Prometheus and its kin read.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How things stand.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub version: &'static str,
    /// Threads that are worked on in this process, which is as many runs.
    pub at_work: usize,
    pub store: StoreLoad,
}

impl Metrics {
    pub fn scrape(&self, now: Now) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &now.registry())?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

impl Now {
    fn registry(self) -> Registry {
        let StoreLoad { batches, writes, waiting, statements } = self.store;
        let gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        let mut now = Registry::with_prefix("baton");
        now.register("build", "Which Baton this is", Info::new([("version", self.version)]));
        now.register("runs_at_work", "Runs that are worked on here", gauge(self.at_work as u64));
        now.register("store_writes_waiting", "Writes that wait for the store", gauge(waiting));
        now.register("store_batches", "Transactions that wrote something", ConstCounter::new(batches));
        now.register("store_writes", "Writes that they held", ConstCounter::new(writes));
        now.register("store_statements", "Statements sent to the database", ConstCounter::new(statements));
        now
    }
}
