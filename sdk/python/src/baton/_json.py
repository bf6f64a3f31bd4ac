"""Reads JSON into dataclasses by their annotations. Unknown fields are ignored, so that a newer server can be used."""

from __future__ import annotations

import dataclasses
import functools
import typing
from datetime import datetime
from typing import Any, Mapping, TypeVar, Union, get_args, get_origin

from ._errors import ProtocolError

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """``value`` as ``kind``, a dataclass. Raises ``ProtocolError`` if a required field is missing or has another type."""
    try:
        return typing.cast(T, _decode(kind, value))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ProtocolError(f"the server sent no valid {kind.__name__}: {error}") from error


@functools.lru_cache(maxsize=None)
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin is Union:
        inner = [one for one in get_args(kind) if one is not type(None)]
        return None if value is None else _decode(inner[0], value) if len(inner) == 1 else value
    if origin in (list, tuple):
        items = [_decode(get_args(kind)[0], one) for one in value]
        return items if origin is list else tuple(items)
    if kind is datetime:
        # Python 3.9 and 3.10 know neither `Z` nor more than six digits of a second.
        text = value.replace("Z", "+00:00")
        head, dot, rest = text.partition(".")
        if dot:
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            text = f"{head}.{digits[:6]:0<6}{rest[len(digits):]}"
        return datetime.fromisoformat(text)
    if isinstance(kind, type) and hasattr(kind, "from_json"):
        return kind.from_json(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        # `from` is a keyword of Python, so its field is `from_`.
        known = {field.name.rstrip("_"): field.name for field in dataclasses.fields(kind)}
        given = {known[name]: _decode(hints[known[name]], one) for name, one in value.items() if name in known}
        return kind(**given)
    if kind in (str, int, bool) and not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
