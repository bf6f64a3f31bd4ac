"""What is sent when, and what happens on failure, without input or output.

``exchange`` and ``follow`` are generators of steps. The clients carry out each step and send back its outcome, or throw the failure in.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Generator, Mapping, Optional, TypeVar, Union

from ._calls import Call, run_events_path
from ._errors import ApiError, ProtocolError, RequestTimeoutError, TransportError, error_of
from ._events import Event, RunFailed, RunFinished, RunStarted, event_of
from ._resume import Position
from ._sse import FrameReader

T = TypeVar("T")

REFUSED = {"rate_limited", "too_many_runs", "too_many_streams", "too_many_connections", "overloaded", "draining"}
"""Codes of requests that had no effect, so that any of them can be repeated."""
UNCERTAIN = {"request_timeout", "store_unavailable", "outcome_unknown", "timed_out", "identity_unavailable", "internal"}
"""Codes after which a repeatable request is sent again."""
MAX_PAUSE = 10.0


@dataclass(frozen=True)
class Settings:
    """``timeout`` is for one request, ``run_timeout`` for a response that comes when a run has ended, both in seconds."""

    timeout: float = 30.0
    run_timeout: Optional[float] = 600.0
    silence: float = 45.0
    """A stream without a byte for this long is taken for dead. The server sends a comment every 15 s."""
    retries: int = 5
    backoff: float = 0.25


class Failure(Exception):
    """The connection failed. ``is_timeout``: it was silent for too long."""

    def __init__(self, message: str, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


@dataclass(frozen=True)
class Request:
    """Step: send it. The outcome is a ``Response`` with its body, or a ``Failure``."""

    call: Call[Any]
    headers: Mapping[str, str]
    timeout: float
    is_stream: bool = False
    """The response stays open and is read with ``Read``, unless it is a refusal."""


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sleep:
    """Step: wait."""

    seconds: float


@dataclass(frozen=True)
class Read:
    """Step: the next bytes of the open response. The outcome is empty at its end."""


Step = Union[Request, Sleep, Read, Event]


class Clock:
    """The time that a caller allows."""

    def __init__(self, seconds: Optional[float]) -> None:
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self.run_id: Optional[str] = None

    def left(self, at_most: float) -> float:
        """The rest of the time, or ``at_most``. Raises ``RequestTimeoutError`` if there is none left."""
        if self._ends_at is None:
            return at_most
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise RequestTimeoutError("the request took longer than allowed", self.run_id)
        return min(left, at_most)


class Attempts:
    """Counts attempts, and decides whether there is another one."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock, self._made = settings, clock, 0

    def reset(self) -> None:
        self._made = 0

    def pause(self, error: Exception, retry_after: Optional[float] = None) -> Sleep:
        """The pause before the next attempt. Raises the error if there is none."""
        self._made += 1
        if self._made > self._settings.retries:
            raise error
        pause = self._settings.backoff * 2.0 ** (self._made - 1) * random.uniform(0.75, 1.25)
        return Sleep(self._clock.left(max(min(pause, MAX_PAUSE), retry_after or 0.0)))


def exchange(call: Call[T], settings: Settings, timeout: Optional[float]) -> Generator[Step, Any, T]:
    """Sends a request until there is a response, and reads it."""
    limit = timeout if timeout is not None else settings.run_timeout if call.waits_for_run else None
    clock = Clock(limit)
    attempts = Attempts(settings, clock)
    headers = {"Accept": "application/json", **call.headers}
    # A response that waits for a run has no limit of its own.
    longest = 86_400.0 if call.waits_for_run else settings.timeout
    while True:
        try:
            response = yield Request(call, headers, clock.left(longest))
        except Failure as failure:
            clock.left(1.0)
            if failure.is_timeout and not call.waits_for_run and not call.is_repeatable:
                raise RequestTimeoutError(str(failure)) from failure
            error = TransportError(str(failure))
            if not call.is_repeatable:
                raise error from failure
            yield attempts.pause(error)
            continue
        if response.status < 400:
            if call.is_binary:
                return call.read(response.body)
            return call.read(_json(response.body) if response.body else None)
        refusal = problem(response, call)
        if not may_repeat(refusal, call):
            raise refusal
        yield attempts.pause(refusal, refusal.retry_after)


def follow(
    position: Position,
    settings: Settings,
    timeout: Optional[float],
    first: Optional[Call[Any]] = None,
    run_id: Optional[str] = None,
    path: Optional[str] = None,
    params: Optional[Mapping[str, str]] = None,
) -> Generator[Step, Any, None]:
    """The events of a run or a thread, over as many connections as it takes.

    ``first`` is the request that starts the run. It has an idempotency key, so it is sent again until the id of the run is known. ``path``
    is that of a stream without an end; otherwise the stream ends with the run.
    """
    clock = Clock(timeout)
    clock.run_id = run_id
    attempts = Attempts(settings, clock)
    has_ended = False
    while not has_ended:
        call = first if first is not None and run_id is None else _join(path or run_events_path(run_id or ""), params)
        headers: Dict[str, str] = {"Accept": "text/event-stream", **call.headers}
        if position.last_id and call is not first:
            headers["Last-Event-ID"] = str(position.last_id)
        try:
            response = yield Request(call, headers, clock.left(settings.silence), is_stream=True)
            if response.status == 204:
                return
            if response.status >= 400:
                refusal = problem(response, call)
                if not may_repeat(refusal, call):
                    raise refusal
                yield attempts.pause(refusal, refusal.retry_after)
                continue
            position.reconnect()
            frames = FrameReader()
            while True:
                chunk = yield Read()
                clock.left(1.0)
                if not chunk:
                    break
                for frame in frames.feed(chunk):
                    attempts.reset()
                    for raw in position.accept(_json(frame.data.encode()), frame.id):
                        event = event_of(raw, position.last_id)
                        if path is None and isinstance(event, RunStarted):
                            run_id = clock.run_id = event.run_id
                            has_ended = False
                        if path is None and isinstance(event, (RunFinished, RunFailed)):
                            has_ended = True
                        yield event
                        # A run that waits may continue at once, so its stream is read until the server ends it.
                        if has_ended and not (isinstance(event, RunFinished) and event.outcome == "interrupt"):
                            return
            if not has_ended:
                yield attempts.pause(TransportError("the stream ended before the run did"))
        except Failure as failure:
            clock.left(1.0)
            if not has_ended:
                yield attempts.pause(TransportError(str(failure)))


def _join(path: str, params: Optional[Mapping[str, str]]) -> Call[None]:
    return Call("GET", path, lambda _: None, params=params or {})


def problem(response: Response, call: Call[Any]) -> ApiError:
    try:
        body: Any = json.loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"detail": response.body[:200].decode("utf-8", "replace"), "title": "no problem document"}
    body.setdefault("status", response.status)
    after = response.headers.get("retry-after", "")
    return error_of(body, call.family, float(after) if after.isdigit() else None)


def may_repeat(error: ApiError, call: Call[Any]) -> bool:
    return error.code in REFUSED or (call.is_repeatable and error.code in UNCERTAIN)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise ProtocolError(f"the server sent no JSON: {error}") from error
