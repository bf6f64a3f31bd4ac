"""Connections that break, servers that die, and requests that are sent twice."""

from __future__ import annotations

import random
import threading
import uuid
from typing import Any, Callable, Dict, List, Sequence

import httpx
import pytest

import baton
from conftest import Site
from support import Piece
from test_journey3 import AGENTS, QUERY, both_answer, main_delegates


def shown(events: Sequence[baton.Event]) -> List[Any]:
    """What a program sees, with the deltas of a text joined: how a text is cut into deltas is not promised."""
    seen: List[Any] = []
    for event in events:
        raw = {name: value for name, value in event.raw.items() if name not in ("timestamp", "metadata", "delta")}
        if isinstance(event, (baton.TextDelta, baton.ReasoningDelta)):
            if seen and seen[-1][0] == raw:
                seen[-1][1] += event.delta
                continue
            seen.append([raw, event.delta])
        else:
            seen.append([raw, event.raw.get("delta")])
    return seen


def test_k1_a_stream_that_breaks_anywhere_loses_and_repeats_nothing(start: Callable[..., Site]) -> None:
    """K1: a stream of a live run whose connection breaks again and again delivers what an unbroken one does."""
    site = start(main_delegates)
    for seed in range(12):
        cuts = random.Random(seed)
        proxy = site.proxy(lambda at: cuts.randrange(900, 4000))
        with site.client(url=proxy.url).thread().stream(QUERY) as stream:
            events = list(stream)
        assert proxy.connections > 1 and stream.run_id is not None
        with site.client().runs.events(stream.run_id) as whole:
            expected = list(whole)
        assert shown(events) == shown(expected), seed
        assert stream.text == "It grows, and we sold 400." == whole.text
        assert stream.last_event_id == whole.last_event_id


def test_k1_a_trace_that_breaks_at_every_place_is_complete(start: Callable[..., Site]) -> None:
    """K1: the same for a trace, which has tool calls and the texts of sub-agents, cut at different places."""
    site = start(main_delegates)
    answer = site.client().thread().send(QUERY)
    with site.client().runs.events(answer.run_id, detail="trace") as whole:
        expected = list(whole)
    for limit in range(2000, 6000, 330):
        proxy = site.proxy(lambda at: limit + at * 211)
        with site.client(url=proxy.url, retries=30).runs.events(answer.run_id, detail="trace") as stream:
            assert shown(list(stream)) == shown(expected), limit
        assert proxy.connections > 1


def test_k1_a_text_continues_where_the_connection_broke(start: Callable[..., Site]) -> None:
    """K1: in the middle of a text the server sends it from its beginning; the program gets only what is missing."""
    gate, middle = threading.Event(), "We sold "

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return [middle, gate, "400."]

    site = start(script)
    proxy = site.proxy(lambda at: None)
    with site.client(url=proxy.url).thread().stream("How many?") as stream:
        texts = []
        for event in stream:
            if isinstance(event, baton.TextDelta):
                texts.append(event.delta)
                if "".join(texts) == middle:
                    proxy.cut()
                    gate.set()
    assert proxy.connections == 2
    assert "".join(texts) == stream.text == "We sold 400."


def test_k1_a_server_that_dies_is_waited_for(start: Callable[..., Site]) -> None:
    """K1, H8: the server is killed in the middle of a text; the program gets the whole answer from the next process."""
    gate = threading.Event()

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return ["We sold 400."] if gate.is_set() else ["We so", threading.Event()]

    site = start(script)
    with site.client(retries=60).thread().stream("How many?") as stream:
        for event in stream:
            if isinstance(event, baton.TextDelta) and not gate.is_set():
                gate.set()
                site.server.crash()
    assert (stream.status, stream.text) == ("completed", "We sold 400.")


def test_k1_following_a_thread_survives_a_broken_connection(start: Callable[..., Site]) -> None:
    """K1: the events of a thread, of all clients, over several connections."""
    site = start(both_answer)
    proxy = site.proxy(lambda at: None)
    thread = site.client().thread()
    runs = [thread.delegate(AGENTS, QUERY).run_id]
    with site.client(url=proxy.url).thread(thread.id).events() as stream:
        seen = [event.run_id for event in stream_until(stream, runs[0])]
        proxy.cut()
        runs.append(thread.delegate(AGENTS, QUERY).run_id)
        seen += [event.run_id for event in stream_until(stream, runs[1])]
    ends = [run for run in runs]
    assert list(dict.fromkeys(seen)) == ends


def stream_until(stream: baton.EventStream, run_id: str) -> List[baton.Event]:
    seen = []
    for event in stream:
        seen.append(event)
        if isinstance(event, baton.RunFinished) and event.run_id == run_id:
            break
    assert sum(isinstance(event, baton.RunStarted) for event in seen) == 1
    return seen


def test_k1_an_answer_that_was_lost_is_fetched_and_not_made_again(start: Callable[..., Site]) -> None:
    """K1: the response is lost after the message was stored. The SDK sends it again with the same idempotency key: one run."""
    site = start(both_answer)
    proxy = site.proxy(lambda at: 20 if at < 2 else None)
    thread = site.client(url=proxy.url).thread()
    answer = thread.send("How many?", agent="internal-docs")
    assert (answer.text, proxy.connections) == ("We sold 400.", 3)
    assert len(site.client().runs.list(thread_id=thread.id)) == 1
    assert len(thread.messages()) == 2
    # A stream that breaks before it names its run does the same.
    proxy = site.proxy(lambda at: 20 if at < 2 else None)
    thread = site.client(url=proxy.url).thread()
    with thread.stream("How many?", agent="internal-docs") as stream:
        stream.wait()
    assert stream.text == "We sold 400."
    assert len(site.client().runs.list(thread_id=thread.id)) == 1


def test_k1_an_own_idempotency_key_names_the_run(start: Callable[..., Site]) -> None:
    """K1: the same key gives the same run, and another message with it is a ``ConflictError``."""
    thread = start(both_answer).client().thread()
    key = str(uuid.uuid4())
    first = thread.send("How many?", agent="internal-docs", idempotency_key=key)
    assert thread.send("How many?", agent="internal-docs", idempotency_key=key).run_id == first.run_id
    with pytest.raises(baton.ConflictError) as raised:
        thread.send("How few?", agent="internal-docs", idempotency_key=key)
    assert raised.value.code == "idempotency_conflict"


def test_k1_a_handoff_is_not_sent_twice(start: Callable[..., Site]) -> None:
    """K1: a request without an idempotency key fails rather than happen twice."""
    site = start(both_answer)
    proxy = site.proxy(lambda at: 20)
    with pytest.raises(baton.TransportError):
        site.client(url=proxy.url).thread().handoff.start("writer", "it should write")
    assert proxy.connections == 1


def test_k1_refused_requests_are_repeated_after_the_time_that_the_server_says() -> None:
    """K1: 429 with `Retry-After` is repeated, as often as `retries` allows."""
    responses = [429, 503, 200]
    keys = set()

    def answer(request: httpx.Request) -> httpx.Response:
        keys.add(request.headers["idempotency-key"])
        status = responses.pop(0)
        if status != 200:
            code = "rate_limited" if status == 429 else "store_unavailable"
            problem = {"code": code, "status": status, "detail": "later"}
            return httpx.Response(status, json=problem, headers={"Retry-After": "0"})
        body = {"run_id": "r", "thread_id": "t", "message_id": "m", "status": "queued"}
        return httpx.Response(202, json=body)

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        client = baton.Client("http://baton.test", backoff=0, http=http)
        assert client.thread().submit("Hello").run_id == "r"
        assert len(keys) == 1 and not responses
        responses += [429] * 3
        with pytest.raises(baton.RateLimitedError):
            baton.Client("http://baton.test", backoff=0, retries=2, http=http).thread().submit("Hello")


def test_k1_timeouts_name_the_run(start: Callable[..., Site]) -> None:
    """K1: the program waits as long as it allows; the run continues and can be joined or cancelled."""

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return ["We sold ", threading.Event()]

    client = start(script).client()
    with pytest.raises(baton.RequestTimeoutError):
        client.thread().send("How many?", timeout=0.5)
    with pytest.raises(baton.RequestTimeoutError) as raised:
        with client.thread().stream("How many?", timeout=1.5) as stream:
            stream.wait()
    run_id = raised.value.run_id
    assert run_id is not None and client.runs.get(run_id).status == "running"
    client.runs.cancel(run_id, "abort")
    with client.runs.events(run_id) as stream:
        stream.wait()
    assert stream.status == "cancelled"


def test_an_unreachable_server_is_a_transport_error() -> None:
    client = baton.Client("http://127.0.0.1:9", retries=1, backoff=0)
    with pytest.raises(baton.TransportError):
        client.me()
