"""The marks of a figure after layout: shapes, dots and texts in points, with `y` downward from the top."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .style import INK

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, right, low, high."""


@dataclass(frozen=True)
class Outline:
    """Lines of one look; areas if `closed`."""

    lines: Sequence[Sequence[Point]]
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dash: Sequence[float] = ()
    opacity: float = 1.0
    closed: bool = False
    round_ends: bool = False
    clipped: bool = False
    """Whether the shape is cut at the axes."""
    gid: str | None = None
    """The id through which the shape gets its hover text."""


@dataclass(frozen=True)
class Dot:
    """A circle."""

    x: float
    y: float
    radius: float
    fill: str
    stroke: str


@dataclass(frozen=True)
class Text:
    """A line of text on its baseline. `anchor` is the part of it at `x`: start, middle or end."""

    x: float
    y: float
    text: str
    size: float = 9.0
    colour: str = INK
    anchor: str = "start"
    bold: bool = False
    upward: bool = False


@dataclass(frozen=True)
class Clip:
    """Marks that are drawn only within a box of the figure."""

    box: Box
    marks: Sequence[Outline]


Mark = Outline | Dot | Text | Clip


def corners(boxes: Iterable[Box]) -> list[list[Point]]:
    """The corners of each box."""
    return [[(left, low), (right, low), (right, high), (left, high)] for left, right, low, high in boxes]
