#!/usr/bin/env python3
"""Writes docs/requirements-tests.md: for every requirement the tests that carry its id, and what each asserts.

    scripts/requirements.py           writes the file
    scripts/requirements.py --check   fails if the file is stale, or if a MUST of docs/requirements.md has no test

A test carries an id in its name (`c_13_`, `j3_6_`, `a8_`), in the comment before it ("C-13", "J3.1–J3.6"), or at the beginning of a comment
or of the message of an assertion in its body ("// J3.5: then one answer", `"J1.1: {said}"`), also in functions of the same file that it calls.
Tests are found in Rust (also the properties of the store's conformance suite and the measurements of `make bench`), TypeScript (Vitest and
Playwright) and Python (pytest).
"""

from __future__ import annotations

import functools
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs/requirements.md"
TABLE = ROOT / "docs/requirements-tests.md"
# Names of these tests have the numbers of other lists: attacks of SECURITY.md, and cases of the data lifecycle.
OTHER_NUMBERS = ("crates/baton/tests/suite/attacks", "crates/baton/tests/suite/lifecycle")
# Requirements whose tests are still to be written. Remove an id when its test exists; add none.
WITHOUT_TEST: set[str] = set()
# Tests that are listed for each id; further ones are only counted as present.
SHOWN = 3
LONGEST = 140

LINE = re.compile(r"^- \*\*([A-KX]-?\d+[a-d]?(?:\.\d+)?[a-d]?)\*\* (MUST|OPEN|FUTURE)?(?:\([^)]*\))? ?(.*)$", re.MULTILINE)
IN_TEXT = re.compile(r"\b([A-KX])-?(\d+)(?:\.(\d+))?([a-d])?\b(?:\s?(?:–|-| to )\s?\b([A-KX])-?(\d+)(?:\.(\d+))?\b)?")
IN_NAME = re.compile(r"([a-kx])_?(\d+)([a-d])?(?:_(\d+))?(?=_|$)")
RUST = re.compile(
    r"((?:^[ \t]*///[^\n]*\n)*)(?:^[ \t]*#\[[^\n]*\]\n)*?^[ \t]*#\[(?:\w+::)?test\b[^\n]*\]\n((?:^[ \t]*(?:#\[|//)[^\n]*\n)*)"
    r"^[ \t]*(?:pub )?(?:async )?fn (\w+)",
    re.MULTILINE,
)
PROPERTY = re.compile(r"((?:^[ \t]*///[^\n]*\n)*)^pub(?:\(\w+\))? async fn (\w+)", re.MULTILINE)
SCRIPT = re.compile(
    r"((?:^[ \t]*(?://|/?\*)[^\n]*\n)*)^[ \t]*(?:test|it)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['\"`])(.*?)\2", re.MULTILINE
)
PYTHON = re.compile(r"^(?:async )?def (test_\w+)\([^)]*\)[^:]*:\n(?:\s+\"\"\"(.*?)\"\"\")?", re.MULTILINE | re.DOTALL)
CALLED = re.compile(r"\b(\w+)\(")
FUNCTION = re.compile(r"((?:^///[^\n]*\n)*)(?:^#\[[^\n]*\]\n)*^(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)", re.MULTILINE)
IDS = r"[A-KX]-?\d+[\d.a-d]*(?:(?:\s?–\s?| to )[A-KX]?-?[\d.]+)?"
LISTED = rf"{IDS}(?:(?:, | and ){IDS})*"
# "// J3.5: then one answer", or the ids alone in a line.
COMMENT = re.compile(rf"^[ \t]*(?://|#) ({LISTED}(?::[^\n]*)?(?:\n[ \t]*(?://|#) [^\n]*)*)$", re.MULTILINE)
# `"J1.1: {said}"`. Without words only as the last argument, because a text such as "A2" may as well name a cell.
MESSAGE = re.compile(rf"\"({LISTED}:[^\"]*)\"|(?:,\s*|\.expect\()\"({LISTED})\",?\s*\)[;.]")


@dataclass(frozen=True)
class Test:
    path: str
    name: str
    comment: str
    body: tuple[str, ...] = ()
    """Comments and messages in the body that begin with an id."""


def known_ids() -> dict[str, tuple[str, str]]:
    """Every id of the list, with MUST, OPEN or FUTURE and its text."""
    return {id: (kind or "", text) for id, kind, text in LINE.findall(LIST.read_text())}


def plain(id: str) -> tuple[str, int, int, str]:
    """An id without its spelling: `C-13` and `c_13` are the same. Sorts as people count."""
    letter, number, part, suffix = re.fullmatch(r"([A-KX])-?(\d+)(?:\.(\d+))?([a-d])?", id).groups()
    return letter, int(number), int(part or 0), suffix or ""


def files(*patterns: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if "node_modules" not in path.parts and "target" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def words(comment: str) -> str:
    lines = [re.sub(r"^\s*(?:///?|/?\*+/?)\s?", "", line) for line in comment.strip().splitlines()]
    return " ".join(" ".join(lines).replace("*/", "").split())


def body_of(text: str, found: re.Match[str]) -> str:
    """The body ends with the first line that has the indentation of its head."""
    head = text[: found.end()].rsplit("\n", 1)[-1]
    indent = re.escape(head[: len(head) - len(head.lstrip())])
    end = re.compile(rf"^{indent}\S", re.MULTILINE).search(text, text.find("\n", found.end()) + 1)
    return text[found.end() : end.start() if end else len(text)]


def marked(body: str) -> tuple[str, ...]:
    """The comments and messages that begin with an id."""
    messages = (text or ids for text, ids in MESSAGE.findall(body))
    return (*(words(one) for one in COMMENT.findall(body)), *messages)


def inside(text: str, found: re.Match[str]) -> tuple[str, ...]:
    """What is marked in a test, and in the functions of the file that it calls."""
    body = body_of(text, found)
    called = set(CALLED.findall(body))
    return marked(body) + tuple(one for name, those in functions(text) if name in called for one in those)


@functools.lru_cache(maxsize=1)
def functions(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The functions of a file that are marked with ids."""
    those = ((one[2], (words(one[1]), *marked(body_of(text, one)))) for one in FUNCTION.finditer(text))
    return [(name, marks) for name, marks in those if any(marks)]


def tests() -> Iterator[Test]:
    for path, text in files("crates/**/*.rs", "bench/**/*.rs", "smoke/**/*.rs"):
        for found in RUST.finditer(text):
            before, between, name = found.groups()
            yield Test(path, name, words(before + between), inside(text, found))
    for path, text in files("bench/src/**/*.rs"):
        for found in FUNCTION.finditer(text):
            yield Test(path, found[2], words(found[1]))
    for path, text in files("crates/baton-store/src/conformance/**/*.rs", "crates/baton-store/src/conformance.rs"):
        for found in PROPERTY.finditer(text):
            before, name = found.groups()
            yield Test(path, name, words(before), inside(text, found))
    for path, text in files("ui/src/**/*.test.ts", "ui/src/**/*.test.tsx", "ui/e2e/**/*.spec.ts"):
        for found in SCRIPT.finditer(text):
            before, _, name = found.groups()
            yield Test(path, name, words(before), inside(text, found))
    for path, text in files("sdk/python/tests/test_*.py"):
        for found in PYTHON.finditer(text):
            name, doc = found.groups()
            yield Test(path, name, words(doc or ""), inside(text, found))


def ids_in_text(text: str) -> Iterator[tuple[str, int, int, str]]:
    for letter, number, part, suffix, to_letter, to_number, to_part in IN_TEXT.findall(text):
        first = (letter, int(number), int(part or 0), suffix)
        yield first
        if to_letter == letter and to_part and part:
            yield from ((letter, int(number), one, "") for one in range(int(part) + 1, int(to_part) + 1))
        elif to_letter == letter and not to_part:
            yield from ((letter, one, 0, "") for one in range(int(number) + 1, int(to_number) + 1))
        elif to_letter:
            yield to_letter, int(to_number), int(to_part or 0), ""


def ids_in_name(name: str) -> Iterator[tuple[str, int, int, str]]:
    """`j3_6_j3_4_a_program` is J3.6 and J3.4; `c_13_` is C-13. A number after the first is a part only for J."""
    rest = name.removeprefix("test_")
    while found := IN_NAME.match(rest):
        letter, number, suffix, part = found.groups()
        letter = letter.upper()
        yield letter, int(number), int(part) if part and letter == "J" else 0, suffix or ""
        end = found.end() if letter == "J" or not part else found.start(4) - 1
        rest = rest[end:].lstrip("_")


def asserted(test: Test, id: tuple[str, int, int, str]) -> str:
    """The first sentence of the comment without its ids, or the name in words."""
    inner = [one for one in test.body if id in set(ids_in_text(one.split(":")[0]))]
    comments = [test.comment] if id in ids_of(test) or not inner else inner
    text = next(filter(None, map(sentence, comments)), "")
    if not text:
        text = test.name.removeprefix("test_")
        while found := IN_NAME.match(text):
            text = text[found.end() :].lstrip("_")
        text = text.replace("_", " ")
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rsplit(" ", 1)[0] + " …"


def sentence(comment: str) -> str:
    """The first sentence, without ids before it and without placeholders; empty if there are no words."""
    text = re.sub(rf"^{IDS}(?:(?:, | and |,? )?{IDS})*(?:: ?|\. ?|$)", "", comment)
    text = re.split(r"(?<=[^.A-Z][.!?])\s+(?=[A-Z`])", re.sub(r"\{[^}]*\}", "", text), maxsplit=1)[0].strip(" :")
    return text if re.search(r"\w", text) else ""


def ids_of(test: Test) -> set[tuple[str, int, int, str]]:
    named = () if test.path.startswith(OTHER_NUMBERS) else ids_in_name(test.name)
    return {*named, *ids_in_text(test.comment), *ids_in_text(test.name)}


def short(path: str) -> str:
    return path.removeprefix("crates/").replace("/tests/suite/", "/").replace("/src/", "/")


def collect(known: dict[str, tuple[str, str]]) -> dict[str, list[Test]]:
    spelled = {plain(id): id for id in known}
    found: dict[str, dict[Test, int]] = defaultdict(dict)
    for test in tests():
        named = set(ids_in_name(test.name))
        inner = (one for comment in test.body for one in ids_in_text(comment.split(":")[0]))
        for one in ids_of(test) | set(inner):
            if one in spelled:
                found[spelled[one]][test] = 0 if one in named else 1
    return {id: [t for t, _ in sorted(those.items(), key=lambda i: (i[1], i[0].path, i[0].name))] for id, those in found.items()}


def table(known: dict[str, tuple[str, str]], found: dict[str, list[Test]]) -> str:
    out = [
        "# Requirements and their tests",
        "",
        "Written by `scripts/requirements.py` from the names and comments of the tests; do not edit it. [Requirement ids](requirements.md) says what each",
        f"id asks for. At most {SHOWN} tests are listed for an id, those with the id in their name first; … says that there are more.",
        "",
        "| id | test | asserts |",
        "|---|---|---|",
    ]
    for id in sorted(found, key=lambda id: (plain(id)[0] == "X", plain(id))):
        for at, test in enumerate(found[id][:SHOWN]):
            more = " …" if at + 1 == SHOWN and len(found[id]) > SHOWN else ""
            name = test.name.replace("|", "\\|")
            out.append(f"| {id if at == 0 else ''} | `{short(test.path)}::{name}`{more} | {asserted(test, plain(id))} |")
    return "\n".join(out) + "\n"


def main() -> int:
    known = known_ids()
    found = collect(known)
    written = table(known, found)
    missing = [id for id, (kind, _) in known.items() if kind == "MUST" and id not in found and id not in WITHOUT_TEST]
    if "--check" not in sys.argv:
        TABLE.write_text(written)
    elif not TABLE.exists() or TABLE.read_text() != written:
        print("docs/requirements-tests.md is stale: run scripts/requirements.py and commit the result", file=sys.stderr)
        return 1
    if missing:
        print(f"no test carries the id of these requirements: {', '.join(missing)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
