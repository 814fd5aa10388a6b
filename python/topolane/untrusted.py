"""Values that users of a cluster write: annotations, comments, messages. Each is checked where it enters.

A value of another type, or one that is not finite, out of range or too long, is refused with a sentence. So it costs what it is written on,
and never a page or the answer about another user's job.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from topolane import texts

T = TypeVar("T")

LONGEST_LINE = 1000
"""Letters of a message that is shown."""
LONGEST_WORD = 100
"""Letters of a name that is shown."""
MOST_DIGITS = 20
"""Digits of a whole number in JSON."""
WRONG = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading an object raises that is not as its API describes it."""
LISTED = 3
"""Objects that cannot be read and are named one by one."""


def line(text: object, most: int = LONGEST_LINE) -> str:
    """A text on one printable line of at most `most` letters; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    kept = texts.printable(text[:most])
    return kept if len(text) <= most and len(kept) <= most else f"{kept[:most]}... ({len(text)} characters)"


def word(text: object, what: str) -> str:
    """A name. Raises ValueError for what is no text, has no letters or too many, or holds characters that a terminal does not show."""
    if not (isinstance(text, str) and 0 < len(text) <= LONGEST_WORD and texts.printable(text) == text):
        raise ValueError(
            f"{what} is {_shown(text)}, which is no name of up to {LONGEST_WORD} printable characters"
        )
    return text


def whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number in a range. Raises ValueError for all else, such as true or 1.0."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{what} is {_shown(value)}, which is no whole number from {low} to {high}")
    return value


def share(value: object, what: str) -> float:
    """A share over 0 and up to 1. Raises ValueError for all else."""
    if type(value) not in (int, float) or not 0 < value <= 1:  # type: ignore[operator]
        raise ValueError(f"{what} is {_shown(value)}, which is no number over 0 and up to 1")
    return float(value)  # type: ignore[arg-type]


def finite(value: object) -> float | None:
    """A number that is finite; None for all else."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def table(text: str, most: int) -> Mapping[str, Any]:
    """The object in a JSON text of at most `most` characters. Raises ValueError for all else: another value, NaN, long numbers."""
    if len(text) > most:
        raise ValueError(f"it has {len(text)} characters; the most is {most}")
    try:
        found = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if type(found) is not dict:
        raise ValueError("it is no JSON object")
    return found


def each(read: Callable[[Any], T], items: Iterable[Any], kind: str, problems: list[str]) -> list[T]:
    """What can be read of the objects of an API. Those that cannot are named in a problem."""
    found, wrong = [], []
    for item in items:
        try:
            found.append(read(item))
        except WRONG as error:
            wrong.append(f"{_name(item)} ({line(str(error) or type(error).__name__, LONGEST_WORD)})")
    add(problems, f"A {kind} cannot be read and does not count", wrong)
    return found


def add(problems: list[str], said: str, wrong: list[str]) -> None:
    """Adds a sentence about objects that are wrong: the first are named."""
    if wrong:
        more = f" and {len(wrong) - LISTED:,} more" if len(wrong) > LISTED else ""
        problems.append(f"{said}: {'; '.join(wrong[:LISTED])}{more}.")


def _name(item: Any) -> str:
    meta = item.get("metadata") if isinstance(item, dict) else None
    parts = [meta.get("namespace"), meta.get("name")] if isinstance(meta, dict) else []
    return "/".join(line(part, LONGEST_WORD) for part in parts if part) or "one without a name"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return texts.shown(texts.printable(value))
    # The text of a long number or of deep nesting cannot be made.
    return (
        texts.printable(repr(value)[: texts.SHOWN])
        if type(value) in (float, bool, type(None))
        else _kind(value)
    )


def _kind(value: object) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 10**MOST_DIGITS else "a longer number"
    return (
        "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "another value"
    )


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits)} digits; the most is {MOST_DIGITS}")
    return int(digits)


def _finite(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError(f"{texts.shown(digits)} is no finite number")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")
