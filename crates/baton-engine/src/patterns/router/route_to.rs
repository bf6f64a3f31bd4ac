//! `route_to`: the tool with which a router selects an agent.

use std::slice;
use std::sync::Arc;

use baton_core::agent::RoutingMode;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::destinations::Destinations;
use super::routing_words::RoutingWords;
use crate::bounds::InvocationKind;
use crate::engine_tool::{CallSite, EngineTool, SessionEnding, ToolOutcome};
use crate::failure::Failure;
use crate::guardrails;
use crate::invocation;
use crate::patterns::arguments::{is_blank, match_word, normalize_word};
use crate::run;
use crate::scope::Scope;
use crate::telemetry;

/// The tool `route_to`.
#[derive(Debug)]
pub(super) struct RouteTo {
    spec: ToolSpec,
    accepted_parameters: Value,
    destinations: Arc<Destinations>,
    /// Set if the model is not asked for a reason.
    words: Option<RoutingWords>,
}

#[derive(Debug, Deserialize)]
struct RouteToArguments {
    agent: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl RouteTo {
    /// `mode`: a pure router is not offered `message`, because it adds nothing to the request.
    pub(super) fn new(
        scope: &Scope,
        destinations: &Arc<Destinations>,
        mode: RoutingMode,
        words: Option<RoutingWords>,
    ) -> Self {
        let all = destinations.all();
        let lines = all.iter().map(|agent| {
            let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("- {}: {description}", agent.name)
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        let names: Vec<&str> = all.iter().map(|agent| agent.name.as_str()).collect();
        let accepted_parameters = json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": names, "description": "The agent that fits best." },
                "reason": { "type": "string", "description": "Why this one, in a sentence." },
                "message": { "type": "string", "description": "Only if something has to be added: the agent gets the request itself." },
            },
            "required": ["agent", "reason"],
            "additionalProperties": false,
        });
        let mut parameters = accepted_parameters.clone();
        if mode == RoutingMode::Pure
            && let Some(properties) = parameters["properties"].as_object_mut()
        {
            properties.retain(|name, _| name != "message");
        }
        let mut accepted_parameters = accepted_parameters;
        if words.is_some() {
            accepted_parameters["required"] = json!(["agent"]);
            parameters["required"] = json!(["agent"]);
            if let Some(properties) = parameters["properties"].as_object_mut() {
                properties.retain(|name, _| name != "reason");
            }
        }
        let spec = ToolSpec {
            name: "route_to".to_owned(),
            description: format!("Hands the request to the agent that should handle it. One of:\n{lines}"),
            parameters,
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: scope.agent().limits.timeout,
        };
        Self { spec, accepted_parameters, destinations: Arc::clone(destinations), words }
    }

    async fn decide(&self, arguments: Value, site: CallSite<'_>) -> Result<ToolOutcome, Failure> {
        let Ok(mut choice) = serde_json::from_value::<RouteToArguments>(arguments) else {
            return Ok(ToolOutcome::Refused(ToolError::InvalidArguments(
                "`agent` and `reason` are needed".into(),
            )));
        };
        let Some(agent) = self.destinations.get(&choice.agent) else {
            let message = format!("choose one of: {}", self.destinations.names());
            return Ok(ToolOutcome::Refused(ToolError::InvalidArguments(message)));
        };
        if let Some(words) = self.words.as_ref().filter(|_| choice.reason.is_empty()) {
            choice.reason = words.reason(&agent.name);
        }
        let scope = &site.scope;
        let brief = format!("{}\n{}", choice.reason, choice.message);
        if let Some(refused) = guardrails::check_brief(scope, &brief).await? {
            return Ok(refused);
        }
        let child = match invocation::enter(scope, agent, InvocationKind::Route).await {
            Ok(child) => child,
            Err(refusal) => return Ok(ToolOutcome::Refused(refusal.into())),
        };
        telemetry::transfer(scope, InvocationKind::Route, slice::from_ref(agent));
        let mut input = self.destinations.destination_input(scope, Some(&site), &choice.message).await?;
        input.sent = Some(self.destinations.sent(scope, &choice.reason));
        let outcome = match run::run(child, input.clone()).await {
            Ok(outcome) => outcome,
            Err(failure) if failure.is_fatal(&scope.run.control.cancel) || scope.cancel.is_cancelled() => {
                return Err(failure);
            }
            Err(failure) => self.destinations.run_fallback(&site, &agent.name, failure, input).await?,
        };
        let output = format!("`{}` answered.", outcome.agent);
        Ok(ToolOutcome::Ended { output, ending: SessionEnding::Passed(Box::new(outcome)) })
    }
}

impl EngineTool for RouteTo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accepted_parameters(&self) -> &Value {
        &self.accepted_parameters
    }

    fn prepare(&self, mut arguments: Value) -> Result<Value, ToolError> {
        normalize_word(
            arguments.get_mut("agent"),
            self.destinations.all().iter().map(|agent| agent.name.as_str()),
        );
        if let Some(fields) = arguments.as_object_mut() {
            fields.retain(|key, value| key != "message" || !is_blank(value));
        }
        Ok(arguments)
    }

    fn ends_with(&self, arguments: &Value) -> Option<String> {
        let (name, all) = (arguments["agent"].as_str()?, self.destinations.all());
        let meant = match_word(name, all.iter().map(|agent| agent.name.as_str()));
        Some(format!("route_to {}", meant.unwrap_or(name)))
    }

    fn may_change_speaker(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(self.decide(arguments, site))
    }
}
