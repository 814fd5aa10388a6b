"""Scales of axes: the position of each value, and the values that get a label."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from topolane.units import HOUR, MINUTE

from .data import finite

DECADES = (MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 100 * HOUR, 1000 * HOUR, 10000 * HOUR, 100000 * HOUR)
LINEAR = 0.6  # on a logarithmic axis, the first minute takes this part of a decade
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
WHOLE = (1.0, 2.0, 5.0, 10.0)
"""Steps for shares in per cent."""

Tick = tuple[float, str]
"""A value and its label."""


@dataclass
class AxisScale:
    """A scale from `low` (left or bottom) to `high`. `place` transforms values, for example to logarithms."""

    low: float = 0.0
    high: float = 1.0
    ticks: Sequence[Tick] = ()
    place: Callable[[float], float] = field(default=float)

    def share(self, value: float) -> float:
        """The position of a value on the scale, from 0 at the start to 1 at the end."""
        first, last = self.place(self.low), self.place(self.high)
        return (self.place(value) - first) / ((last - first) or 1.0)

    def shown(self) -> list[tuple[float, str]]:
        """The position and label of each tick on the scale."""
        along = ((self.share(value), label) for value, label in self.ticks)
        return [(share, label) for share, label in along if -1e-9 <= share <= 1 + 1e-9]


def rows(names: Sequence[str]) -> AxisScale:
    """A scale with one row per name, downward."""
    return AxisScale(len(names) - 0.4, -0.6, [(float(row), name) for row, name in enumerate(names)])


def linear(
    low: float,
    high: float,
    write: Callable[[float], str] = "{:,.10g}".format,
    most: int = 5,
    steps: Sequence[float] = STEPS,
) -> AxisScale:
    """A linear scale with at most `most` steps of a round size."""
    return AxisScale(low, high, [(value, write(value)) for value in round_values(low, high, most, steps)])


def round_values(low: float, high: float, most: int, steps: Sequence[float] = STEPS) -> list[float]:
    """Multiples of a round step from `low` to `high`, at most `most` steps."""
    least = (high - low) / most or 1.0
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(decade * step for step in steps if decade * step >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def spans_decades(values: Iterable[float | None], ratio: float = 50.0) -> bool:
    """Whether a linear axis would hide the small values next to the large ones."""
    sizes = [abs(value) for value in values if finite(value) and abs(value) >= 1.0]
    return bool(sizes) and max(sizes) >= MINUTE and max(sizes) / min(sizes) > ratio


def decades(largest: float, *, room: float, gap: float, signed: bool = False) -> tuple[AxisScale, str]:
    """A scale for seconds, linear up to a minute and logarithmic above, and its unit in words.

    `largest` lies at the fraction `room` of the axis; ticks are at least the fraction `gap` of the axis
    apart.
    """
    end = _place(max(largest, 2 * MINUTE)) / room
    top = MINUTE * 10 ** (end - LINEAR)
    length = 2 * end if signed else end
    ticks = [0.0]
    for tick in DECADES:
        if tick <= top and _place(tick) - _place(ticks[-1]) >= gap * length:
            ticks.append(tick)
    both = sorted({-tick for tick in ticks} | set(ticks)) if signed else ticks
    written = [(tick, _tick(tick, signed)) for tick in both]
    return AxisScale(-top if signed else 0.0, top, written, _place), "logarithmic beyond 1 min"


def _place(seconds: float) -> float:
    """The position of a time on that axis, in decades from 0."""
    size = abs(seconds)
    place = LINEAR * size / MINUTE if size < MINUTE else LINEAR + math.log10(size / MINUTE)
    return math.copysign(place, seconds)


def _tick(seconds: float, signed: bool) -> str:
    size = abs(seconds)
    if size == 0:
        return "0"
    text = f"{size / MINUTE:.0f} min" if size < HOUR else f"{size / HOUR:,.0f} h"
    return ("−" if seconds < 0 else "+") + text if signed else text


def times(largest: float, *, signed: bool = False) -> tuple[AxisScale, str]:
    """A linear scale for seconds with ticks in hours, minutes or seconds, and the name of that unit."""
    units = ((HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds"))
    unit, word = next((pair for pair in units if largest >= 2 * pair[0]), units[-1])
    low = -largest if signed else 0.0
    values = round_values(low / unit, largest / unit, 4)
    return AxisScale(low, largest, [(value * unit, _plain(value, signed)) for value in values]), word


def _plain(value: float, signed: bool) -> str:
    text = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):.3g}"
    return ("−" if value < 0 else "+" if signed and value > 0 else "") + text
