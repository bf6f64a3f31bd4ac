"""Typed events of a stream. Baton sends AG-UI 1.0; ``raw`` has the event as it was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._json import decode
from ._models import Part, Progress, Source, SubAgentResult


@dataclass(frozen=True)
class Event:
    """Any event. ``id`` is the position to resume after; events of a type that is not known here are plain ``Event``."""

    type: str
    id: int
    thread_id: str
    run_id: str
    agent: str
    path: List[str]
    subagent_run_id: Optional[str]
    """The session of the sub-agent that it belongs to; ``None`` for what the user sees."""
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class RunStarted(Event):
    """A run starts, or continues after it waited."""


@dataclass(frozen=True)
class RunFinished(Event):
    """A run ends: ``success``, ``cancelled``, or ``interrupt`` if it waits for the decisions in ``interrupts``."""

    outcome: str = "success"
    interrupts: List[Dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class RunFailed(Event):
    """A run ends without an answer."""

    code: str = ""
    message: str = ""


@dataclass(frozen=True)
class TextStarted(Event):
    """A text starts. ``name`` is what people call the speaker."""

    message_id: str = ""
    name: str = ""


@dataclass(frozen=True)
class TextDelta(Event):
    """More of a text."""

    message_id: str = ""
    delta: str = ""


@dataclass(frozen=True)
class TextEnded(Event):
    """A text is complete."""

    message_id: str = ""


@dataclass(frozen=True)
class ReasoningDelta(Event):
    """More of what a model thinks before it answers."""

    message_id: str = ""
    delta: str = ""


@dataclass(frozen=True)
class ToolCalled(Event):
    """A tool is called; its arguments follow as ``ToolArguments``."""

    tool_call_id: str = ""
    tool: str = ""


@dataclass(frozen=True)
class ToolArguments(Event):
    """The arguments of a call, as JSON text."""

    tool_call_id: str = ""
    delta: str = ""


@dataclass(frozen=True)
class ToolReturned(Event):
    """The output of a call."""

    tool_call_id: str = ""
    content: str = ""


@dataclass(frozen=True)
class SubAgentStarted(Event):
    """An agent works for another one. ``name`` is what people call it; ``agent`` is its id."""

    session_id: str = ""
    name: str = ""
    parent_session_id: Optional[str] = None


@dataclass(frozen=True)
class SubAgentFinished(Event):
    """An agent that worked for another one has ended."""

    session_id: str = ""


@dataclass(frozen=True)
class SubAgentFailed(Event):
    """An agent that worked for another one has failed."""

    session_id: str = ""
    code: str = ""
    message: str = ""


@dataclass(frozen=True)
class SubAgentAnswered(Event):
    """The result of one sub-agent, as soon as it is there."""

    result: SubAgentResult = SubAgentResult("", False)


@dataclass(frozen=True)
class ActiveAgentChanged(Event):
    """The agent that speaks to the user. ``exitable`` says whether the user can leave it, ``mode`` what it does while it holds the thread."""

    active_agent: str = ""
    display_name: str = ""
    exitable: bool = False
    mode: Optional[str] = None


@dataclass(frozen=True)
class StatusChanged(Event):
    """What happens now, for people: "Researching…"."""

    text: str = ""


@dataclass(frozen=True)
class ProgressChanged(Event):
    """How far a workflow has come."""

    progress: Progress = Progress("", "", 0, 0)


@dataclass(frozen=True)
class FilesAdded(Event):
    """The images and files of an answer, as parts of its message. ``uri`` of a part is its download address."""

    message_id: str = ""
    parts: List[Part] = field(default_factory=list)


@dataclass(frozen=True)
class HandoffChanged(Event):
    """A handoff has another phase: connecting, active, returning, completed, cancelled or error. ``message`` is for people."""

    handoff_id: str = ""
    phase: str = ""
    source_agent_id: str = ""
    target_agent_id: str = ""
    display_name: str = ""
    reason: str = ""
    message: str = ""
    estimated_duration_seconds: Optional[int] = None


@dataclass(frozen=True)
class ApprovalChanged(Event):
    """A call waits for a decision, or was decided (``status``)."""

    approval_id: str = ""
    status: str = "pending"
    tool: str = ""
    arguments: Any = None
    risk: str = ""


@dataclass(frozen=True)
class UsageReported(Event):
    """What the run took, who answered, and the agents that contributed."""

    usage: Mapping[str, Any] = field(default_factory=dict)
    answered_by: Optional[str] = None
    sources: List[Source] = field(default_factory=list)


@dataclass(frozen=True)
class TurnRestarted(Event):
    """A text was cut off and is written again: drop what arrived of it."""

    message_id: str = ""


Fields = Dict[str, Any]


def _outcome(raw: Mapping[str, Any]) -> Fields:
    outcome = raw.get("outcome") or {}
    return {"outcome": outcome.get("type", "success"), "interrupts": outcome.get("interrupts", [])}


def _active(value: Optional[Mapping[str, Any]]) -> Optional[Fields]:
    if not value:
        return None
    return {
        "active_agent": value["id"],
        "display_name": value["display_name"],
        "exitable": value.get("exitable", False),
        "mode": value.get("mode"),
    }


def _snapshot(raw: Mapping[str, Any]) -> Optional[Fields]:
    return _active(raw["snapshot"].get("activeAgent"))


def _delta(raw: Mapping[str, Any]) -> Optional[Fields]:
    changes = [one["value"] for one in raw["delta"] if one.get("path") == "/activeAgent"]
    return _active(changes[-1]) if changes else None


def _subagent(raw: Mapping[str, Any]) -> Fields:
    return {
        "session_id": raw["subagentRunId"],
        "name": raw["name"],
        "parent_session_id": raw.get("parentSubagentRunId"),
    }


def _take(*names: str, **renamed: str) -> Callable[[Mapping[str, Any]], Fields]:
    """Fields of AG-UI: those of the same name, and those of another one."""
    wanted = {**{name: name for name in names}, **renamed}
    return lambda raw: {ours: raw[theirs] for ours, theirs in wanted.items() if theirs in raw}


def _handoff(value: Mapping[str, Any]) -> Fields:
    renamed = {"source_agent_id": value["from"], "target_agent_id": value["to"]}
    return {**renamed, **_take("handoff_id", "phase", "display_name", "reason", "message", "estimated_duration_seconds")(value)}


def _usage(value: Mapping[str, Any]) -> Fields:
    return {
        "usage": value.get("usage") or {},
        "answered_by": value.get("answered_by"),
        "sources": [decode(Source, one) for one in value.get("sources") or ()],
    }


Reader = Callable[[Mapping[str, Any]], Optional[Fields]]

_TYPES: Mapping[str, tuple[type[Event], Reader]] = {
    "RUN_STARTED": (RunStarted, lambda _: {}),
    "RUN_FINISHED": (RunFinished, _outcome),
    "RUN_ERROR": (RunFailed, _take("code", "message")),
    "TEXT_MESSAGE_START": (TextStarted, _take("name", message_id="messageId")),
    "TEXT_MESSAGE_CONTENT": (TextDelta, _take("delta", message_id="messageId")),
    "TEXT_MESSAGE_END": (TextEnded, _take(message_id="messageId")),
    "REASONING_MESSAGE_CONTENT": (ReasoningDelta, _take("delta", message_id="messageId")),
    "TOOL_CALL_START": (ToolCalled, _take(tool_call_id="toolCallId", tool="toolCallName")),
    "TOOL_CALL_ARGS": (ToolArguments, _take("delta", tool_call_id="toolCallId")),
    "TOOL_CALL_RESULT": (ToolReturned, _take("content", tool_call_id="toolCallId")),
    "SUBAGENT_STARTED": (SubAgentStarted, _subagent),
    "SUBAGENT_FINISHED": (SubAgentFinished, _take(session_id="subagentRunId")),
    "SUBAGENT_ERROR": (SubAgentFailed, _take("code", "message", session_id="subagentRunId")),
    "STATE_SNAPSHOT": (ActiveAgentChanged, _snapshot),
    "STATE_DELTA": (ActiveAgentChanged, _delta),
}

_CUSTOM: Mapping[str, tuple[type[Event], Reader]] = {
    "baton.result": (SubAgentAnswered, lambda value: {"result": decode(SubAgentResult, value)}),
    "baton.handoff": (HandoffChanged, _handoff),
    "baton.approval": (ApprovalChanged, _take("approval_id", "status", "tool", "arguments", "risk")),
    "baton.usage": (UsageReported, _usage),
    "baton.turn_restarted": (TurnRestarted, _take("message_id")),
}

_ACTIVITY: Mapping[str, tuple[type[Event], Reader]] = {
    "baton.status": (StatusChanged, _take("text")),
    "baton.files": (FilesAdded, _take("message_id", "parts")),
    "baton.progress": (ProgressChanged, lambda value: {"progress": decode(Progress, value)}),
}


def event_of(raw: Mapping[str, Any], id: int) -> Event:
    """The typed event of an AG-UI event."""
    kind = str(raw.get("type"))
    origin = (raw.get("metadata") or {}).get("baton") or {}
    common: Fields = {
        "type": kind,
        "id": id,
        "thread_id": str(origin.get("thread_id", raw.get("threadId", ""))),
        "run_id": str(origin.get("run_id", raw.get("runId", ""))),
        "agent": str(origin.get("agent", "")),
        "path": list(origin.get("path") or ()),
        "subagent_run_id": raw.get("subagentRunId"),
        "raw": raw,
    }
    found, value = _TYPES.get(kind), raw
    if kind == "CUSTOM":
        found, value = _CUSTOM.get(str(raw.get("name"))), raw.get("value") or {}
    elif kind == "ACTIVITY_SNAPSHOT":
        found, value = _ACTIVITY.get(str(raw.get("activityType"))), raw.get("content") or {}
    if found is None:
        return Event(**common)
    fields = found[1](value)
    return Event(**common) if fields is None else found[0](**common, **fields)
