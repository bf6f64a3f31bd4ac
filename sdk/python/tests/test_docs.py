"""The examples of the guide work as they stand, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict

import pytest

from support import Server

GUIDE = Path(__file__).parents[3] / "docs" / "sdk-python.md"


def test_k1_the_examples_of_the_guide_work(demo: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """K1: every Python block of docs/sdk-python.md runs against a server as the guide starts it."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 9
    names: Dict[str, Any] = {}
    for block in blocks:
        exec(compile(block.replace("http://127.0.0.1:8420", demo.url), str(GUIDE), "exec"), names)
    printed = capsys.readouterr().out
    assert "no_active_handoff" in printed and "agent_not_found ['knowledge']" in printed
    assert "completed" in printed and "From knowledge:" in printed
