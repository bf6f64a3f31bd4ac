//! Whoever is called in a run hears of the trace that it belongs to.

use std::sync::{Arc, Mutex};

use baton_core::tool::{CallContext, Tool, ToolFuture, ToolSpec};
use baton_core::{ToolOutput, TraceParent};
use baton_engine::Engine;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use crate::{Setup, TestTool};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// Remembers in which trace it was called.
#[derive(Debug)]
struct Spy {
    spec: ToolSpec,
    heard: Arc<Mutex<Vec<Option<TraceParent>>>>,
}

impl Tool for Spy {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _arguments: Value, context: Arc<CallContext>) -> ToolFuture {
        self.heard.lock().unwrap().push(context.trace.clone());
        Box::pin(async { Ok(ToolOutput::from("seen".to_owned())) })
    }
}

/// Nobody listens to spans here, so the trace goes on as it came, with what others said about it.
#[tokio::test]
async fn the_trace_of_a_run_goes_to_models_and_tools() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::call("spy", &json!({})),
            ScriptedTurn::text("ok"),
            ScriptedTurn::call("spy", &json!({})),
            ScriptedTurn::text("ok"),
        ],
    );
    let spy = Spy { spec: TestTool::echo("spy").spec, heard: Arc::clone(&heard) };
    let (parts, mut request) = Setup::new(&model).tool(spy).parts().await;
    let engine = Engine::new(parts);
    let trace = TraceParent::parse(TRACE).unwrap().with_state("vendor=1");
    engine.start(request.clone()).await.unwrap().finish().await;
    request.trace = Some(trace.clone());
    engine.start(request).await.unwrap().finish().await;
    assert_eq!(*heard.lock().unwrap(), [None, Some(trace)]);
    let asked: Vec<Option<String>> = model.asked().into_iter().map(|asked| asked.traceparent).collect();
    assert_eq!(asked, [None, None, Some(TRACE.to_owned()), Some(TRACE.to_owned())]);
}
