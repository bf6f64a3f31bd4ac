"""The requests of the API, without the connection that sends them: the synchronous and the asynchronous client share them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote

from ._errors import DelegationError, HandoffError, OrchestrationError
from ._json import decode
from ._models import (
    Accepted,
    Agent,
    Answer,
    Approval,
    Artifact,
    Content,
    Delegation,
    HandoffAccept,
    HandoffReturn,
    HandoffSession,
    Me,
    Message,
    Page,
    Part,
    PastHandoff,
    Run,
    ThreadInfo,
)

T = TypeVar("T")
Json = Dict[str, Any]


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and how its response is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Optional[Json] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    form: Optional[Mapping[str, Any]] = None
    """The fields of a ``multipart/form-data`` body; a file is ``(name, bytes, media type)``."""
    family: type[OrchestrationError] = OrchestrationError
    is_repeatable: bool = True
    """Whether it can be sent again if it is unknown whether it arrived."""
    waits_for_run: bool = False
    """Whether the response comes when a run has ended."""
    is_binary: bool = False
    """Whether ``read`` gets the bytes of the response instead of its JSON."""


def _given(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _as(kind: type[T]) -> Callable[[Any], T]:
    return lambda value: decode(kind, value)


def _page(kind: type[T]) -> Callable[[Any], Page[T]]:
    return lambda value: Page([decode(kind, one) for one in value["data"]], value.get("next_cursor"))


def _nothing(_: Any) -> None:
    return None


def _key(key: Optional[str]) -> Dict[str, str]:
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def _id(text: str) -> str:
    return quote(text, safe="")


def thread_path(thread: str, rest: str = "") -> str:
    return f"/api/v1/threads/{_id(thread)}{rest}"


# Messages


def message_body(
    content: Content, agent: Optional[str], on_busy: Optional[str], metadata: Optional[Mapping[str, Any]]
) -> Json:
    parts = content if isinstance(content, str) else list(content)
    return _given(content=parts, agent=agent, on_busy=on_busy, metadata=metadata)


def send(thread: str, body: Json, key: Optional[str]) -> Call[Answer]:
    return Call(
        "POST", thread_path(thread, "/messages"), _as(Answer), json=body, headers=_key(key), waits_for_run=True
    )


def submit(thread: str, body: Json, key: Optional[str]) -> Call[Accepted]:
    headers = {**_key(key), "Prefer": "respond-async"}
    return Call("POST", thread_path(thread, "/messages"), _as(Accepted), json=body, headers=headers)


def delegation_body(
    agents: Sequence[str], message: str, strategy: str, synthesis: str, agent_timeout: Optional[float]
) -> Json:
    timeout_ms = None if agent_timeout is None else max(1, round(agent_timeout * 1000))
    names = [agents] if isinstance(agents, str) else list(agents)
    return _given(agents=names, message=message, strategy=strategy, synthesis=synthesis, timeout_ms=timeout_ms)


def delegate(thread: str, body: Json, key: Optional[str]) -> Call[Delegation]:
    path = thread_path(thread, "/delegations")
    return Call(
        "POST", path, _as(Delegation), json=body, headers=_key(key), family=DelegationError, waits_for_run=True
    )


# Threads


def threads(query: Optional[str], limit: Optional[int], cursor: Optional[str]) -> Call[Page[ThreadInfo]]:
    return Call("GET", "/api/v1/threads", _page(ThreadInfo), params=_given(q=query, limit=limit, cursor=cursor))


def thread(id: str) -> Call[ThreadInfo]:
    return Call("GET", thread_path(id), _as(ThreadInfo))


def rename_thread(id: str, title: str) -> Call[ThreadInfo]:
    return Call("PATCH", thread_path(id), _as(ThreadInfo), json={"title": title})


def delete_thread(id: str) -> Call[None]:
    return Call("DELETE", thread_path(id), _nothing)


def messages(id: str, limit: Optional[int], before: Optional[int], internal: bool) -> Call[Page[Message]]:
    params = _given(limit=limit, before=before, include="internal" if internal else None)
    return Call("GET", thread_path(id, "/messages"), _page(Message), params=params)


def upload(thread: str, name: str, data: bytes, media_type: str) -> Call[Artifact]:
    return Call(
        "POST",
        "/api/v1/artifacts",
        _as(Artifact),
        form={"thread_id": (None, thread), "file": (name, data, media_type)},
        is_repeatable=False,
    )


def download(file: Union[str, Part]) -> Call[bytes]:
    """``file`` is an address, or a part of a message. Addresses of other servers are refused: they would get the credential."""
    uri = file if isinstance(file, str) else str(file.get("uri", ""))
    if not uri.startswith("/api/v1/artifacts/"):
        raise ValueError(f"not an artifact of this server: {uri!r}")
    return Call("GET", uri, bytes, headers={"Accept": "*/*"}, is_binary=True)


# Handoffs


def start_handoff(thread: str, body: Json) -> Call[HandoffAccept]:
    path = thread_path(thread, "/handoff")
    return Call("POST", path, _as(HandoffAccept), json=body, family=HandoffError, is_repeatable=False)


def handoff_body(target: str, reason: str, options: Mapping[str, Any]) -> Json:
    return _given(target_agent_id=target, handoff_reason=reason, **options)


def handoff(thread: str) -> Call[HandoffSession]:
    return Call("GET", thread_path(thread, "/handoff"), _as(HandoffSession), family=HandoffError)


def exit_handoff(thread: str) -> Call[HandoffReturn]:
    path = thread_path(thread, "/handoff")
    return Call("DELETE", path, _as(HandoffReturn), family=HandoffError, is_repeatable=False)


def return_handoff(thread: str, status: str, summary: Optional[str], artifacts: Sequence[str]) -> Call[HandoffReturn]:
    body = _given(completion_status=status, result_summary=summary, artifacts_created=list(artifacts))
    path = thread_path(thread, "/handoff/return")
    return Call("POST", path, _as(HandoffReturn), json=body, family=HandoffError, is_repeatable=False)


def resume_handoff(thread: str, id: str) -> Call[HandoffSession]:
    path = thread_path(thread, "/handoff/resume")
    body = {"handoff_id": id}
    return Call("POST", path, _as(HandoffSession), json=body, family=HandoffError, is_repeatable=False)


def handoffs(thread: str) -> Call[List[PastHandoff]]:
    def read(value: Any) -> List[PastHandoff]:
        return [decode(PastHandoff, one) for one in value["data"]]

    return Call("GET", thread_path(thread, "/handoffs"), read, family=HandoffError)


def discard_handoff(thread: str, id: str) -> Call[None]:
    return Call("DELETE", thread_path(thread, f"/handoffs/{_id(id)}"), _nothing, family=HandoffError)


# Runs, approvals, agents


def runs(**filters: Any) -> Call[Page[Run]]:
    return Call("GET", "/api/v1/runs", _page(Run), params=_given(**filters))


def run(id: str) -> Call[Run]:
    return Call("GET", f"/api/v1/runs/{_id(id)}", _as(Run))


def cancel_run(id: str, mode: str) -> Call[str]:
    path = f"/api/v1/runs/{_id(id)}/cancel"
    return Call("POST", path, lambda value: str(value["status"]), json={"mode": mode})


def run_events_path(id: str) -> str:
    return f"/api/v1/runs/{_id(id)}/events"


def approvals(**filters: Any) -> Call[Page[Approval]]:
    return Call("GET", "/api/v1/approvals", _page(Approval), params=_given(**filters))


def approval(id: str) -> Call[Approval]:
    return Call("GET", f"/api/v1/approvals/{_id(id)}", _as(Approval))


def decide(id: str, decision: str, **fields: Any) -> Call[Approval]:
    body = _given(decision=decision, **fields)
    return Call("POST", f"/api/v1/approvals/{_id(id)}", _as(Approval), json=body, is_repeatable=False)


def agents(include_hidden: bool) -> Call[List[Agent]]:
    def read(value: Any) -> List[Agent]:
        return [decode(Agent, one) for one in value["data"]]

    return Call("GET", "/api/v1/agents", read, params={"all": "true"} if include_hidden else {})


def agent(id: str) -> Call[Agent]:
    return Call("GET", f"/api/v1/agents/{_id(id)}", _as(Agent))


def me() -> Call[Me]:
    return Call("GET", "/api/v1/me", _as(Me))


def feedback(message: str, rating: int, comment: Optional[str]) -> Call[None]:
    path = f"/api/v1/messages/{_id(message)}/feedback"
    return Call("POST", path, _nothing, json=_given(rating=rating, comment=comment))
