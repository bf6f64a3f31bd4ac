"""Journey 3 with the SDK: a program has several agents research for it."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Sequence

import pytest

import baton
from conftest import Site
from support import Piece

QUERY = "Electric cargo bikes: what does the market say, and what do we know ourselves?"
AGENTS = ["web-research", "internal-docs"]


def both_answer(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
    return {"web-research": ["The market ", "grows."], "internal-docs": ["We sold 400."]}[agent]


def main_delegates(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
    if agent != "assistant":
        return both_answer(agent, messages)
    if messages[-1]["role"] == "tool":
        return ["It grows, ", "and we sold 400."]
    return [{"tool": "delegate", "arguments": {"agents": AGENTS, "message": QUERY, "strategy": "parallel"}}]


def test_j3_1_j3_2_a_research_query_with_a_thread_id(start: Callable[..., Site]) -> None:
    """J3.1, J3.2, J0b: one message in a thread that the program named; the main agent decides to ask both agents."""
    client = start(main_delegates).client()
    thread = client.thread("550e8400-e29b-41d4-a716-446655440000")
    answer = thread.send(QUERY)
    assert (answer.text, answer.agent, answer.status) == ("It grows, and we sold 400.", "assistant", "completed")
    assert answer.thread_id == thread.id
    assert [one.agent_id for one in answer.results] == AGENTS
    assert [message.text for message in thread.messages()] == [QUERY, "It grows, and we sold 400."]


def test_j3_3_j3_6_b15_results_of_sub_agents_are_accessible_one_by_one(start: Callable[..., Site]) -> None:
    """J3.3, J3.6, B15: both agents are asked, and each result is there by the name of its agent and by its position."""
    result = start(both_answer).client().thread().delegate(AGENTS, QUERY)
    assert result.results["web-research"].response == "The market grows."
    assert result.results["internal-docs"].response == result.results[1].unwrap() == "We sold 400."
    assert result.results.agents == AGENTS and len(result.results) == 2
    assert all(one.success and one.session_id for one in result.results)
    assert result.synthesis == "From web-research:\nThe market grows.\n\nFrom internal-docs:\nWe sold 400."
    with pytest.raises(KeyError):
        result.results["support"]


def test_j3_4_results_stream_while_others_still_work(start: Callable[..., Site]) -> None:
    """J3.4: the result of the faster agent arrives while the slower one has not answered."""
    gate = threading.Event()

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return ["The market ", gate, "grows."] if agent == "web-research" else ["We sold 400."]

    site = start(script)
    with site.client().thread().stream_delegation(AGENTS, QUERY) as stream:
        first = next(event for event in stream if isinstance(event, baton.SubAgentAnswered))
        assert (first.result.agent_id, first.result.response) == ("internal-docs", "We sold 400.")
        assert stream.status == "running" and not gate.is_set()
        gate.set()
        stream.wait()
        assert stream.status == "completed"
        assert stream.results["web-research"].response == "The market grows."
        # J3.5: the combined text says who said what.
        assert stream.text == "From web-research:\nThe market grows.\n\nFrom internal-docs:\nWe sold 400."


def test_j3_5_a_combined_stream_names_its_sources(start: Callable[..., Site]) -> None:
    """J3.5, B15: one text as it is written, and the agents that contributed, with their sessions."""
    client = start(main_delegates).client()
    thread = client.thread()
    with thread.stream(QUERY) as stream:
        events = list(stream)
    assert stream.text == "It grows, and we sold 400."
    deltas = [event.delta for event in events if isinstance(event, baton.TextDelta)]
    assert "".join(deltas) == stream.text
    started = {event.agent for event in events if isinstance(event, baton.SubAgentStarted)}
    assert started == set(AGENTS) == {source.agent for source in stream.sources}
    assert isinstance(events[0], baton.RunStarted) and isinstance(events[-1], baton.RunFinished)
    assert {event.thread_id for event in events} == {thread.id}
    assert stream.run_id is not None
    run = client.runs.get(stream.run_id)
    assert run.results["web-research"].response == "The market grows." and run.answered_by == "assistant"
    sessions = {session.session_id: session.agent for session in run.sessions[0].sessions}
    assert {source.session_id: source.agent for source in run.sources} == sessions
    # What the agents said among themselves, for those who may read traces.
    with client.runs.events(stream.run_id, detail="trace") as traced:
        said = [event for event in traced if isinstance(event, baton.TextDelta) and event.subagent_run_id]
    assert {event.agent for event in said} == set(AGENTS)


def test_one_agent_fails_and_the_others_are_there(start: Callable[..., Site]) -> None:
    """B7, B20: a failed agent is a result with an error, and a ``DelegationError`` if the program wants it to be."""

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return [threading.Event()] if agent == "web-research" else ["We sold 400."]

    result = start(script).client().thread().delegate(AGENTS, QUERY, agent_timeout=1)
    assert result.status == "completed" and result.synthesis == "We sold 400."
    failed = result.results["web-research"]
    assert (failed.success, failed.response, failed.error_type) == (False, None, "timeout")
    assert [one.agent_id for one in result.results.failed] == ["web-research"]
    with pytest.raises(baton.DelegationError) as raised:
        result.results.raise_for_failures()
    assert (raised.value.agent_id, raised.value.code) == ("web-research", "timeout")
    assert isinstance(raised.value, baton.OrchestrationError)


def test_b4_the_first_success_is_enough(start: Callable[..., Site]) -> None:
    """B4: the strategies are arguments of the call."""
    site = start(both_answer)
    result = site.client().thread().delegate(AGENTS, QUERY, strategy="first_success", synthesis="none")
    assert sorted(one.error_type or "answered" for one in result.results) == ["answered", "not_used"]
    assert result.synthesis is None
