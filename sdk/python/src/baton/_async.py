"""The asynchronous client: the same methods as the synchronous one."""

from __future__ import annotations

import asyncio
import uuid
from types import TracebackType
from typing import Any, AsyncIterator, Dict, Generator, List, Mapping, Optional, Sequence, TypeVar, Union

import httpx

from . import _calls as calls
from ._calls import Call
from ._events import Event
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
from ._protocol import Failure, Read, Request, Response, Settings, Sleep, Step, exchange, follow
from ._resume import Position
from ._stream import Received

T = TypeVar("T")


class AsyncConnection:
    """Carries out the steps of the protocol."""

    def __init__(self, http: httpx.AsyncClient, settings: Settings) -> None:
        self._http, self._settings = http, settings

    async def call(self, call: Call[T], timeout: Optional[float] = None) -> T:
        steps = exchange(call, self._settings, timeout)
        exchanged = AsyncExchange(self._http)
        try:
            step = steps.send(None)
            while True:
                step = await exchanged.advance(steps, step)
        except Ended as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            await exchanged.close()

    def stream(self, position: Position, timeout: Optional[float], **source: Any) -> AsyncEventStream:
        return AsyncEventStream(self._http, follow(position, self._settings, timeout, **source), position)


class Ended(Exception):
    """The steps have ended. ``StopIteration`` cannot leave a coroutine."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class AsyncExchange:
    """One sequence of steps, with at most one open response."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._response: Optional[httpx.Response] = None
        self._chunks: Optional[AsyncIterator[bytes]] = None

    async def advance(self, steps: Generator[Step, Any, Any], step: Step) -> Step:
        """Carries out a step and gives the next one. Raises ``Ended`` after the last one."""
        failure: Optional[Failure] = None
        outcome: Any = None
        try:
            outcome = await self.do(step)
        except Failure as error:
            failure = error
        try:
            return steps.throw(failure) if failure is not None else steps.send(outcome)
        except StopIteration as end:
            raise Ended(end.value) from None

    async def do(self, step: Step) -> Any:
        """The outcome of a step. Raises ``Failure``."""
        if isinstance(step, Sleep):
            return await asyncio.sleep(step.seconds)
        try:
            if isinstance(step, Request):
                return await self.send(step)
            if isinstance(step, Read):
                return await self.read()
        except httpx.TimeoutException as error:
            raise Failure(f"the server sent nothing in time: {error!r}", is_timeout=True) from error
        except (httpx.TransportError, httpx.StreamError) as error:
            raise Failure(f"the connection failed: {error!r}") from error
        raise AssertionError(step)

    async def read(self) -> bytes:
        if self._chunks is None:
            return b""
        try:
            return await self._chunks.__anext__()
        except StopAsyncIteration:
            return b""

    async def send(self, step: Request) -> Response:
        await self.close()
        call = step.call
        request = self._http.build_request(
            call.method,
            call.path,
            params=dict(call.params) or None,
            json=call.json,
            files=dict(call.form) if call.form else None,
            headers=dict(step.headers),
            timeout=step.timeout,
        )
        response = await self._http.send(request, stream=True)
        if step.is_stream and response.status_code == 200:
            self._response, self._chunks = response, response.aiter_bytes()
            return Response(response.status_code)
        try:
            return Response(response.status_code, await response.aread(), response.headers)
        finally:
            await response.aclose()

    async def close(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()


class AsyncEventStream(Received):
    """Events as they happen. A connection that breaks is opened again without loss or repetition; the run does not end with it."""

    def __init__(self, http: httpx.AsyncClient, steps: Generator[Step, Any, None], position: Position) -> None:
        super().__init__(position)
        self._exchange, self._steps = AsyncExchange(http), steps

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        try:
            step = next(self._steps, None)
            while step is not None and not isinstance(step, Event):
                step = await self._exchange.advance(self._steps, step)
        except Ended:
            step = None
        except BaseException:
            await self.close()
            raise
        if step is None:
            await self.close()
            raise StopAsyncIteration
        self._add(step)
        return step

    async def wait(self) -> None:
        """Reads all events to the end of the stream."""
        async for _ in self:
            pass

    async def close(self) -> None:
        """Closes the connection. The run continues."""
        self._steps.close()
        await self._exchange.close()

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()


class AsyncHandoff:
    """The handoff of a thread."""

    def __init__(self, connection: AsyncConnection, thread_id: str) -> None:
        self._connection, self._thread_id = connection, thread_id

    async def start(self, target: str, reason: str, **options: Any) -> HandoffAccept:
        """Gives the thread to another agent. Raises ``HandoffError`` if it is refused, such as ``handoff_active``.

        Options: ``context_summary``, ``recent_message_count``, ``source_agent_id``, ``preserve_state``, ``return_expected``,
        ``handoff_metadata``, ``on_conflict``.
        """
        return await self._connection.call(calls.start_handoff(self._thread_id, calls.handoff_body(target, reason, options)))

    async def show(self) -> HandoffSession:
        """The active handoff. Raises ``HandoffError`` with ``no_active_handoff`` if there is none."""
        return await self._connection.call(calls.handoff(self._thread_id))

    async def exit(self) -> HandoffReturn:
        """Leaves it, whatever its agent is doing. What was collected is kept, so that it can be resumed."""
        return await self._connection.call(calls.exit_handoff(self._thread_id))

    async def resume(self, handoff_id: str) -> HandoffSession:
        """Continues one that was left, exactly where it was. ``Thread.info`` lists them as ``resumable_handoffs``."""
        return await self._connection.call(calls.resume_handoff(self._thread_id, handoff_id))

    async def give_back(
        self, completion_status: str = "completed", result_summary: Optional[str] = None, artifacts: Sequence[str] = ()
    ) -> HandoffReturn:
        """Returns the thread on behalf of its agent: ``completed``, ``cancelled`` or ``error``."""
        call = calls.return_handoff(self._thread_id, completion_status, result_summary, artifacts)
        return await self._connection.call(call)

    async def list(self) -> List[PastHandoff]:
        """All handoffs of the thread, the oldest first."""
        return await self._connection.call(calls.handoffs(self._thread_id))

    async def discard(self, handoff_id: str) -> None:
        """Deletes what an ended handoff has saved."""
        await self._connection.call(calls.discard_handoff(self._thread_id, handoff_id))


class AsyncThread:
    """One conversation, named by a UUID version 4. It exists on the server from its first message on."""

    def __init__(self, connection: AsyncConnection, thread_id: str) -> None:
        self._connection, self.id = connection, thread_id
        self.handoff = AsyncHandoff(connection, thread_id)

    async def send(
        self,
        content: Content,
        *,
        agent: Optional[str] = None,
        on_busy: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer:
        """Sends a message and waits for the answer. Raises ``RunError`` if the run ends without one.

        An answer with the status ``waiting`` has the ``approvals`` that the run waits for.
        """
        body = calls.message_body(content, agent, on_busy, metadata)
        answer = await self._connection.call(calls.send(self.id, body, idempotency_key), timeout)
        return answer.raise_for_status()

    def stream(
        self,
        content: Content,
        *,
        agent: Optional[str] = None,
        on_busy: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AsyncEventStream:
        """Sends a message and gives the events of its run. The message is sent when the first event is read."""
        body = calls.message_body(content, agent, on_busy, metadata)
        first = calls.send(self.id, body, idempotency_key)
        return self._connection.stream(Position(), timeout, first=first)

    async def submit(
        self,
        content: Content,
        *,
        agent: Optional[str] = None,
        on_busy: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Accepted:
        """Sends a message and returns as soon as it is stored."""
        body = calls.message_body(content, agent, on_busy, metadata)
        return await self._connection.call(calls.submit(self.id, body, idempotency_key))

    async def delegate(
        self,
        agents: Sequence[str],
        message: str,
        *,
        strategy: str = "parallel",
        synthesis: str = "concat",
        agent_timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Delegation:
        """Asks several agents the same and waits: one result for each of them, and one text of all of them.

        ``strategy`` is ``parallel``, ``sequential`` or ``first_success``; ``synthesis`` is ``concat``, ``llm`` or ``none``;
        ``agent_timeout`` is the time of each agent in seconds (30).
        """
        body = calls.delegation_body(agents, message, strategy, synthesis, agent_timeout)
        return await self._connection.call(calls.delegate(self.id, body, idempotency_key), timeout)

    def stream_delegation(
        self,
        agents: Sequence[str],
        message: str,
        *,
        strategy: str = "parallel",
        synthesis: str = "concat",
        agent_timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AsyncEventStream:
        """The same as events: each result as ``SubAgentAnswered`` as soon as it is there, then the combined text."""
        body = calls.delegation_body(agents, message, strategy, synthesis, agent_timeout)
        first = calls.delegate(self.id, body, idempotency_key)
        return self._connection.stream(Position(), timeout, first=first)

    def events(self, after: int = 0, *, detail: Optional[str] = None, timeout: Optional[float] = None) -> AsyncEventStream:
        """Everything that happens in the thread after an event, of all clients, until the stream is closed."""
        params = {"detail": detail} if detail else {}
        path = calls.thread_path(self.id, "/events")
        return self._connection.stream(Position(after), timeout, path=path, params=params)

    async def info(self) -> ThreadInfo:
        """The thread as it is now."""
        return await self._connection.call(calls.thread(self.id))

    async def messages(
        self, limit: Optional[int] = None, before: Optional[int] = None, *, internal: bool = False
    ) -> Page[Message]:
        """The newest messages, the oldest of them first. ``before`` is the ``number`` of a message."""
        return await self._connection.call(calls.messages(self.id, limit, before, internal))

    async def upload(self, name: str, data: bytes, media_type: str = "application/octet-stream") -> Artifact:
        """Stores a file in the thread. Refer to it in a message with ``{"type": "file", "name": …, "uri": …}``."""
        return await self._connection.call(calls.upload(self.id, name, data, media_type))

    async def download(self, file: Union[str, Part]) -> bytes:
        """The bytes of an image or file of a message, by its part or its ``uri``."""
        return await self._connection.call(calls.download(file))

    async def rename(self, title: str) -> ThreadInfo:
        return await self._connection.call(calls.rename_thread(self.id, title))

    async def delete(self) -> None:
        """Deletes the thread with everything that it owns."""
        await self._connection.call(calls.delete_thread(self.id))


class AsyncRuns:
    """The work for messages."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        thread_id: Optional[str] = None,
        agent: Optional[str] = None,
        status: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Run]:
        call = calls.runs(thread_id=thread_id, agent=agent, status=status, limit=limit, cursor=cursor)
        return await self._connection.call(call)

    async def get(self, run_id: str) -> Run:
        """A run with its answer, its ``results`` and its tree of sessions."""
        return await self._connection.call(calls.run(run_id))

    def events(
        self, run_id: str, after: int = 0, *, detail: Optional[str] = None, timeout: Optional[float] = None
    ) -> AsyncEventStream:
        """Joins a run after an event, or replays one that has ended. Ends with the run, or when it waits."""
        params = {"detail": detail} if detail else {}
        return self._connection.stream(Position(after), timeout, run_id=run_id, params=params)

    async def cancel(self, run_id: str, mode: str = "stop") -> str:
        """Ends a run: ``stop`` with one closing turn, ``abort`` at once. Returns its status."""
        return await self._connection.call(calls.cancel_run(run_id, mode))


class AsyncApprovals:
    """Calls and questions that wait for a person."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        status: Optional[str] = "pending",
        thread_id: Optional[str] = None,
        order: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Approval]:
        call = calls.approvals(status=status, thread_id=thread_id, order=order, limit=limit, cursor=cursor)
        return await self._connection.call(call)

    async def get(self, approval_id: str) -> Approval:
        return await self._connection.call(calls.approval(approval_id))

    async def approve(
        self,
        approval_id: str,
        *,
        reason: Optional[str] = None,
        arguments: Optional[Dict[str, Any]] = None,
        remember: Optional[bool] = None,
        digest: Optional[str] = None,
    ) -> Approval:
        """Allows a call. With ``arguments`` it is made with those instead; with ``digest`` only if it is still the same call."""
        fields = {"reason": reason, "arguments": arguments, "remember": remember, "digest": digest}
        return await self._connection.call(calls.decide(approval_id, "approve", **fields))

    async def deny(
        self,
        approval_id: str,
        *,
        reason: Optional[str] = None,
        remember: Optional[bool] = None,
        digest: Optional[str] = None,
    ) -> Approval:
        """Refuses a call. The agent reads the reason and continues without it."""
        call = calls.decide(approval_id, "deny", reason=reason, remember=remember, digest=digest)
        return await self._connection.call(call)

    async def answer(self, approval_id: str, answer: Any) -> Approval:
        """Answers a question of an agent."""
        return await self._connection.call(calls.decide(approval_id, "approve", answer=answer))


class AsyncClient:
    """A connection to a server. The credential alone decides tenant, user and permissions.

    ``timeout`` is the limit of one request in seconds, ``run_timeout`` that of a response that comes when a run has ended, ``retries`` the
    number of further attempts, the first one after ``backoff`` seconds, each later one after twice the time. Use it in one event loop, and close it or use it with ``async with``.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8420",
        api_key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        run_timeout: Optional[float] = 600.0,
        retries: int = 5,
        backoff: float = 0.25,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        self._owned = http is None
        self._http = http or httpx.AsyncClient(trust_env=False)
        self._http.base_url = httpx.URL(base_url)
        if api_key is not None:
            self._http.headers["Authorization"] = f"Bearer {api_key}"
        settings = Settings(timeout=timeout, run_timeout=run_timeout, retries=retries, backoff=backoff)
        self._connection = AsyncConnection(self._http, settings)
        self.runs = AsyncRuns(self._connection)
        self.approvals = AsyncApprovals(self._connection)

    def thread(self, thread_id: Optional[str] = None) -> AsyncThread:
        """A thread by its id, or a new one. Nothing is sent."""
        return AsyncThread(self._connection, thread_id or str(uuid.uuid4()))

    async def threads(
        self, query: Optional[str] = None, *, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> Page[ThreadInfo]:
        """The threads, the newest first; ``query`` selects by title."""
        return await self._connection.call(calls.threads(query, limit, cursor))

    async def agents(self, *, include_hidden: bool = False) -> List[Agent]:
        return await self._connection.call(calls.agents(include_hidden))

    async def agent(self, agent_id: str) -> Agent:
        return await self._connection.call(calls.agent(agent_id))

    async def me(self) -> Me:
        """Tenant, user, roles and permissions of the credential."""
        return await self._connection.call(calls.me())

    async def rate(self, message_id: str, rating: int, comment: Optional[str] = None) -> None:
        """Says whether an answer was good: 1 or -1."""
        await self._connection.call(calls.feedback(message_id, rating, comment))

    async def close(self) -> None:
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
