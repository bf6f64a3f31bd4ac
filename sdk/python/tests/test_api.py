"""Handoffs, approvals, errors, tenants, files, and the asynchronous client."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import pytest

import baton
from baton import _async, _sync
from conftest import Site
from support import Piece, Server
from test_journey3 import AGENTS, QUERY, both_answer, main_delegates

ROOT = Path(__file__).parent.parent


def test_k1_a_handoff_starts_shows_its_progress_ends_and_is_resumed(demo: Server) -> None:
    """K1, C-28: start, show, exit and resume a handoff; wrong moments are a ``HandoffError`` with a stable code."""
    with baton.Client(demo.url) as client:
        thread = client.thread()
        thread.send("Hello")
        with pytest.raises(baton.HandoffError) as raised:
            thread.handoff.show()
        assert raised.value.code == "no_active_handoff" and isinstance(raised.value, baton.OrchestrationError)
        accepted = thread.handoff.start("skill-creator", "the person wants a skill for Slack alerts")
        assert accepted.accepted and accepted.target_agent_id == "skill-creator" and accepted.run_id
        with client.runs.events(accepted.run_id) as stream:
            greeting = list(stream)
        assert any(isinstance(event, baton.HandoffChanged) and event.phase == "active" for event in greeting)
        with pytest.raises(baton.HandoffError) as raised:
            thread.handoff.start("debugger", "two at once")
        assert raised.value.code == "handoff_active"
        held = thread.handoff.show()
        assert (held.state, held.handoff_id) == ("active", accepted.handoff_id) and held.progress is not None
        assert held.progress.total == 5
        returned = thread.handoff.exit()
        assert returned.completion_status == "cancelled" and returned.message.startswith("No problem!")
        (left,) = thread.info().resumable_handoffs
        assert left.handoff_id == held.handoff_id and left.message.startswith("Welcome back!")
        resumed = thread.handoff.resume(left.handoff_id)
        assert resumed.state == "active" and resumed.workflow_state == held.workflow_state
        thread.handoff.give_back("completed", "done", ["slack-alert"])
        past = thread.handoff.list()
        assert past[-1].state == "completed" and past[-1].to == "skill-creator" and past[-1].from_ == "assistant"


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_d8_a_file_of_an_answer_is_announced_kept_and_downloaded(start: Callable[..., Site]) -> None:
    """D8: an image that a tool returns is a ``FilesAdded`` event, a part of the message and of the run, and ``download`` returns its bytes."""

    def reads(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        if messages[-1]["role"] == "tool":
            return ["Here is the chart."]
        return [{"tool": "read_file", "arguments": {"path": "chart.png"}}]

    site = start(reads, agents={"assistant": "tools: [read_file]"})
    (site.server.folder / "chart.png").write_bytes(PNG)
    client = site.client()
    thread = client.thread()
    with thread.stream("Show me the chart") as stream:
        events = list(stream)
    (added,) = [event for event in events if isinstance(event, baton.FilesAdded)]
    (part,) = added.parts
    assert (part["type"], part["name"], part["media_type"]) == ("image", "chart.png", "image/png")
    assert thread.download(part) == PNG and thread.download(part["uri"]) == PNG
    answer = thread.messages().data[-1]
    assert answer.message_id == added.message_id and answer.parts[1:] == [part]
    assert stream.run_id is not None and client.runs.get(stream.run_id).files == [part]
    # The credential goes to this server only.
    for elsewhere in ("https://example.com/api/v1/artifacts/1", {"type": "file", "uri": "//example.com/x"}):
        with pytest.raises(ValueError):
            thread.download(elsewhere)

    async def asynchronously() -> bytes:
        async with baton.AsyncClient(site.server.url) as other:
            return await other.thread(thread.id).download(part)

    assert asyncio.run(asynchronously()) == PNG


def writes(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
    last = messages[-1]
    if last["role"] == "tool":
        return [f"Result: {str(last['content'])[:60]}"]
    if "question" in str(last["content"]):
        return [{"tool": "ask_user", "arguments": {"question": "Which day?", "choices": ["Monday", "Tuesday"]}}]
    return [{"tool": "write_file", "arguments": {"path": "a.txt", "content": "one"}}]


def test_k1_a_run_waits_for_a_decision_and_continues(start: Callable[..., Site]) -> None:
    """K1: an answer that waits has its approvals; approving continues the run, and its stream is joined after the last event."""
    client = start(writes).client()
    thread = client.thread()
    with thread.stream("Write it", agent="writer") as stream:
        stream.wait()
    assert stream.status == "waiting" and stream.run_id is not None
    (waiting,) = client.approvals.list(thread_id=thread.id)
    assert (waiting.tool, waiting.arguments["path"], waiting.run_id) == ("write_file", "a.txt", stream.run_id)
    assert stream.interrupts[0]["id"] == waiting.approval_id
    decided = client.approvals.approve(waiting.approval_id, reason="checked", digest=waiting.digest)
    assert decided.status == "approved"
    with client.runs.events(stream.run_id, after=stream.last_event_id) as rest:
        rest.wait()
    assert rest.status == "completed" and rest.text.startswith("Result: ")
    with pytest.raises(baton.ConflictError) as raised:
        client.approvals.deny(waiting.approval_id)
    assert raised.value.code == "approval_decided"


def test_k1_denied_calls_and_answered_questions(start: Callable[..., Site]) -> None:
    """K1: a denial is read by the agent, and an answer is given to its question."""
    client = start(writes).client()
    thread = client.thread()
    answer = thread.send("Write it", agent="writer")
    assert answer.status == "waiting" and answer.message is None
    client.approvals.deny(answer.approvals[0].approval_id, reason="not on Fridays")
    with client.runs.events(answer.run_id) as stream:
        stream.wait()
    assert "not on Fridays" in stream.text
    answer = thread.send("a question", agent="writer")
    (asked,) = answer.approvals
    assert asked.kind == "question" and asked.choices == ["Monday", "Tuesday"]
    assert client.approvals.answer(asked.approval_id, "Monday").status == "answered"
    with client.runs.events(answer.run_id) as stream:
        stream.wait()
    assert "Monday" in stream.text


def test_k1_problems_are_typed_errors(start: Callable[..., Site]) -> None:
    """K1, B20, C-11, C-28: one class for each way to react; families for orchestration, handoffs and delegations."""
    client = start(both_answer).client()
    thread = client.thread()
    with pytest.raises(baton.DelegationError) as unknown:
        thread.delegate(["web-reserch"], QUERY)
    assert (unknown.value.code, unknown.value.problem["nearest"]) == ("agent_not_found", ["web-research"])
    assert unknown.value.errors[0].pointer == "/agents/0" and unknown.value.trace_id
    with pytest.raises(baton.OrchestrationError) as refused:
        thread.send("Hello", agent="nobody")
    assert refused.value.code == "agent_not_found" and not isinstance(refused.value, baton.DelegationError)
    with pytest.raises(baton.NotFoundError) as missing:
        thread.handoff.start("writer", "no thread yet")
    assert missing.value.code == "thread_not_found"
    thread.send("How many?", agent="internal-docs")
    with pytest.raises(baton.HandoffError) as rejected:
        thread.handoff.start("writer", "it does not take threads")
    assert rejected.value.code == "handoff_rejected"
    with pytest.raises(baton.InvalidRequestError) as invalid:
        client.thread("not-a-uuid").send("Hello")
    assert invalid.value.code == "invalid_thread_id"
    with pytest.raises(baton.InvalidRequestError):
        thread.delegate([], QUERY)
    with pytest.raises(baton.CursorExpiredError):
        thread.events(after=10_000).wait()


def test_k1_a_failed_run_is_an_error_with_its_code(start: Callable[..., Site]) -> None:
    """K1: a run without an answer is a ``RunError`` of the family of orchestration."""

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        raise OSError("the connection to the model breaks")

    client = start(script, "[models.retry]\nattempts = 1\n" if False else "").client()
    with pytest.raises(baton.RunError) as failed:
        client.thread().send("Hello", agent="internal-docs")
    assert isinstance(failed.value, baton.OrchestrationError)
    assert failed.value.run_status == "failed" and failed.value.code
    assert client.runs.get(failed.value.run_id).status == "failed"


def test_k1_the_tenant_comes_from_the_credential_alone(start: Callable[..., Site]) -> None:
    """K1, A8, A9: no argument names a tenant; another tenant's thread is one that does not exist."""
    site = start(both_answer, '[auth]\nmode = "required"\n')
    ada = site.client(site.server.key("acme", "ada"))
    eve = site.client(site.server.key("evil", "eve"))
    assert (ada.me().tenant_id, eve.me().tenant_id) == ("acme", "evil")
    thread = ada.thread()
    answer = thread.send("How many?", agent="internal-docs")
    for attempt in (
        lambda: eve.thread(thread.id).info(),
        lambda: eve.runs.get(answer.run_id),
        lambda: eve.thread(thread.id).messages(),
        lambda: eve.thread(thread.id).events().wait(),
    ):
        with pytest.raises(baton.NotFoundError):
            attempt()
    assert len(eve.threads()) == 0 and [one.thread_id for one in ada.threads()] == [thread.id]
    with pytest.raises(baton.AuthenticationError):
        site.client("baton_wrong").me()
    with pytest.raises(baton.PermissionDeniedError) as denied:
        site.client(site.server.key("acme", "ann", "viewer")).thread().send("Hello")
    assert denied.value.permission == "thread:write"
    parameters = {
        name
        for kind in (baton.Client, baton.Thread, _sync.Handoff, _sync.Runs, _sync.Approvals)
        for _, method in inspect.getmembers(kind, inspect.isfunction)
        for name in inspect.signature(method).parameters
    }
    assert not [name for name in parameters if "tenant" in name or "user" in name]


def test_threads_files_and_feedback(start: Callable[..., Site]) -> None:
    client = start(both_answer).client()
    thread = client.thread()
    file = thread.upload("notes.txt", b"Ask about May.", "text/plain")
    parts: List[baton.Part] = [
        {"type": "text", "text": "How many?"},
        {"type": "file", "name": file.name, "uri": file.uri},
    ]
    answer = thread.send(parts, agent="internal-docs", metadata={"order": 42})
    assert answer.message is not None and answer.usage.input_tokens > 0
    client.rate(answer.message.message_id, 1, "good")
    assert thread.rename("May").title == "May"
    assert [one.thread_id for one in client.threads("May")] == [thread.id]
    assert {agent.id for agent in client.agents()} >= {"assistant", "web-research"}
    assert client.agent("web-research").display_name == "Web Research"
    accepted = thread.submit("Again", agent="internal-docs")
    with client.runs.events(accepted.run_id) as stream:
        stream.wait()
    assert stream.text == "We sold 400."
    page = thread.messages(limit=1)
    older = thread.messages(before=page.data[0].number)
    assert len(page) == 1 and older.data[-1].number < page.data[0].number
    thread.delete()
    with pytest.raises(baton.NotFoundError):
        thread.info()


def test_k1_the_asynchronous_client_has_the_same_methods() -> None:
    """K1: both clients have the same methods with the same parameters."""
    for name in ("Client", "Thread", "Handoff", "Runs", "Approvals", "EventStream"):
        sync, other = getattr(_sync, name), getattr(_async, f"Async{name}")

        def public(kind: type) -> Dict[str, List[str]]:
            methods = inspect.getmembers(kind, inspect.isfunction)
            return {one: list(inspect.signature(f).parameters) for one, f in methods if one[0] != "_" or one == "__init__"}

        assert public(sync) == public(other), name


def test_k1_the_asynchronous_client_works(start: Callable[..., Site]) -> None:
    """K1: answers, parallel streams, delegations, errors and broken connections with ``asyncio``."""
    site = start(main_delegates)
    proxy = site.proxy(lambda at: 1500 + at * 211 if at % 2 == 0 else None)

    async def main() -> None:
        async with baton.AsyncClient(site.server.url, backoff=0.01) as client:
            answer = await client.thread().send(QUERY)
            assert answer.text == "It grows, and we sold 400."
            result = await client.thread().delegate(AGENTS, QUERY)
            assert result.results["web-research"].unwrap() == "The market grows."
            with pytest.raises(baton.DelegationError):
                await client.thread().delegate(["nobody"], QUERY)
            with pytest.raises(baton.NotFoundError):
                await client.runs.get(str(uuid.uuid4()))

            async def text() -> str:
                async with client.thread().stream(QUERY) as stream:
                    async for _ in stream:
                        pass
                    return stream.text

            assert await asyncio.gather(*(text() for _ in range(4))) == ["It grows, and we sold 400."] * 4
        async with baton.AsyncClient(proxy.url, backoff=0.01) as client:
            async with client.thread().stream(QUERY) as stream:
                await stream.wait()
            assert (stream.text, stream.status) == ("It grows, and we sold 400.", "completed")

    asyncio.run(main())
    assert proxy.connections > 1


def test_k1_the_package_is_typed() -> None:
    """K1: `mypy --strict` accepts the package and a program that uses it."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null"]
    checked = subprocess.run([*command, "src", "tests"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
