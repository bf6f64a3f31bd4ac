//! The spans that the server exports, received as an OTLP collector does, and the time between those of a transfer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

/// Receives spans on loopback until the process ends.
#[derive(Debug)]
pub struct Collector {
    pub url: String,
    received: Received,
}

type Received = Arc<Mutex<Vec<Span>>>;

impl Collector {
    pub fn start() -> Self {
        let received = Received::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let routes = Router::new().route("/v1/traces", post(receive)).with_state(Arc::clone(&received));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, routes).await.expect("a server");
            });
        });
        Self { url, received }
    }

    /// Forgets what was received.
    pub fn clear(&self) {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The times of everything received so far.
    pub fn times(&self) -> SpanTimes {
        let spans = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let mut traces: HashMap<&[u8], Vec<&Span>> = HashMap::new();
        for span in spans.iter() {
            traces.entry(&span.trace_id).or_default().push(span);
        }
        let mut times = SpanTimes::default();
        for trace in traces.values() {
            times.add(trace);
        }
        times
    }
}

async fn receive(State(received): State<Received>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).expect("spans");
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    received.lock().unwrap_or_else(PoisonError::into_inner).extend(scopes.flat_map(|scope| scope.spans));
}

/// The parts of passing the baton, one value for each transfer.
#[derive(Debug, Default)]
pub struct SpanTimes {
    /// From the end of the giver's reply to the start of the transfer that it asks for.
    pub detection: Vec<Duration>,
    /// From there to the request of the receiver's model, if nothing is stored in between: the receiver's input is built, masked and
    /// rendered.
    pub injection: Vec<Duration>,
    /// From the start of the transfer to the start of the receiver, if it gets the thread: the chain and the holder of the session are
    /// committed in between, once the receiver's input is built.
    pub session_update: Vec<Duration>,
    /// From the end of the giver's reply to the request of the receiver's model, with the commit of a handoff of the thread.
    pub overhead: Vec<Duration>,
}

impl SpanTimes {
    fn add(&mut self, trace: &[&Span]) {
        let Some(transfer) = trace.iter().find(|span| span.name.starts_with("execute_tool transfer_to_"))
        else {
            return;
        };
        let calls = || trace.iter().filter(|span| span.name.starts_with("chat "));
        let giver = calls().find(|call| call.parent_span_id == transfer.parent_span_id);
        let later = calls().filter(|call| call.start_time_unix_nano >= transfer.start_time_unix_nano);
        let receiver = later.min_by_key(|call| call.start_time_unix_nano);
        let mut agents = trace.iter().filter(|span| span.name.starts_with("invoke_agent "));
        let agent = agents.find(|agent| agent.parent_span_id == transfer.span_id);
        let (Some(giver), Some(receiver), Some(agent)) = (giver, receiver, agent) else { return };
        self.detection.push(between(giver.end_time_unix_nano, transfer.start_time_unix_nano));
        self.overhead.push(between(giver.end_time_unix_nano, receiver.start_time_unix_nano));
        if transfer.name.ends_with(super::COLLEAGUE) {
            self.injection.push(between(transfer.start_time_unix_nano, receiver.start_time_unix_nano));
        } else {
            self.session_update.push(between(transfer.start_time_unix_nano, agent.start_time_unix_nano));
        }
    }
}

fn between(start: u64, end: u64) -> Duration {
    Duration::from_nanos(end.saturating_sub(start))
}
