"""What a stream has delivered so far."""

from __future__ import annotations

from typing import Dict, List, Optional

from ._events import (
    ActiveAgentChanged,
    Event,
    RunFailed,
    RunFinished,
    RunStarted,
    SubAgentAnswered,
    TextDelta,
    TextStarted,
    TurnRestarted,
    UsageReported,
)
from ._models import Results, Source, SubAgentResult
from ._resume import Position


class Received:
    """The state of a stream: what it has delivered of the newest run."""

    def __init__(self, position: Position) -> None:
        self._position = position
        self._texts: Dict[str, str] = {}
        self._results: List[SubAgentResult] = []
        self.run_id: Optional[str] = None
        self.status: Optional[str] = None
        """``running``, ``waiting``, ``completed``, ``failed`` or ``cancelled``; ``None`` before the run has started."""
        self.active_agent: Optional[str] = None
        self.sources: List[Source] = []
        """The agents that contributed to the answer."""
        self.error: Optional[RunFailed] = None
        self.interrupts: List[Dict[str, object]] = []
        """What a run with the status ``waiting`` waits for."""

    @property
    def last_event_id(self) -> int:
        """The position to continue after."""
        return self._position.last_id

    @property
    def text(self) -> str:
        """The text for the user so far."""
        return "\n\n".join(text for text in self._texts.values() if text)

    @property
    def results(self) -> Results:
        """The results of sub-agents so far. Streams of messages have them only with ``detail="trace"``; the run always has them."""
        return Results(self._results)

    def _add(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            if event.run_id != self.run_id:
                self._texts, self._results, self.sources = {}, [], []
            self.run_id, self.status, self.error, self.interrupts = event.run_id, "running", None, []
        elif isinstance(event, TextStarted) and event.subagent_run_id is None:
            self._texts[event.message_id] = ""
        elif isinstance(event, TextDelta) and event.subagent_run_id is None:
            self._texts[event.message_id] = self._texts.get(event.message_id, "") + event.delta
        elif isinstance(event, TurnRestarted):
            self._texts.pop(event.message_id, None)
        elif isinstance(event, SubAgentAnswered):
            self._results.append(event.result)
        elif isinstance(event, ActiveAgentChanged):
            self.active_agent = event.active_agent
        elif isinstance(event, UsageReported):
            self.sources = event.sources
        elif isinstance(event, RunFinished):
            self.status = {"interrupt": "waiting", "cancelled": "cancelled"}.get(event.outcome, "completed")
            self.interrupts = list(event.interrupts)
        elif isinstance(event, RunFailed):
            self.status, self.error = "failed", event
