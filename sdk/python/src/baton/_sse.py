"""Server-sent events: splits what arrives into frames."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Iterator, List, Optional

from ._errors import ProtocolError

MAX_FRAME = 16 * 1024 * 1024
"""Characters of one frame. A longer one is not sent by Baton."""


@dataclass(frozen=True)
class Frame:
    data: str
    id: Optional[int] = None


class FrameReader:
    """Takes bytes as they arrive and gives complete frames. Comments and ``retry`` are ignored."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        self._rest += self._decoder.decode(chunk)
        if len(self._rest) > MAX_FRAME:
            raise ProtocolError("the server sent a frame that is too large")
        *frames, self._rest = self._rest.replace("\r\n", "\n").split("\n\n")
        for text in frames:
            frame = _frame(text)
            if frame is not None:
                yield frame


def _frame(text: str) -> Optional[Frame]:
    data: List[str] = []
    id: Optional[int] = None
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "id" and value.isdigit():
            id = int(value)
    return Frame("\n".join(data), id) if data else None
