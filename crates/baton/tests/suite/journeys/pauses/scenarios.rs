//! The states of conversations at the moment when their server is paused.

use baton_core::store::HandoffState;

use super::model::{After, Stop};

/// One conversation.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The run of each step ends before the next step.
    pub(super) before: &'static [Step],
    /// Starts the run that is active when the server is paused.
    pub(super) last: Step,
    /// What that run waits for.
    pub(super) waits_for: WaitsFor,
    /// States of the thread's last handoff and of its workflow at the pause.
    pub(super) handoff: Option<HandoffState>,
    pub(super) workflow: Option<&'static str>,
    /// A step at the same server while the run waits.
    pub(super) then: Option<Step>,
    /// A step at the other server during the pause.
    pub(super) meanwhile: Option<Step>,
    /// How many times the tool is called, by both servers together.
    pub(super) tool_calls: usize,
}

impl Scenario {
    /// Where the other server can be stopped too, once it has taken the run over. `None` if it does not make the same model call: the
    /// outcome of the tool call is unknown to it, or the run is cancelled. `None` also if it writes while it waits: after 2 s it sends the
    /// status that a helper was called.
    pub(super) fn stop(&self) -> Option<Stop> {
        match self.waits_for {
            WaitsFor::Model(stop) if self.meanwhile.is_none() && stop.agent != "helper" => Some(stop),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Step {
    Say(&'static str),
    /// Says something to an agent by name.
    SayTo(&'static str, &'static str),
    /// Says something while a run is active.
    Queue(&'static str),
    /// Starts a handoff to the maker through the API.
    Start,
    /// Returns the handoff through the API.
    Return,
    /// Leaves the handoff through the API.
    Exit,
    Resume,
    /// Waits until the handoff has expired.
    Expire,
    /// Stores a pending handoff. The server itself opens handoffs as active, in one write.
    Open,
}

#[derive(Clone, Copy)]
pub(super) enum WaitsFor {
    /// The rest of a model's reply.
    Model(Stop),
    /// The end of a tool call: the first or second of its scenario.
    Tool(usize),
}

const fn model(agent: &'static str, after: After) -> WaitsFor {
    WaitsFor::Model(Stop { agent, after })
}

const MAKER: Step = Step::Say("I want to talk to the maker");
const BUILD: Step = Step::Say("build it");
const AGREE: Step = Step::Say("I agree");
const PUBLISH: Step = Step::Say("publish it");
const DONE: Step = Step::Say("that is all");
const TALK: Step = Step::Say("tell me more");

/// The main agent is in the middle of its reply.
const TALKING: Scenario = Scenario {
    name: "talking",
    before: &[],
    last: TALK,
    waits_for: model("assistant", After::Message),
    handoff: None,
    workflow: None,
    then: None,
    meanwhile: None,
    tool_calls: 0,
};

/// The maker holds the thread, its workflow waits for the first value, and it is in the middle of its reply.
const HOLDING: Scenario = Scenario {
    name: "holding",
    before: &[MAKER],
    waits_for: model("maker", After::Message),
    handoff: Some(HandoffState::Active),
    workflow: Some("details"),
    ..TALKING
};

/// The main agent is in the middle of a tool call that must not be repeated.
const USING_A_TOOL: Scenario = Scenario {
    name: "using_a_tool",
    last: Step::Say("use the shell"),
    waits_for: WaitsFor::Tool(1),
    tool_calls: 1,
    ..TALKING
};

pub(super) const SCENARIOS: &[Scenario] = &[
    TALKING,
    USING_A_TOOL,
    // The rest of the reply calls that tool.
    Scenario { name: "asking_for_a_tool", waits_for: model("assistant", After::Message), ..USING_A_TOOL },
    Scenario { name: "queueing", then: Some(Step::Queue("and one more")), ..TALKING },
    Scenario {
        name: "calling",
        last: Step::Say("ask the helper"),
        waits_for: model("helper", After::Message),
        ..TALKING
    },
    Scenario {
        name: "handing_on",
        last: Step::SayTo("first", "begin"),
        waits_for: model("second", After::Message),
        ..TALKING
    },
    // A handoff begins. The rest of the first reply is the transfer.
    Scenario { name: "transferring", last: MAKER, ..TALKING },
    Scenario {
        name: "pending",
        before: &[TALK, Step::Open],
        handoff: Some(HandoffState::Pending),
        ..TALKING
    },
    Scenario { name: "connecting", before: &[], last: MAKER, ..HOLDING },
    Scenario { name: "starting", before: &[TALK], last: Step::Start, ..HOLDING },
    Scenario { name: "resuming", before: &[MAKER, Step::Exit], last: Step::Resume, ..HOLDING },
    // A handoff is active, in each state of its workflow. With `After::Message` the rest of the reply is the next step.
    HOLDING,
    Scenario { name: "advancing", last: BUILD, tool_calls: 1, ..HOLDING },
    Scenario {
        name: "building",
        last: BUILD,
        waits_for: WaitsFor::Tool(1),
        workflow: Some("building"),
        tool_calls: 1,
        ..HOLDING
    },
    Scenario {
        name: "reviewing",
        last: BUILD,
        waits_for: model("maker", After::ToolResult),
        workflow: Some("reviewing"),
        tool_calls: 1,
        ..HOLDING
    },
    Scenario {
        name: "agreeing",
        before: &[MAKER, BUILD],
        last: AGREE,
        workflow: Some("reviewing"),
        tool_calls: 1,
        ..HOLDING
    },
    Scenario {
        name: "refusing",
        before: &[MAKER, BUILD],
        last: Step::Say("not like this"),
        waits_for: model("maker", After::ToolResult),
        tool_calls: 1,
        ..HOLDING
    },
    Scenario {
        name: "choosing",
        before: &[MAKER, BUILD],
        last: AGREE,
        waits_for: model("maker", After::ToolResult),
        workflow: Some("choosing"),
        tool_calls: 1,
        ..HOLDING
    },
    Scenario {
        name: "publishing",
        before: &[MAKER, BUILD, AGREE],
        last: PUBLISH,
        waits_for: WaitsFor::Tool(2),
        workflow: Some("publishing"),
        tool_calls: 2,
        ..HOLDING
    },
    Scenario {
        name: "concluding",
        before: &[MAKER, BUILD, AGREE],
        last: PUBLISH,
        waits_for: model("maker", After::ToolResult),
        workflow: Some("complete"),
        tool_calls: 2,
        ..HOLDING
    },
    // A handoff ends. The rest of the first reply is the return.
    Scenario { name: "finishing", last: DONE, ..HOLDING },
    Scenario {
        name: "returning",
        before: &[Step::Say("I want to talk to the closer")],
        last: DONE,
        waits_for: model("polisher", After::Message),
        handoff: Some(HandoffState::Returning),
        ..TALKING
    },
    Scenario {
        name: "completed",
        last: DONE,
        waits_for: model("assistant", After::Message),
        handoff: Some(HandoffState::Completed),
        ..HOLDING
    },
    Scenario {
        name: "given_back",
        last: Step::Return,
        waits_for: model("assistant", After::Message),
        handoff: Some(HandoffState::Completed),
        ..HOLDING
    },
    Scenario {
        name: "declined",
        last: Step::Say("it is not yours"),
        waits_for: model("assistant", After::Message),
        handoff: Some(HandoffState::Cancelled),
        ..HOLDING
    },
    Scenario {
        name: "expired",
        before: &[Step::Say("I want to talk to the brief one"), Step::Expire],
        handoff: Some(HandoffState::Cancelled),
        ..TALKING
    },
    Scenario {
        name: "failed",
        last: Step::Say("I want to talk to the broken one"),
        waits_for: model("assistant", After::ToolResult),
        handoff: Some(HandoffState::Error),
        ..TALKING
    },
    // The person leaves. The run that announces it is queued behind another one, or the other server gets the request.
    Scenario {
        name: "leaving",
        before: &[Step::Say("I want to talk to the guest")],
        last: Step::SayTo("assistant", "tell me more"),
        handoff: Some(HandoffState::Cancelled),
        then: Some(Step::Exit),
        ..TALKING
    },
    Scenario { name: "left", meanwhile: Some(Step::Exit), ..HOLDING },
];
