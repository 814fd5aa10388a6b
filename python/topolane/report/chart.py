"""Figures: a grid of axes, with space for the labels around each, laid out as marks.

Importing Matplotlib takes longer than drawing all figures of a report, so it draws only PNG.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .axes import BASELINE, LINE, SIZE, Axes, Spot, marks_on, room_around, spot_at
from .lettering import width_of
from .marks import Box, Mark, Outline, Text, corners

INCH = 72.0  # in points
EDGE = 3.0  # margin around the figure, in points
GAP = 9.0  # distance between neighbours, in points


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend: a line sample if it has a width, otherwise an area sample."""

    label: str
    colour: str
    width: float = 0.0
    dash: Sequence[float] = ()
    marker: int | None = None


class Figure:
    """A grid of axes with names and a legend around it; lengths in inches."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = INCH * width, INCH * height
        self.title, self.x_name, self.y_name = "", "", ""
        """The title (possibly several lines) and the names that all axes share."""
        self.axes: list[Axes] = []
        self.columns = 1
        self.heights: list[float] = []
        self.entries: list[LegendEntry] = []
        self.entries_above, self.entry_columns, self.entry_size = True, 1, SIZE

    def grid(self, rows: int, columns: int = 1, heights: Sequence[float] = ()) -> list[Axes]:
        """Adds axes and returns them row by row; `heights` are the relative heights of the rows."""
        self.columns, self.heights = columns, list(heights or [1.0] * rows)
        self.axes = [Axes() for _ in range(rows * columns)]
        return self.axes

    def legend(
        self, entries: Sequence[LegendEntry], columns: int, *, above: bool, size: float = SIZE
    ) -> None:
        """Adds a legend above or below the axes. It gets fewer columns than `columns` if these do not fit."""
        self.entries, self.entries_above, self.entry_size = list(entries), above, size
        for number in range(min(columns, len(entries)), 0, -1):
            self.entry_columns = number
            if sum(self._entry_widths()) <= self.width - 2 * EDGE:
                return

    def marks(self) -> Iterator[Mark]:
        """All marks of the figure, in points."""
        top = EDGE
        for line in self.title.split("\n") if self.title else ():
            top += LINE * SIZE
            yield Text(EDGE, top - 0.24 * SIZE, line, SIZE)
        bottom = self.height - EDGE
        if self.entries:
            height = self._entries_height()
            yield from self._legend(top if self.entries_above else bottom - height)
            top, bottom = (top + height, bottom) if self.entries_above else (top, bottom - height)
        left = EDGE
        if self.x_name:
            yield Text(self.width / 2, bottom - 0.24 * SIZE, self.x_name, SIZE, anchor="middle")
            bottom -= LINE * SIZE + EDGE
        if self.y_name:
            yield Text(EDGE + SIZE, (top + bottom) / 2, self.y_name, SIZE, anchor="middle", upward=True)
            left += LINE * SIZE + EDGE
        for axes, box in zip(self.axes, self._boxes((left, self.width - EDGE, top, bottom))):
            yield from marks_on(axes, box)

    def _boxes(self, room: Box) -> Iterator[Box]:
        """The boxes of the axes."""
        left, right, top, bottom = room
        columns, rows = self.columns, len(self.heights)
        around = [room_around(axes) for axes in self.axes]
        before = [max(each[0] for each in around[column::columns]) for column in range(columns)]
        after = [max(each[1] for each in around[column::columns]) for column in range(columns)]
        in_rows = [around[row * columns : (row + 1) * columns] for row in range(rows)]
        above = [max(each[2] for each in of_row) for of_row in in_rows]
        beneath = [max(each[3] for each in of_row) for of_row in in_rows]
        wide = right - left - sum(before) - sum(after) - GAP * (columns - 1)
        tall = bottom - top - sum(above) - sum(beneath) - GAP * (rows - 1)
        widths = [max(wide / columns, 1.0)] * columns
        heights = [max(tall * height / sum(self.heights), 1.0) for height in self.heights]
        lefts = _starts(left, before, widths, after)
        tops = _starts(top, above, heights, beneath)
        for start, height in zip(tops, heights):
            yield from ((x, x + width, start, start + height) for x, width in zip(lefts, widths))

    def _entries_height(self) -> float:
        lines = math.ceil(len(self.entries) / self.entry_columns)
        return self.entry_size * (1.5 * lines + 0.6)

    def _entry_widths(self) -> list[float]:
        """The widths of the legend's columns."""
        size = self.entry_size
        columns = (self.entries[column :: self.entry_columns] for column in range(self.entry_columns))
        return [max(width_of(entry.label, size) for entry in column) + 3.8 * size for column in columns]

    def _legend(self, top: float) -> Iterator[Mark]:
        size, starts = self.entry_size, list(accumulate(self._entry_widths(), initial=EDGE))
        for number, entry in enumerate(self.entries):
            line, column = divmod(number, self.entry_columns)
            x, y = starts[column], top + size * (0.9 + 1.5 * line)
            if entry.width:
                yield Outline([[(x, y), (x + 1.7 * size, y)]], None, entry.colour, entry.width, entry.dash)
            else:
                box = (x, x + 1.7 * size, y - 0.35 * size, y + 0.35 * size)
                yield Outline(corners([box]), fill=entry.colour, closed=True)
            if entry.marker is not None:
                yield spot_at(Spot(0, 0, 2.2, entry.colour, entry.colour, entry.marker), x + 0.85 * size, y)
            yield Text(x + 2.2 * size, y + BASELINE["centre"] * size, entry.label, size)


def _starts(
    first: float, before: Sequence[float], sizes: Sequence[float], after: Sequence[float]
) -> list[float]:
    """The start of each part of a row, when each part needs space before and after it."""
    steps = [one + size + other + GAP for one, size, other in zip(before, sizes, after)]
    return [first + start + room for start, room in zip(accumulate(steps, initial=0.0), before)]
