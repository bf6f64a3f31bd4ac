"""Resuming a stream: removes what was delivered before the connection broke.

The server continues after the last position that was received. In the middle of a run it first sends the state again (a preamble), and
every open text from its first character. One stored event may be several frames, of which only the last has its position, so the first
frames of such an event can arrive twice. A server that died before it had stored the beginning of a turn does not know that its text was
sent: that text is never mentioned again, and is withdrawn here.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

_CONTENT = {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"}
_ONCE = {
    "TEXT_MESSAGE_START": "messageId",
    "TEXT_MESSAGE_END": "messageId",
    "TOOL_CALL_START": "toolCallId",
    "TOOL_CALL_ARGS": "toolCallId",
    "TOOL_CALL_END": "toolCallId",
    "TOOL_CALL_RESULT": "messageId",
    "SUBAGENT_STARTED": "subagentRunId",
    "SUBAGENT_FINISHED": "subagentRunId",
    "SUBAGENT_ERROR": "subagentRunId",
}
"""Types that occur once per id, and the field with the id."""
_OPENED = {
    "REASONING_START": (True, "thought"),
    "REASONING_END": (False, "thought"),
    "REASONING_MESSAGE_START": (True, "text"),
    "REASONING_MESSAGE_END": (False, "text"),
}
"""A thought can be closed and opened again: whether it is opened, and which part of it."""

_TEXT = {"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"}

Raw = Mapping[str, Any]


def _place(raw: Raw) -> List[str]:
    return list(((raw.get("metadata") or {}).get("baton") or {}).get("path") or ())


class Position:
    """Where a stream is, and what it has delivered of the current run."""

    def __init__(self, last_id: int = 0) -> None:
        self.last_id = last_id
        self._run: Optional[str] = None
        """The run that has started and not ended."""
        self._is_resumed = False
        self._resumed_at = 0
        self._has_delivered = False
        self._seen: Set[Tuple[str, str]] = set()
        self._open: Set[Tuple[str, str]] = set()
        self._lengths: Dict[Tuple[str, str], int] = {}
        self._skip: Dict[Tuple[str, str], int] = {}
        self._partial: Set[Tuple[int, str, str]] = set()
        """Frames of events whose last frame has not arrived."""
        self._open_texts: Dict[str, Raw] = {}
        """The start of each text that has not ended."""
        self._doubtful: Set[str] = set()
        """Texts that were open when the connection broke and that were not mentioned since."""

    def reconnect(self) -> None:
        """Call it before the frames of a new connection that continues after ``last_id``."""
        self._is_resumed = self._has_delivered
        self._resumed_at = self.last_id
        self._skip = dict(self._lengths)
        self._doubtful = set(self._open_texts)

    def accept(self, raw: Raw, id: Optional[int]) -> List[Raw]:
        """What has to be delivered: nothing if it was delivered before, and the withdrawal of texts that were lost before it."""
        withdrawn = self._withdrawn(raw)
        kept = self._filter(raw)
        if id is not None and id > self.last_id:
            self.last_id = id
            self._partial = {one for one in self._partial if one[0] > id}
        self._has_delivered = self._has_delivered or kept is not None
        return withdrawn if kept is None else [*withdrawn, kept]

    def _withdrawn(self, raw: Raw) -> List[Raw]:
        """Withdraws texts that cannot continue: another text begins at their place, or the run ends."""
        kind, id = raw.get("type"), str(raw.get("messageId"))
        if kind in _TEXT:
            self._doubtful.discard(id)
        lost: List[str] = []
        if kind == "TEXT_MESSAGE_START":
            lost = [one for one in self._doubtful if _place(self._open_texts[one]) == _place(raw)]
            self._open_texts[id] = raw
        elif kind == "TEXT_MESSAGE_END":
            self._open_texts.pop(id, None)
        elif kind in ("RUN_FINISHED", "RUN_ERROR"):
            lost = list(self._doubtful)
        elif kind == "CUSTOM" and raw.get("name") == "baton.turn_restarted":
            restarted = str((raw.get("value") or {}).get("message_id"))
            self._open_texts.pop(restarted, None)
            self._doubtful.discard(restarted)
        for one in lost:
            self._open_texts.pop(one, None)
            self._doubtful.discard(one)
        withdrawal = {"type": "CUSTOM", "name": "baton.turn_restarted", "metadata": raw.get("metadata")}
        return [{**withdrawal, "value": {"message_id": one}} for one in lost]

    def _filter(self, raw: Raw) -> Optional[Raw]:
        kind = str(raw.get("type"))
        if kind == "RUN_STARTED":
            is_known = self._is_resumed and self._run == raw.get("runId")
            if not is_known:
                self._begin(str(raw.get("runId")))
            return None if is_known else raw
        if kind in _CONTENT:
            return self._content(kind, raw)
        if kind in _ONCE:
            return self._once((kind, str(raw.get(_ONCE[kind]))), raw)
        if kind in _OPENED:
            return self._opened(kind, raw)
        kept = None if self._is_repeated(kind, raw) else raw
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            self._run = None
        return kept

    def _begin(self, run: str) -> None:
        self._run = run
        for known in (self._seen, self._open, self._lengths, self._skip, self._open_texts, self._doubtful):
            known.clear()

    def _content(self, kind: str, raw: Raw) -> Optional[Raw]:
        key = (kind, str(raw.get("messageId")))
        delta = str(raw.get("delta", ""))
        skipped = min(self._skip.get(key, 0), len(delta))
        if skipped:
            self._skip[key] -= skipped
            delta = delta[skipped:]
        if not delta:
            return None
        self._lengths[key] = self._lengths.get(key, 0) + len(delta)
        return raw if not skipped else {**raw, "delta": delta}

    def _once(self, key: Tuple[str, str], raw: Raw) -> Optional[Raw]:
        if key in self._seen:
            return None
        self._seen.add(key)
        return raw

    def _opened(self, kind: str, raw: Raw) -> Optional[Raw]:
        opens, part = _OPENED[kind]
        key = (part, str(raw.get("messageId")))
        if (key in self._open) == opens:
            return None
        (self._open.add if opens else self._open.discard)(key)
        return raw

    def _is_repeated(self, kind: str, raw: Raw) -> bool:
        seq = int(((raw.get("metadata") or {}).get("baton") or {}).get("seq", 0))
        is_preamble = kind in ("MESSAGES_SNAPSHOT", "STATE_SNAPSHOT") and seq <= self._resumed_at
        key = (seq, kind, str(raw.get("name") or raw.get("activityType") or ""))
        is_repeated = self._is_resumed and (is_preamble or key in self._partial)
        if seq > self.last_id:
            self._partial.add(key)
        return is_repeated
