//! The client against a server on loopback that speaks the real protocol, and misbehaves as the test says.

mod auth;
mod cards;
mod peer;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use baton_a2a::client::{A2aAgents, ClientTimeouts};
use baton_core::agent::{Agent, AgentKind, RemoteAuth, RemoteCard};
use baton_core::message::Part;
use baton_core::remote::{
    RemoteAgent, RemoteAgents as _, RemoteEnd, RemoteError, RemoteEvent, RemoteMessage, RemoteStream,
    RemoteTask,
};
use baton_core::{AgentName, RunId};
use futures_util::StreamExt as _;
use secrecy::SecretString;
use uuid::Uuid;

/// What the variable `PARTNER_KEY` has.
const SECRET: &str = "hunter2-very-secret";

fn timeouts() -> ClientTimeouts {
    ClientTimeouts {
        connect: Duration::from_secs(2),
        response: Duration::from_secs(5),
        card: Duration::from_secs(5),
        silence: Duration::from_millis(300),
        back_off: Duration::from_millis(5),
        poll: Duration::from_millis(5),
    }
}

fn client() -> A2aAgents {
    let secrets = Arc::new(|name: &str| (name == "PARTNER_KEY").then(|| SecretString::from(SECRET)));
    A2aAgents::new(secrets, timeouts())
}

fn agent(card: &str, auth: Option<RemoteAuth>) -> Agent {
    let mut agent = Agent::plain(AgentName::parse("far").unwrap(), "Helps.", "");
    agent.kind = AgentKind::Remote { card: RemoteCard::Url(card.to_owned()), auth };
    agent
}

fn connect(card: &str) -> Arc<dyn RemoteAgent> {
    client().connect(&agent(card, None)).unwrap()
}

fn message(text: &str) -> RemoteMessage {
    RemoteMessage {
        message_id: Uuid::from_u128(7),
        task: RemoteTask::new_in("our-thread"),
        parts: vec![Part::text(text)],
        handoff: None,
        run_id: RunId::from_uuid(Uuid::from_u128(9)),
        trace: None,
    }
}

/// All events, and how the stream ended.
async fn read(mut stream: RemoteStream) -> (Vec<RemoteEvent>, Result<RemoteEnd, RemoteError>) {
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = stream.next().await {
            match event {
                Ok(RemoteEvent::Ended(end)) => return Ok(*end),
                Ok(event) => events.push(event),
                Err(error) => return Err(error),
            }
        }
        panic!("the stream ended without a result")
    };
    let end = tokio::time::timeout(Duration::from_mins(1), reading).await.expect("it takes too long");
    (events, end)
}
