"""Requirements that a program can observe, asserted through the SDK and the built server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import httpx
import pytest

import baton
from conftest import Site
from support import AGENTS as SITE_AGENTS
from support import BINARY, Piece, Server
from test_journey3 import AGENTS, QUERY, both_answer, main_delegates

GUIDES = Path(__file__).parents[3] / "docs"
SECRETS = "Mail ada@example.com, card 4111111111111111, password: hunter22"
MASKED = ("[EMAIL]", "[CARD]", "[REDACTED]")
HIDDEN = ("ada@example.com", "4111111111111111", "hunter22")


def audit(site: Site, key: str, **params: str) -> List[Dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key}"}
    response = httpx.get(f"{site.server.url}/api/v1/audit", params={"limit": "200", **params}, headers=headers)
    assert response.status_code == 200, response.text
    entries: List[Dict[str, Any]] = response.json()["data"]
    return entries


def test_a16_the_tenant_of_the_credential_reaches_every_agent_and_the_trail(start: Callable[..., Site]) -> None:
    """A16: authenticate, main agent, sub-agents, audit trail: all with the tenant of the key, whatever the message says."""
    site = start(main_delegates, '[auth]\nmode = "required"\n', BATON_LOG="info", BATON_LOG_FORMAT="json")
    ada = site.client(site.server.key("acme", "ada"))
    answer = ada.thread().send(QUERY, metadata={"tenant_id": "globex"})
    assert answer.results.agents == AGENTS
    trail = audit(site, site.server.key("acme", "olga", "operator"), thread_id=answer.thread_id)
    delegated = [entry for entry in trail if entry["action"] == "agent.delegate"]
    assert len(delegated) >= 2 and {entry["actor"] for entry in delegated} == {"assistant"}
    assert {entry["on_behalf_of"] for entry in delegated} == {"ada"}
    assert {entry["tenant_id"] for entry in trail} == {"acme"}
    lines = [line for line in site.server.logged() if line["message"] == "sub_agent_spawned"]
    assert {line["fields"]["specialist"] for line in lines} == set(AGENTS)
    assert {line["tenant_id"] for line in lines} == {"acme"}
    # Another tenant's operator sees nothing of it, with a valid credential of their own.
    other = site.server.key("globex", "olga", "operator")
    assert audit(site, other, thread_id=answer.thread_id) == []




def test_h1_each_permission_is_checked_before_the_operation(start: Callable[..., Site]) -> None:
    """H1, B18, C-26: without the permission nothing begins: no run, no handoff, no audit entry of an operation."""
    agents = {
        "assistant": "agents: [helper]",
        "helper": "display_name: Helper",
        "maker": "accepts_handoff: { triggers: [make it], permission: 'skill:create' }",
        "taker": "accepts_handoff: { triggers: [take it] }",
    }
    roles = (
        '[auth]\nmode = "required"\n[auth.roles]\n'
        'talker = ["thread:read", "thread:write", "agent:read"]\n'
        'giver = ["thread:read", "thread:write", "agent:read", "handoff:initiate"]\n'
    )
    site = start(lambda agent, messages: ["Hello."], roles, agents)
    talker = site.client(site.server.key("acme", "tom", "talker"))
    thread = talker.thread()
    thread.send("Hello")
    with pytest.raises(baton.PermissionDeniedError) as denied:
        thread.delegate(["helper"], "Look")
    assert denied.value.permission == "orchestration:delegate"
    with pytest.raises(baton.PermissionDeniedError) as denied:
        thread.handoff.start("taker", "it should")
    assert denied.value.permission == "handoff:initiate"
    assert len(talker.runs.list()) == 1 and not thread.info().is_handoff_active and thread.handoff.list() == []
    # The agent's own file asks for more: creating skills.
    giver = site.client(site.server.key("acme", "gina", "giver"))
    thread = giver.thread()
    thread.send("Hello")
    with pytest.raises(baton.PermissionDeniedError) as denied:
        thread.handoff.start("maker", "a new skill")
    assert denied.value.permission == "skill:create" and thread.handoff.list() == []
    assert thread.handoff.start("taker", "it should").accepted
    # Ending another user's handoff needs handoff:cancel; without it the thread does not even exist.
    with pytest.raises(baton.NotFoundError):
        talker.thread(thread.id).handoff.exit()
    operator = site.client(site.server.key("acme", "olga", "operator"))
    assert operator.thread(thread.id).handoff.exit().completion_status == "cancelled"
    refused = [entry for entry in audit(site, site.server.key("acme", "olga2", "operator")) if entry["decision"] == "denied"]
    assert {entry["actor"] for entry in refused} >= {"tom"}


def test_h2_what_goes_to_another_agent_is_masked(start: Callable[..., Site]) -> None:
    """H2, X32: an address, a card number and a password are masked in what a sub-agent's model gets; the user's own agent has them."""

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        if agent == "assistant" and messages[-1]["role"] != "tool":
            return [{"tool": "call_agent", "arguments": {"mission": SECRETS, "specialist": "internal-docs"}}]
        return ["Done."]

    site = start(script)
    site.client().thread().send(SECRETS)
    texts = {"assistant": "", "internal-docs": ""}
    for request in site.model.requests:
        prompt = json.dumps(request["messages"])
        name = "assistant" if "I am `assistant`" in prompt else "internal-docs"
        texts[name] += prompt
    assert all(word in texts["internal-docs"] for word in MASKED), texts["internal-docs"]
    assert not any(word in texts["internal-docs"] for word in HIDDEN)
    assert all(word in texts["assistant"] for word in HIDDEN)


def test_h3_a15_each_delegation_is_logged_once(start: Callable[..., Site]) -> None:
    """H3, A15: "Delegation started" once for each sub-agent, with thread, tenant, source and target."""
    site = start(both_answer, BATON_LOG="info", BATON_LOG_FORMAT="json")
    thread = site.client().thread()
    thread.delegate(AGENTS, QUERY)
    lines = [line for line in site.server.logged() if line["message"] == "Delegation started"]
    assert sorted(line["fields"]["target_agent"] for line in lines) == sorted(AGENTS)
    assert {(line["thread_id"], line["tenant_id"]) for line in lines} == {(thread.id, "default")}
    assert {line["fields"]["source_agent"] for line in lines} == {"assistant"}


def test_d15_the_user_knows_what_happens_where_it_is_and_how_to_leave(demo: Server) -> None:
    """D15, D7, C-19: during a handoff every reply says its stage and that it can be left, and leaving works at every stage."""
    with baton.Client(demo.url) as client:
        for answers in ([], ["Read the report\nWrite the alert"]):
            thread = client.thread()
            with thread.stream("I want to create a skill that sends Slack alerts") as stream:
                events = list(stream)
            sentences = [event.message for event in events if isinstance(event, baton.HandoffChanged)]
            assert any("Connecting you with Skill Creation Assistant" in sentence for sentence in sentences)
            for answer in ["", *answers]:
                if answer:
                    with thread.stream(answer) as stream:
                        events = list(stream)
                stages = [event.progress for event in events if isinstance(event, baton.ProgressChanged)]
                stage = thread.info().progress
                assert stage is not None and 1 <= stage.step <= stage.total == 5, answer
                assert stages and stages[-1] == stage, f"every reply says its stage: {answer}"
                active = [event for event in events if isinstance(event, baton.ActiveAgentChanged)]
                assert active and active[-1].exitable and active[-1].active_agent == "skill-creator", answer
                assert active[-1].mode == "[Skill Creation Mode]" and stage.mode == active[-1].mode, answer
                assert stage.text.endswith(f" - {stage.answered}/{stage.questions} answers"), stage
            with thread.stream("cancel") as stream:
                events = list(stream)
            ended = [event for event in events if isinstance(event, baton.HandoffChanged)]
            assert ended[-1].phase == "cancelled" and "No problem!" in ended[-1].message
            assert not thread.info().is_handoff_active


def test_d15_b12_something_is_shown_while_a_sub_agent_works(start: Callable[..., Site]) -> None:
    """D15, B12: while a sub-agent works the user reads that something happens, before the answer begins."""
    gate = threading.Event()

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        return [gate, "The market grows."] if agent == "web-research" else main_delegates(agent, messages)

    with start(script).client().thread().stream(QUERY) as stream:
        shown = next(event for event in stream if isinstance(event, baton.StatusChanged))
        assert shown.text and shown.subagent_run_id is None and stream.text == ""
        gate.set()
        stream.wait()
    assert stream.text == "It grows, and we sold 400."


def test_c_3_the_wire_form_of_a_handoff(start: Callable[..., Site]) -> None:
    """C-3, X10: `type`, `conversation_history_count` and the last messages: the target sees as many as were asked for, no more."""
    agents = {"assistant": "", "taker": "accepts_handoff: { triggers: [take it] }"}
    site = start(lambda agent, messages: [f"{agent} speaks."], agents=agents)
    thread = site.client().thread()
    for text in ("first words", "second words", "third words"):
        thread.send(text)
    url = f"{site.server.url}/api/v1/threads/{thread.id}/handoff"
    body = {"type": "handoff", "target_agent_id": "taker", "handoff_reason": "a reason of its own", "conversation_history_count": 3}
    for wrong in ({**body, "type": "transfer"}, {**body, "conversation_history_count": 21}, {**body, "tenant_id": "other"}):
        assert httpx.post(url, json=wrong).status_code in (400, 403), wrong
    accepted = httpx.post(url, json=body)
    assert accepted.status_code == 201 and accepted.json()["accepted"] is True
    with site.client().runs.events(accepted.json()["run_id"]) as stream:
        stream.wait()
    seen = next(json.dumps(one) for one in site.model.requests if "I am `taker`" in json.dumps(one))
    assert "a reason of its own" in seen
    assert "third words" in seen and "assistant speaks." in seen and "first words" not in seen


def test_c_21_an_exclusive_holder_is_the_only_one_who_answers(demo: Server) -> None:
    """C-21: the capability of the card is what happens: exclusive control, and an hour until the thread is taken back."""
    with baton.Client(demo.url) as client:
        thread = client.thread()
        thread.send("Hello")
        thread.handoff.start("skill-creator", "a new skill")
        with pytest.raises(baton.HandoffError) as refused:
            thread.send("Where are the docs?", agent="knowledge")
        assert refused.value.code == "handoff_active"
        held = thread.handoff.show()
        assert held.expires_at is not None
        assert 3500 < (held.expires_at - held.started_at).total_seconds() <= 3600
        card = httpx.get(f"{demo.url}/api/v1/agents/skill-creator/card").json()
        text = json.dumps(card)
        for word in ("supports_handoff", "handoff_triggers", "workflow_states", "requires_exclusive_control"):
            assert word in text, word
        assert '"max_session_duration_seconds": 3600' in text


def test_c_29_a_debugging_session_is_a_second_use_of_handoffs(demo: Server) -> None:
    """C-29: a request to debug is handed to the debugging assistant, which works through its own stages and gives the thread back."""
    with baton.Client(demo.url) as client:
        thread = client.thread()
        with thread.stream("Help me debug my service, it keeps crashing") as stream:
            events = list(stream)
        phases = [event.phase for event in events if isinstance(event, baton.HandoffChanged)]
        assert phases == ["connecting", "active"], phases
        held = thread.handoff.show()
        assert (held.target_agent_id, held.display_name) == ("debugger", "Debugging Assistant")
        assert held.progress is not None and held.progress.state == "describing_problem"
        stages = []
        for text in (
            "It exits with 'out of memory'",
            "It should stay up",
            "billing 1.4 on Linux",
            "the cache was enlarged",
            "send it 1000 orders",
            "always",
            "the cache has no limit",
            "limit the cache to 100 MB",
            "no",
            "the sessions are in the cache too",
            "keep the sessions in the database",
        ):
            thread.send(text)
            progress = thread.handoff.show().progress
            assert progress is not None and progress.total == 5
            stages.append(progress.state)
        expected = ["describing_problem"] * 3 + ["reproducing"] * 2 + ["finding_cause", "fixing", "fixing"]
        # The same steps fail once more, so another cause is looked for.
        assert stages == [*expected, "finding_cause", "fixing", "fixing"], stages
        assert "out of memory" in json.dumps(thread.handoff.show().workflow_metadata)
        with thread.stream("yes") as stream:
            events = list(stream)
        phases = [event.phase for event in events if isinstance(event, baton.HandoffChanged)]
        assert phases == ["returning", "completed"], phases
        done = [event.progress for event in events if isinstance(event, baton.ProgressChanged)]
        assert [(progress.state, progress.step) for progress in done][-1:] == [("complete", 5)]
        context = thread.info()
        assert (context.is_handoff_active, context.current_active_agent) == (False, "assistant")
        assert thread.handoff.list()[-1].state == "completed" and context.resumable_handoffs == []


def test_g15_the_event_log_is_jsonl_with_every_pass(start: Callable[..., Site]) -> None:
    """G15, G3: the log of a run is one JSON object per line, numbered without gaps, with who passed to whom and why."""
    site = start(passes_on, agents=TRANSFERS)
    answer = site.client().thread().send("What do I owe?")
    assert (answer.agent, answer.text) == ("billing", "You owe 5.")
    command = [BINARY, "runs", "events", answer.run_id, "--json"]
    printed = subprocess.run(command, cwd=site.server.folder, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(line["thread_id"] == answer.thread_id and line["run_id"] == answer.run_id and line["at"] for line in lines)
    passed = [line for line in lines if "It is about a bill" in json.dumps(line) and '"billing"' in json.dumps(line)]
    assert passed, printed


def test_k12_a_feature_is_rolled_out_to_some_tenants(start: Callable[..., Site]) -> None:
    """K12, G11: a feature is off, or on for the tenants and the share of tenants that are configured, in the tools that a model gets."""
    agents = {"assistant": "collaborations: [billing]", "billing": ""}
    required = '[auth]\nmode = "required"\n'

    def offered(site: Site, tenant: str) -> bool:
        before = len(site.model.requests)
        site.client(site.server.key(tenant, "ada")).thread().send("What do I owe?")
        return "transfer_to_billing" in json.dumps(site.model.requests[before].get("tools", []))

    site = start(lambda agent, messages: ["Nothing."], required + "[features]\ntransfers = false\n", agents)
    assert not offered(site, "acme")
    rollout = '[features]\ntransfers = { percent = 0, tenants = ["acme"] }\n'
    site = start(lambda agent, messages: ["Nothing."], required + rollout, agents)
    assert offered(site, "acme") and not offered(site, "globex")
    half = "[features]\ntransfers = { percent = 50 }\n"
    site = start(lambda agent, messages: ["Nothing."], required + half, agents)
    shares = [offered(site, f"tenant-{at}") for at in range(12)]
    assert any(shares) and not all(shares)
    assert shares == [offered(site, f"tenant-{at}") for at in range(12)]


def test_k13_collaborators_are_discoverable_from_the_registry(start: Callable[..., Site]) -> None:
    """K13, D12, G20: the registry says whom an agent can involve, and in which way; only those are offered to its model."""
    agents = {"assistant": "collaborations: [billing]", "billing": "", "stranger": ""}
    site = start(lambda agent, messages: ["Nothing."], "[features]\ntransfers = true\n", agents)
    client = site.client()
    assert client.agent("assistant").related == ["billing"] and client.agent("billing").related == []
    assert {agent.id for agent in client.agents()} == {"assistant", "billing", "stranger"}
    graph = httpx.get(f"{site.server.url}/api/v1/graph").json()
    edges = [(edge["from"], edge["to"], edge["kind"]) for edge in graph["edges"]]
    assert edges == [("assistant", "billing", "transfer")]
    client.thread().send("What do I owe?")
    tools = json.dumps(site.model.requests[0]["tools"])
    assert "transfer_to_billing" in tools and "stranger" not in tools


def test_c_27_partial_state_is_kept_for_30_days_unless_configured(tmp_path: Any) -> None:
    """C-27: what a left workflow has collected is deleted after `handoff.state_retention`, 30 days by default; the history stays."""
    for name, config, left in (("default", "", 1), ("short", '[handoff]\nstate_retention = "1s"\n', 0)):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([BINARY, "init"], cwd=folder, check=True, capture_output=True)
        with open(folder / "baton.toml", "a") as file:
            file.write(config)
        server = Server(folder)
        try:
            with baton.Client(server.url) as client:
                thread = client.thread()
                thread.send("I want to create a skill that sends Slack alerts")
                thread.handoff.exit()
                assert len(thread.info().resumable_handoffs) == 1
                threading.Event().wait(1.5)
                said = len(thread.messages())
                # The command sweeps as the server does once an hour.
                command = [BINARY, "runs", "resume"]
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                assert len(thread.info().resumable_handoffs) == left, name
                assert len(thread.messages()) == said
        finally:
            server.close()


def test_a4_a5_the_thread_id_is_in_everything_that_belongs_to_the_thread(start: Callable[..., Site]) -> None:
    """A4, A5, D6: the caller's id is in every event, run, message, approval, audit entry and log line, also those of sub-agents."""
    site = start(main_delegates, BATON_LOG="info", BATON_LOG_FORMAT="json")
    client = site.client()
    thread = client.thread()
    with thread.stream(QUERY) as stream:
        stream.wait()
    assert stream.run_id is not None
    with client.runs.events(stream.run_id, detail="trace") as traced:
        events = list(traced)
    assert len({event.agent for event in events}) == 3 and {event.thread_id for event in events} == {thread.id}
    assert client.runs.get(stream.run_id).thread_id == thread.id
    assert {message.run_id for message in thread.messages(internal=True)} == {stream.run_id}
    trail = httpx.get(f"{site.server.url}/api/v1/audit", params={"thread_id": thread.id}).json()["data"]
    assert {entry["thread_id"] for entry in trail} == {thread.id}
    assert {entry["run_id"] for entry in trail if entry["action"].startswith("agent.")} == {stream.run_id}
    lines = [line for line in site.server.logged() if line.get("run_id") == stream.run_id]
    assert lines and {line["thread_id"] for line in lines} == {thread.id}
    # No id but a UUID version 4 is accepted, and none is changed.
    assert thread.info().thread_id == thread.id
    for wrong in ("1", "550e8400-e29b-11d4-a716-446655440000", thread.id.upper() + "x"):
        with pytest.raises(baton.InvalidRequestError) as refused:
            client.thread(wrong).info()
        assert refused.value.code == "invalid_thread_id"


def test_d4_d5_a22_the_doors_of_the_client_layer(demo: Server) -> None:
    """D4, D5, D1, A22: the two routes of the plan, a page, this SDK and a WebSocket; one version of the API, nothing deprecated."""
    described = httpx.get(f"{demo.url}/openapi.json").json()
    paths = described["paths"]
    for route in ("messages", "handoff", "events", "ws"):
        assert f"/api/v1/threads/{{thread_id}}/{route}" in paths, route
    assert {path.split("/")[2] for path in paths if path.startswith("/api/")} == {"v1"}
    operations = [one for methods in paths.values() for one in methods.values() if isinstance(one, dict)]
    assert not [one for one in operations if one.get("deprecated")]
    page = httpx.get(f"{demo.url}/", headers={"Accept": "text/html"})
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    with baton.Client(demo.url) as client:
        thread = client.thread()
        assert thread.send("Hello").status == "completed"
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with httpx.stream("GET", f"{demo.url}/api/v1/threads/{thread.id}/ws", headers=upgrade) as response:
        assert response.status_code == 101
    for content_type in ("application/grpc", "application/x-protobuf"):
        url = f"{demo.url}/api/v1/threads/{thread.id}/messages"
        assert httpx.post(url, content=b"\0", headers={"Content-Type": content_type}).status_code == 415


def test_h11_an_agent_is_five_lines_and_a_nested_error_names_its_place(start: Callable[..., Site]) -> None:
    """H11: a file of five lines registers an agent; when an agent below an agent fails, the error says which and why."""

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        if agent == "inner":
            raise OSError("the connection to the model breaks")
        if messages[-1]["role"] == "tool":
            return ["It did not work."]
        return [{"tool": "call_agent", "arguments": {"mission": "Look", "specialist": "inner"}}]

    agents = {"assistant": "agents: [inner]", "inner": "display_name: Inner"}
    site = start(script, agents=agents, BATON_LOG="info", BATON_LOG_FORMAT="json")
    assert len((site.server.folder / "agents" / "inner.md").read_text().splitlines()) <= 5
    answer = site.client().thread().send("Do it")
    failed = answer.results["inner"]
    assert answer.text == "It did not work." and not failed.success
    assert failed.error and failed.error_type and failed.session_id and ":sub_inner_" in failed.session_id
    lines = [line for line in site.server.logged() if line["message"] == "sub_agent_failed"]
    assert [line["fields"]["specialist"] for line in lines] == ["inner"] and lines[0]["fields"]["error"]


def test_i12_the_phases_of_the_plan_work_together(start: Callable[..., Site]) -> None:
    """I12: sequential delegation, parallel delegation with a synthesis, a handoff that survives a crash and is resumed, isolation."""
    agents = {"assistant": "", "b": "", "c": "", "taker": "accepts_handoff: { triggers: [take it], resume: true }"}
    site = start(lambda agent, messages: [f"{agent} speaks."], '[auth]\nmode = "required"\n', agents)
    client = site.client(site.server.key("acme", "ada"), retries=60)
    thread = client.thread()
    first = thread.delegate(["b", "c"], "Look", strategy="sequential")
    assert [one.response for one in first.results] == ["b speaks.", "c speaks."]
    second = thread.delegate(["b", "c"], "Look")
    assert second.synthesis == "From b:\nb speaks.\n\nFrom c:\nc speaks."
    started = thread.handoff.start("taker", "it should")
    assert started.run_id is not None
    with client.runs.events(started.run_id) as stream:
        stream.wait()
    site.server.crash()
    assert thread.handoff.show().handoff_id == started.handoff_id
    assert thread.send("Who are you?").agent == "taker"
    returned = thread.handoff.exit()
    assert thread.handoff.resume(returned.handoff_id).state == "active"
    with pytest.raises(baton.NotFoundError):
        site.client(site.server.key("globex", "eve")).thread(thread.id).info()


def test_h12_coverage_scenarios_and_guide_are_gates() -> None:
    """H12, I10: `make coverage` fails below 90 % of lines; there are ten and more journeys; every page of the guide is in its index."""
    root = GUIDES.parent
    # What make executes: the last command fails below the goal, and nothing takes its exit code away.
    makeflags = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "COVERAGE")}
    recipe = subprocess.run(["make", "-n", "coverage"], cwd=root, env=makeflags, check=True, capture_output=True, text=True)
    *_, tests, _, report = recipe.stdout.splitlines()
    assert "nextest --workspace" in tests and "--no-report" in tests
    goal = re.search(r"llvm-cov report .*--fail-under-lines (\d+)", report)
    assert goal and int(goal[1]) >= 90 and "||" not in report, report
    rule = (root / "Makefile").read_text().partition("\ncoverage:")[2].partition("\n\n")[0]
    assert not re.search(r"^\t-", rule, re.MULTILINE), "make ignores no failure"
    # The goal is not reached by leaving code out: only tests, measurements and their tools are.
    ignored = re.search(r"--ignore-filename-regex '(.*?)'", report)
    assert ignored and ignored[1] == "/(tests|bench|smoke)/"
    journeys = "".join(path.read_text() for path in (root / "crates/baton/tests/suite/journeys").rglob("*.rs"))
    assert journeys.count("#[test]") >= 10
    index = (GUIDES / "README.md").read_text()
    left_out = {"README.md", "requirements.md", "requirements-tests.md"}
    assert [page.name for page in GUIDES.glob("*.md") if page.name not in left_out and f"({page.name})" not in index] == []
    commands = (GUIDES / "cli.md").read_text()
    assert "baton run" in commands and "orchestrat" in (GUIDES / "patterns.md").read_text().lower() + commands.lower()


def test_h4_h5_h6_first_tokens_come_in_time(start: Callable[..., Site]) -> None:
    """H4, H5, H6: best of 20 requests, which a busy machine does not change, with a scripted model and a real store: first token of an
    orchestrated answer within 3 s, that of a specialist after a handoff within 1 s, first event of a sub-agent within 500 ms of the run's
    start, by the server's clock."""
    agents = {**SITE_AGENTS, "taker": "accepts_handoff: { triggers: [take it] }"}
    site = start(lambda agent, messages: ["I am here."] if agent == "taker" else main_delegates(agent, messages), agents=agents)
    client = site.client()
    answers, delegations, handoffs = [], [], []
    for _ in range(20):
        with client.thread().stream(QUERY) as stream:
            events = list(stream)
        times = {type(event): event.raw["timestamp"] / 1000 for event in reversed(events)}
        answers.append(times[baton.TextDelta] - times[baton.RunStarted])
        delegations.append(times[baton.SubAgentStarted] - times[baton.RunStarted])
        thread = client.thread(events[0].thread_id)
        started = time.time()
        accepted = thread.handoff.start("taker", "it should")
        assert accepted.run_id is not None
        with client.runs.events(accepted.run_id) as stream:
            first = next(event for event in stream if isinstance(event, baton.TextDelta))
        handoffs.append(first.raw["timestamp"] / 1000 - started)
    assert min(answers) < 3.0 and min(handoffs) < 1.0 and min(delegations) < 0.5, (answers, handoffs, delegations)


TRANSFERS = {"assistant": "collaborations: [billing]", "billing": ""}


def passes_on(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
    if agent == "assistant":
        return [{"tool": "transfer_to_billing", "arguments": {"reason": "It is about a bill"}}]
    return ["You owe 5."]


def test_g8_a_thread_is_a_session_document(start: Callable[..., Site]) -> None:
    """G8, G22: after a real transfer the session document has who answers, when it began, the chain, the question and the work so far."""
    site = start(passes_on, agents=TRANSFERS)
    answer = site.client().thread().send("What do I owe?")
    command = [BINARY, "threads", "show", answer.thread_id, "--session"]
    printed = subprocess.run(command, cwd=site.server.folder, check=True, capture_output=True, text=True).stdout
    document = json.loads(printed)
    assert (document["version"], document["handoffs_enabled"]) == ("1.4", True)
    assert document["current_agent"] and document["session_start"] and answer.thread_id in printed
    (link,) = document["handoff_chain"]
    assert (link["from"], link["to"], link["reason"]) == ("assistant", "billing", "It is about a bill")
    assert document["session_start"] <= link["timestamp"]
    assert document["context"] == {"original_query": "What do I owe?", "previous_work": "You owe 5."}


def test_g21_passing_the_baton_costs_less_than_100_ms(start: Callable[..., Site]) -> None:
    """G21: detection, context, chain and session together, from the end of the giver's reply to the request of the receiver's model:
    under 100 ms in the best of 20 transfers, which a busy machine does not change."""
    site = start(passes_on, agents=TRANSFERS)
    client = site.client()
    for _ in range(20):
        assert client.thread().send("What do I owe?").agent == "billing"
    overheads = [arrived - replied for replied, arrived in zip(site.model.replied[0::2], site.model.arrived[1::2])]
    assert len(overheads) == 20 and 0 <= min(overheads) < 0.1, overheads


def test_g13_results_are_combined_and_the_chain_is_built(start: Callable[..., Site]) -> None:
    """G13: over two transfers, the last agent gets the results of the ones before together, each once and in order, and the chain in the
    session document and in the API has both transfers."""
    found = {"assistant": "The customer is Ada.", "billing": "She owes 5.", "refunds": "The 5 are refunded."}
    following = {"assistant": "billing", "billing": "refunds"}

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        if agent not in following:
            return [found[agent]]
        target = following[agent]
        return [found[agent], {"tool": f"transfer_to_{target}", "arguments": {"reason": f"It needs {target}"}}]

    agents = {"assistant": "collaborations: [billing]", "billing": "collaborations: [refunds]", "refunds": ""}
    site = start(script, agents=agents)
    thread = site.client().thread()
    answer = thread.send("Refund my bill")
    assert answer.agent == "refunds"
    last = json.dumps(site.model.requests[-1]["messages"])
    assert all(last.count(text) == 1 for text in (found["assistant"], found["billing"], "Refund my bill")), last
    assert last.index(found["assistant"]) < last.index(found["billing"])
    command = [BINARY, "threads", "show", thread.id, "--session"]
    printed = subprocess.run(command, cwd=site.server.folder, check=True, capture_output=True, text=True).stdout
    document = json.loads(printed)
    assert document["context"] == {"original_query": "Refund my bill", "previous_work": found["refunds"]}
    shown = httpx.get(f"{site.server.url}/api/v1/threads/{thread.id}").json()
    for chain in (document["handoff_chain"], shown["handoff_chain"]):
        assert [(one["from"], one["to"], one["reason"], one["outcome"]) for one in chain] == [
            ("assistant", "billing", "It needs billing", "completed"),
            ("billing", "refunds", "It needs refunds", "completed"),
        ]


def test_h7_a14_nothing_that_was_said_is_lost(start: Callable[..., Site]) -> None:
    """H7, A14: over a transfer, a handoff, a crash of the server and the way back, every text of the person and of the agents is in the
    history once and in order, and the main agent's model gets all of it."""

    def number(messages: List[Dict[str, Any]]) -> str:
        found: List[str] = re.findall(r"number \d+", json.dumps(messages))
        return found[-1]

    def script(agent: str, messages: List[Dict[str, Any]]) -> Sequence[Piece]:
        if agent == "assistant" and number(messages) == "number 2":
            return [{"tool": "transfer_to_billing", "arguments": {"reason": "It is about a bill"}}]
        return [f"{agent} has read {number(messages)}."]

    agents = {
        "assistant": "collaborations: [billing]",
        "billing": "",
        "taker": "accepts_handoff: { triggers: [take it] }",
    }
    site = start(script, agents=agents)
    thread = site.client(retries=60).thread()
    speakers = ["assistant", "billing", "assistant", "taker", "taker", "assistant"]
    for at, speaker in enumerate(speakers, 1):
        if at == 4:
            started = thread.handoff.start("taker", "it should")
            assert started.run_id is not None
            with site.client().runs.events(started.run_id) as stream:
                stream.wait()
        if at == 5:
            site.server.crash()
        if at == 6:
            thread.handoff.exit()
        assert thread.send(f"This is number {at}").agent == speaker
    said = [text for at, speaker in enumerate(speakers, 1) for text in (f"This is number {at}", f"{speaker} has read number {at}.")]
    history = [message.text for message in thread.messages()]
    assert [text for text in history if text in said] == said, history
    prompt = json.dumps(site.model.requests[-1]["messages"])
    places = [prompt.find(text) for text in said[:-1]]
    assert -1 not in places and places == sorted(places), prompt
