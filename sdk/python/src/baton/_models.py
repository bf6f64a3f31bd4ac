"""What the server answers with. The names are those of the HTTP API."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Dict, Generic, Iterator, List, Optional, Sequence, TypeVar, Union, overload

from ._errors import DelegationError, RunError
from ._json import decode

T = TypeVar("T")
Part = Dict[str, Any]
"""A part of a message: ``{"type": "text", "text": …}``, or one of the types ``image``, ``file`` and ``data``."""
Content = Union[str, Sequence[Part]]


@dataclass(frozen=True)
class Usage:
    """Tokens and cost. If ``cost_known`` is false, ``cost_usd`` is the part that is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: str = "0"
    cost_known: bool = True
    estimated: bool = False

    @property
    def cost(self) -> Decimal:
        """``cost_usd`` as an exact number."""
        return Decimal(self.cost_usd)


@dataclass(frozen=True)
class Source:
    """An agent that contributed to an answer, and the session in which it did."""

    agent: str
    session_id: str


@dataclass(frozen=True)
class SubAgentResult:
    """The result of one agent that was asked by another one, or by a delegation."""

    agent_id: str
    success: bool
    latency_ms: int = 0
    response: Optional[str] = None
    error: Optional[str] = None
    error_type: Optional[str] = None
    session_id: Optional[str] = None

    def unwrap(self) -> str:
        """The response. Raises ``DelegationError`` if the agent failed."""
        if self.success and self.response is not None:
            return self.response
        error = DelegationError({"code": self.error_type or "failed", "detail": f"{self.agent_id}: {self.error}"})
        error.agent_id = self.agent_id
        raise error


class Results(Sequence[SubAgentResult]):
    """The results of sub-agents, in order: by position, or by the name of the agent.

    ``results["web-research"]`` is the newest result of that agent; ``of`` has all of them.
    """

    def __init__(self, results: Sequence[SubAgentResult] = ()) -> None:
        self._results = list(results)

    @classmethod
    def from_json(cls, value: Any) -> Results:
        return cls([decode(SubAgentResult, one) for one in value or ()])

    @overload
    def __getitem__(self, key: Union[int, str]) -> SubAgentResult: ...
    @overload
    def __getitem__(self, key: slice) -> Results: ...
    def __getitem__(self, key: Union[int, str, slice]) -> Union[SubAgentResult, Results]:
        if isinstance(key, str):
            found = self.of(key)
            if not found:
                raise KeyError(key)
            return found[-1]
        if isinstance(key, slice):
            return Results(self._results[key])
        return self._results[key]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[SubAgentResult]:
        return iter(self._results)

    def __contains__(self, key: object) -> bool:
        return key in self._results or any(one.agent_id == key for one in self._results)

    def __repr__(self) -> str:
        return f"Results({self._results!r})"

    def of(self, agent_id: str) -> List[SubAgentResult]:
        """All results of an agent, the oldest first."""
        return [one for one in self._results if one.agent_id == agent_id]

    @property
    def agents(self) -> List[str]:
        """The agents, in the order of their first result."""
        return list(dict.fromkeys(one.agent_id for one in self._results))

    @property
    def failed(self) -> List[SubAgentResult]:
        return [one for one in self._results if not one.success]

    def raise_for_failures(self) -> None:
        """Raises the ``DelegationError`` of the first agent that failed."""
        for one in self.failed:
            one.unwrap()


@dataclass(frozen=True)
class Progress:
    """How far an agent has come in its workflow: step 2 of 5, with 4 of 6 values. ``text`` says it in one line, ``mode`` is the agent's."""

    state: str
    label: str
    step: int
    total: int
    answered: int = 0
    questions: int = 0
    mode: Optional[str] = None
    text: str = ""


@dataclass(frozen=True)
class Message:
    """One entry of a thread's history."""

    message_id: str
    role: str
    parts: List[Part]
    run_id: str
    number: int
    visibility: str
    created_at: datetime
    agent: Optional[str] = None
    display_name: Optional[str] = None
    rating: Optional[int] = None

    @property
    def text(self) -> str:
        """The text parts, one after the other."""
        return "\n".join(part["text"] for part in self.parts if part.get("type") == "text")


@dataclass(frozen=True)
class RunFailure:
    """Why a run gave no answer."""

    code: str
    message: str


@dataclass(frozen=True)
class Holder:
    """The agent that holds a thread by a handoff."""

    agent: str
    display_name: str
    handoff_id: str
    state: str
    progress: Optional[Progress] = None


@dataclass(frozen=True)
class PreviewField:
    label: str
    value: str


@dataclass(frozen=True)
class Preview:
    """A call that waits for a decision, in a few words."""

    heading: str
    fields: List[PreviewField]


@dataclass(frozen=True)
class Approval:
    """A tool call or a question that waits, or waited, for a person."""

    approval_id: str
    kind: str
    agent: str
    tool: str
    arguments: Any
    digest: str
    path: str
    risk: str
    preview: Preview
    schema: Any
    created_at: datetime
    expires_at: datetime
    status: str = "pending"
    run_id: Optional[str] = None
    thread_id: Optional[str] = None
    choices: List[str] = field(default_factory=list)
    handoff_id: Optional[str] = None
    decided_at: Optional[datetime] = None
    decided_by: Optional[str] = None
    reason: Optional[str] = None
    answer: Any = None
    answer_run_id: Optional[str] = None
    edited: Any = None
    remember: bool = False


@dataclass(frozen=True)
class Answer:
    """The end of a run. ``status`` is ``completed``, or ``waiting`` with the ``approvals`` that it waits for."""

    run_id: str
    thread_id: str
    status: str
    agent: str
    usage: Usage
    results: Results
    message: Optional[Message] = None
    handoff: Optional[Holder] = None
    approvals: List[Approval] = field(default_factory=list)
    error: Optional[RunFailure] = None

    @property
    def text(self) -> str:
        """The text of the answer; empty if there is none yet."""
        return self.message.text if self.message else ""

    def raise_for_status(self) -> Answer:
        """Itself, or a ``RunError`` if the run ended without an answer."""
        if self.status in ("completed", "waiting"):
            return self
        error = self.error or RunFailure(self.status, f"the run ended as {self.status}")
        raise RunError(self.run_id, self.status, error.code, error.message)


@dataclass(frozen=True)
class Delegation:
    """The end of a delegation: one result for each agent, and one text of all of them."""

    run_id: str
    status: str
    results: Results
    usage: Usage
    synthesis: Optional[str] = None
    error: Optional[RunFailure] = None


@dataclass(frozen=True)
class Accepted:
    """A message that was stored and whose run is queued."""

    run_id: str
    thread_id: str
    message_id: str
    status: str


@dataclass(frozen=True)
class HandoffAccept:
    """The target has the thread, or will have it (``queued``)."""

    thread_id: str
    source_agent_id: str
    target_agent_id: str
    accepted: bool
    queued: bool = False
    handoff_id: Optional[str] = None
    run_id: Optional[str] = None
    estimated_duration_seconds: Optional[int] = None


@dataclass(frozen=True)
class HandoffSession:
    """A handoff as it is now."""

    handoff_id: str
    thread_id: str
    tenant_id: str
    user_id: str
    source_agent_id: str
    target_agent_id: str
    display_name: str
    state: str
    context_summary: str
    handoff_reason: str
    started_at: datetime
    artifacts_created: List[str]
    workflow_metadata: Dict[str, Any]
    handoff_metadata: Dict[str, Any]
    workflow_state: Optional[str] = None
    progress: Optional[Progress] = None
    completed_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    result_summary: Optional[str] = None
    run_id: Optional[str] = None


@dataclass(frozen=True)
class HandoffReturn:
    """The thread is back. ``message`` is the sentence for the person."""

    handoff_id: str
    thread_id: str
    tenant_id: str
    source_agent_id: str
    target_agent_id: str
    completion_status: str
    message: str
    artifacts_created: List[str]
    result_summary: Optional[str] = None


@dataclass(frozen=True)
class PastHandoff:
    """A handoff in the history of its thread, open or ended."""

    handoff_id: str
    state: str
    from_: str
    to: str
    display_name: str
    reason: str
    message: str
    started_at: datetime
    completed_at: Optional[datetime] = None
    end_message: Optional[str] = None
    progress: Optional[Progress] = None


@dataclass(frozen=True)
class ResumableHandoff:
    """A handoff that ended early and can be resumed. ``message`` asks the person."""

    handoff_id: str
    agent: str
    display_name: str
    reason: str
    message: str
    state: str
    started_at: datetime
    updated_at: datetime
    progress: Optional[Progress] = None


@dataclass(frozen=True)
class ThreadInfo:
    """A conversation as it is now."""

    thread_id: str
    tenant_id: str
    user_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_handoff_active: bool
    total_messages: int
    last_seq: int
    queued: int = 0
    current_active_agent: Optional[str] = None
    handoff_target_agent: Optional[str] = None
    active_run_id: Optional[str] = None
    progress: Optional[Progress] = None
    resumable_handoffs: List[ResumableHandoff] = field(default_factory=list)


@dataclass(frozen=True)
class Session:
    """The part of one agent in a run, with those that it involved."""

    session_id: str
    agent: str
    path: str
    status: str
    started_at: datetime
    own: Usage
    subtree: Usage
    sessions: List[Session]
    finished_at: Optional[datetime] = None
    why: Optional[str] = None
    error: Optional[RunFailure] = None


@dataclass(frozen=True)
class Run:
    """The work for one message. ``results`` and ``sessions`` are empty in lists."""

    run_id: str
    thread_id: str
    user_id: str
    agent: str
    status: str
    created_at: datetime
    usage: Usage
    sources: List[Source] = field(default_factory=list)
    results: Results = field(default_factory=Results)
    sessions: List[Session] = field(default_factory=list)
    files: List[Part] = field(default_factory=list)
    answer: Optional[str] = None
    answered_by: Optional[str] = None
    value: Any = None
    limit: Optional[str] = None
    error: Optional[RunFailure] = None
    started_at: Optional[datetime] = None
    finished_at: Optional[datetime] = None

    @property
    def is_final(self) -> bool:
        return self.status in ("completed", "failed", "cancelled", "interrupted")


@dataclass(frozen=True)
class Agent:
    """An agent that can be asked."""

    id: str
    display_name: str
    description: str
    version: str
    holds_threads: bool
    can_be_orchestrated: bool
    tools: List[str]
    related: List[str]
    trigger_examples: List[str]


@dataclass(frozen=True)
class Artifact:
    """A file of a thread. ``uri`` refers to it in a message."""

    artifact_id: str
    thread_id: str
    name: str
    media_type: str
    size: int
    uri: str
    created_at: datetime
    run_id: Optional[str] = None


@dataclass(frozen=True)
class Me:
    """What the credential says: tenant, user, roles and permissions."""

    tenant_id: str
    user_id: str
    roles: List[str]
    permissions: List[str]
    auth: str


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. ``next_cursor`` is ``None`` on the last one."""

    data: List[T]
    next_cursor: Optional[str] = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)
