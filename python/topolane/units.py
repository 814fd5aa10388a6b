"""Formats numbers for people. Times are given in seconds."""

from __future__ import annotations

import time

MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0

NOTHING = "–"


def clean(text: str, width: int = 34) -> str:
    """`text` on one line without control characters, cut to `width` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def count(value: float | None) -> str:
    """A whole number as text: `12,345`."""
    return NOTHING if value is None else f"{value:,.0f}"


def decimal(value: float | None, places: int = 2) -> str:
    """A number with decimals as text: `1.23`."""
    return NOTHING if value is None else f"{value:,.{places}f}"


def percent(value: float | None, places: int = 1) -> str:
    """A fraction from 0 to 1 as text: `87.3 %`."""
    return NOTHING if value is None else f"{100 * value:.{places}f} %"


def duration(seconds: float | None) -> str:
    """A duration as text: `0 s`, `45 s`, `12 min`, `7.9 h`, `1,322 h`. Long ones stay in hours, as in the
    papers.
    """
    if seconds is None:
        return NOTHING
    sign, size = ("−" if seconds < 0 else ""), abs(seconds)
    if size < 0.5:
        return "0 s"
    if size < 59.5:
        return f"{sign}{size:.0f} s"
    if size < 9.95 * MINUTE:
        return f"{sign}{size / MINUTE:.1f} min"
    if size < 59.5 * MINUTE:
        return f"{sign}{size / MINUTE:.0f} min"
    return f"{sign}{size / HOUR:,.1f} h" if size < 99.95 * HOUR else f"{sign}{size / HOUR:,.0f} h"


def change(seconds: float | None) -> str:
    """A change of a duration as text, with its sign: `+45 min`, `−1.2 h`, `0 s`."""
    text = duration(seconds)
    return "+" + text if seconds is not None and seconds >= 0.5 else text


def span(seconds: float | None) -> str:
    """A duration as text; from two days on, in days."""
    if seconds is not None and seconds >= 2 * DAY:
        return f"{seconds / DAY:,.1f} days"
    return duration(seconds)


def moment(seconds: float) -> str:
    """A point in time since the workload's epoch as text: `day 12, 03:14`. The first day is day 1."""
    whole = int(seconds // DAY)
    minutes = int((seconds - whole * DAY) // MINUTE)
    return f"day {whole + 1:,}, {minutes // 60:02d}:{minutes % 60:02d}"


def plural(number: int, word: str) -> str:
    """A number and its noun: `1 job`, `2 jobs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def clock(when: float, now: float) -> str:
    """A time of day as text, with the date if it is not today's."""
    day = "" if _day(when) == _day(now) else "%Y-%m-%d "
    return time.strftime(f"{day}%H:%M:%S", time.localtime(when))


def _day(when: float) -> tuple[int, int]:
    local = time.localtime(when)
    return local.tm_year, local.tm_yday
