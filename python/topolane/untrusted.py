"""Checks values that users of a cluster write, such as annotations, comments and messages, where they enter.

A value of a wrong type, not finite, out of range or too long is refused with a sentence. Then only the object
that carries it is skipped; pages and answers about other users' jobs still work.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from topolane import texts

T = TypeVar("T")

LONGEST_LINE = 1000
"""The most characters of a message that is shown."""
LONGEST_WORD = 100
"""The most characters of a name that is shown."""
MOST_DIGITS = 20
"""The most digits of a whole number in JSON."""
WRONG = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors that can occur when an object differs from its API's description."""
LISTED = 3
"""The most unreadable objects that a problem names."""


def line(text: object, most: int = LONGEST_LINE) -> str:
    """A text on one printable line of at most `most` characters; empty if the value is not a text."""
    if not isinstance(text, str):
        return ""
    kept = texts.printable(text[:most])
    return kept if len(text) <= most and len(kept) <= most else f"{kept[:most]}... ({len(text)} characters)"


def word(text: object, what: str) -> str:
    """A name. Raises ValueError if the value is not a text, is empty or too long, or has characters that a
    terminal does not show.
    """
    if not (isinstance(text, str) and 0 < len(text) <= LONGEST_WORD and texts.printable(text) == text):
        raise ValueError(
            f"{what} is {_shown(text)}, which is no name of up to {LONGEST_WORD} printable characters"
        )
    return text


def whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number in a range. Raises ValueError for any other value, such as true or 1.0."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{what} is {_shown(value)}, which is no whole number from {low} to {high}")
    return value


def share(value: object, what: str) -> float:
    """A share above 0 and up to 1. Raises ValueError for any other value."""
    if type(value) not in (int, float) or not 0 < value <= 1:  # type: ignore[operator]
        raise ValueError(f"{what} is {_shown(value)}, which is no number over 0 and up to 1")
    return float(value)  # type: ignore[arg-type]


def finite(value: object) -> float | None:
    """A finite number; None for any other value."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def when(text: object) -> float | None:
    """A time such as 2026-11-29T19:50:41Z in seconds since 1970; None for any other value."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def table(text: str, most: int) -> Mapping[str, Any]:
    """The object in a JSON text of at most `most` characters. Raises ValueError for any other text, also with
    NaN or long numbers.
    """
    found, rest = first_table(text.lstrip(BLANKS), most)
    if rest.strip(BLANKS):
        raise ValueError("it is no JSON: more follows the object")
    return found


def first_table(text: str, most: int) -> tuple[Mapping[str, Any], str]:
    """The JSON object with which a text of at most `most` characters begins, and what follows it. Raises ValueError."""
    if len(text) > most:
        raise ValueError(f"it has {len(text)} characters; the most is {most}")
    try:
        found, end = DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if type(found) is not dict:
        raise ValueError("it is no JSON object")
    return found, text[end:]


def each(read: Callable[[Any], T], items: Iterable[Any], kind: str, problems: list[str]) -> list[T]:
    """The results of `read` for the objects of an API. Objects that cannot be read are skipped and named in a
    problem.
    """
    found, wrong = [], []
    for item in items:
        try:
            found.append(read(item))
        except WRONG as error:
            wrong.append(f"{_name(item)} ({line(str(error) or type(error).__name__, LONGEST_WORD)})")
    add(problems, f"A {kind} cannot be read and does not count", wrong)
    return found


def add(problems: list[str], said: str, wrong: list[str]) -> None:
    """Adds a sentence about wrong objects that names the first few."""
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
    # A long number or deeply nested value cannot be converted to text.
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


BLANKS = " \t\n\r"
"""What may stand around a JSON value."""
DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_constant)
