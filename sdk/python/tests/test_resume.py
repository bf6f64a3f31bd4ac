"""Resuming without a server: frames as Baton sends them, cut at every place."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import pytest

from baton._resume import Position
from baton._sse import FrameReader

Frame = Tuple[int, Dict[str, Any]]


def event(seq: int, type: str, **fields: Any) -> Dict[str, Any]:
    return {"type": type, "metadata": {"baton": {"seq": seq}}, **fields}


def stored(seq: int, *events: Dict[str, Any]) -> List[Frame]:
    """The frames of one stored event: only the last has its number."""
    return [(seq if at + 1 == len(events) else seq - 1, one) for at, one in enumerate(events)]


def text(seq: int, id: str, type: str, **fields: Any) -> Frame:
    """A frame that is not stored."""
    return seq, event(seq, f"TEXT_MESSAGE_{type}", messageId=id, **fields)


WHOLE: List[Frame] = [
    *stored(8, event(8, "RUN_STARTED", runId="r"), event(8, "STATE_SNAPSHOT", snapshot={})),
    *stored(9, event(9, "SUBAGENT_STARTED", subagentRunId="s", name="S")),
    *stored(
        10,
        event(10, "TOOL_CALL_START", toolCallId="t"),
        event(10, "TOOL_CALL_ARGS", toolCallId="t", delta="{}"),
        event(10, "TOOL_CALL_END", toolCallId="t"),
    ),
    *stored(11, event(11, "CUSTOM", name="baton.result", value={})),
    *stored(12, event(12, "SUBAGENT_FINISHED", subagentRunId="s")),
    text(12, "m", "START"),
    text(12, "m", "CONTENT", delta="We sold "),
    text(12, "m", "CONTENT", delta="400."),
    *stored(13, event(13, "TEXT_MESSAGE_END", messageId="m"), event(13, "STATE_DELTA", delta=[])),
    *stored(14, event(14, "CUSTOM", name="baton.usage", value={}), event(14, "RUN_FINISHED", runId="r")),
]


def rest(after: int) -> List[Frame]:
    """What the server sends to a client that continues after a number: in the middle of a run the state again, then what follows."""
    preamble: List[Frame] = []
    if after >= 14:
        return []
    if after >= 8:
        preamble = [
            (after, event(after, "RUN_STARTED", runId="r")),
            (after, event(after, "MESSAGES_SNAPSHOT", messages=[])),
            (after, event(after, "STATE_SNAPSHOT", snapshot={})),
        ]
        if 9 <= after < 12:
            preamble.append((after, event(after, "SUBAGENT_STARTED", subagentRunId="s", name="S")))
    if after < 12:
        return preamble + [frame for frame in WHOLE if frame[1]["metadata"]["baton"]["seq"] > after]
    # The open text comes from its beginning, in another cut.
    again = [text(12, "m", "START"), text(12, "m", "CONTENT", delta="We sold 4"), text(12, "m", "CONTENT", delta="00.")]
    if after >= 13:
        again = []
    return preamble + again + [frame for frame in WHOLE if frame[1]["metadata"]["baton"]["seq"] > max(after, 12)]


def seen(frames: Sequence[Dict[str, Any]]) -> List[Any]:
    """What is delivered, with the deltas of a text joined."""
    out: List[Any] = []
    for one in frames:
        if one["type"] == "TEXT_MESSAGE_CONTENT":
            if out and out[-1][0] == one["type"]:
                out[-1] = (one["type"], out[-1][1] + one["delta"])
                continue
            out.append((one["type"], one["delta"]))
        else:
            out.append((one["type"], one.get("name")))
    return out


EXPECTED = seen([frame for _, frame in WHOLE])


@pytest.mark.parametrize("first", range(len(WHOLE) + 1))
def test_k1_every_place_of_a_break_delivers_each_event_once(first: int) -> None:
    """K1: a connection that breaks after any frame, and a second one that breaks after any frame of its own."""
    for second in range(len(WHOLE) + 6):
        position = Position(7)
        delivered: List[Dict[str, Any]] = []
        for limit in (first, second, None):
            position.reconnect()
            for id, raw in rest(position.last_id)[:limit]:
                delivered += [dict(kept) for kept in position.accept(raw, id)]
        assert seen(delivered) == EXPECTED, (first, second)


def test_k1_a_run_that_waited_begins_again() -> None:
    """K1: the second part of a run has the id of the first, and is delivered whole."""
    position = Position()
    part = [event(1, "RUN_STARTED", runId="r"), event(2, "RUN_FINISHED", runId="r")]
    later = [event(3, "RUN_STARTED", runId="r"), event(4, "RUN_FINISHED", runId="r")]
    position.reconnect()
    assert all(position.accept(one, at + 1) for at, one in enumerate(part))
    position.reconnect()
    assert all(position.accept(one, at + 3) for at, one in enumerate(later))


def test_k1_a_text_that_a_dead_server_has_forgotten_is_withdrawn() -> None:
    """K1: the server died before it had stored the turn; the text that was sent is withdrawn when another one takes its place."""

    def at(path: str, raw: Dict[str, Any]) -> Dict[str, Any]:
        return {**raw, "metadata": {"baton": {"seq": raw["metadata"]["baton"]["seq"], "path": [path]}}}

    for end in ("TEXT_MESSAGE_START", "RUN_FINISHED"):
        position = Position()
        position.reconnect()
        position.accept(event(1, "RUN_STARTED", runId="r"), 1)
        position.accept(at("a", text(1, "lost", "START")[1]), 1)
        position.accept(at("a", text(1, "lost", "CONTENT", delta="We so")[1]), 1)
        position.reconnect()
        assert position.accept(event(1, "RUN_STARTED", runId="r"), 1) == []
        assert len(position.accept(at("b", text(1, "other", "START")[1]), 1)) == 1, "another agent's text"
        last = at("a", event(2, end, messageId="new", runId="r"))
        withdrawn, kept = position.accept(last, 2)
        assert withdrawn["value"] == {"message_id": "lost"} and kept == last


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames_are_read_however_they_are_cut(size: int) -> None:
    sent = 'retry: 3000\n\nid: 1\ndata: {"a":"ü"}\n\n: still here\n\nid: 2\r\ndata: one\r\ndata: two\r\n\r\n'.encode()
    reader = FrameReader()
    frames = [frame for at in range(0, len(sent), size) for frame in reader.feed(sent[at : at + size])]
    assert [(frame.id, frame.data) for frame in frames] == [(1, '{"a":"ü"}'), (2, "one\ntwo")]
