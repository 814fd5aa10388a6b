"""Axes: two scales, the data drawn between them, and the lines, ticks and names around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .lettering import width_of
from .marks import Box, Clip, Dot, Mark, Outline, Point, Text, corners
from .scale import AxisScale
from .style import FAINT, INK, MUTED

LINE = 1.2  # line height, as a multiple of the font size
NEAR = 0.04  # as a fraction of the axis: a label this close to an end extends beyond it
SIZE, TICK_SIZE, TITLE_SIZE = 9.0, 8.5, 9.5
TICK, PAD = 3.5, 3.5  # length of a tick, and distance from tick to label
ABOVE_AXES = 6.0  # distance from the axes to their title
BASELINE = {"baseline": 0.0, "centre": 0.36, "top": 0.8, "bottom": -0.24}
"""Distance from a text's position down to its baseline, as a multiple of the font size."""
DASHED = (6.5, 2.0)
MARKERS: tuple[Sequence[Point], ...] = (
    (),  # a circle
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, 1.2), (1.2, -1), (-1.2, -1)),
    ((-0.5, -1.3), (0.5, -1.3), (0.5, 1.3), (-0.5, 1.3)),
    ((-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)),
    ((-1.2, -1.2), (0, -0.4), (1.2, -1.2), (0, 1.3)),
)
"""Shapes of radius 1 that distinguish the points of different lines."""


@dataclass(frozen=True)
class Label:
    """A text on axes, shifted by `offset` points to the right and downward.

    Coordinates named in `shares` are fractions of the axes, from 0 to 1, instead of values.
    """

    x: float
    y: float
    text: str
    size: float = SIZE
    colour: str = INK
    anchor: str = "start"
    rise: str = "centre"
    bold: bool = False
    offset: Point = (0.0, 0.0)
    shares: str = ""


@dataclass(frozen=True)
class Spot:
    """A mark at a point of the axes; its shape is one of `MARKERS`."""

    x: float
    y: float
    radius: float
    fill: str
    stroke: str
    marker: int = 0


@dataclass(frozen=True)
class Guide:
    """A line across the whole axes: vertical at an x, or horizontal at a y."""

    value: float
    upright: bool
    colour: str = MUTED
    width: float = 1.0
    dash: Sequence[float] = ()


@dataclass
class Axes:
    """Two scales and the items drawn between them, given in values of the scales."""

    x: AxisScale = field(default_factory=AxisScale)
    y: AxisScale = field(default_factory=AxisScale)
    title: str = ""
    x_name: str = ""
    y_name: str = ""
    shown: bool = True
    """Whether lines, ticks and names are drawn; if not, only the items are."""
    has_x_labels: bool = True
    has_y_labels: bool = True
    has_rows: bool = False
    """Whether y counts rows, which need no ticks and no lines between them."""
    above: float = ABOVE_AXES
    """Distance from the axes to their title, in points."""
    x_size: float = TICK_SIZE
    items: list[Outline | Spot | Guide] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def bars(
        self,
        ends: Sequence[float],
        colours: Sequence[str],
        height: float = 0.66,
        starts: Sequence[float] | None = None,
    ) -> None:
        """Adds a horizontal bar on each row, from 0 or from its start."""
        for row, (start, end, colour) in enumerate(zip(starts or [0.0] * len(ends), ends, colours)):
            box = (min(start, end), max(start, end), row - height / 2, row + height / 2)
            self.boxes([box], colour)

    def boxes(self, boxes: Sequence[Box], colour: str, gid: str | None = None, opacity: float = 1.0) -> None:
        """Adds rectangles of one colour."""
        self.items.append(Outline(corners(boxes), fill=colour, opacity=opacity, closed=True, gid=gid))

    def strokes(
        self,
        lines: Sequence[Sequence[Point]],
        colour: str,
        width: float,
        gid: str | None = None,
        opacity: float = 1.0,
        round_ends: bool = False,
    ) -> None:
        """Adds many lines of one look as one shape, because a large machine has thousands of lines."""
        if lines:
            self.items.append(
                Outline(lines, None, colour, width, opacity=opacity, round_ends=round_ends, gid=gid)
            )

    def line(
        self,
        points: Sequence[Point],
        colour: str,
        width: float = 1.3,
        dash: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Adds a line through points, without the parts outside the axes."""
        if points:
            self.items.append(Outline([points], None, colour, width, dash, opacity, clipped=True))

    def text(self, x: float, y: float, text: str, **looks: float | str | bool | Point) -> None:
        """Adds a text; `looks` are the other fields of `Label`."""
        self.labels.append(Label(x, y, text, **looks))


def room_around(axes: Axes) -> tuple[float, float, float, float]:
    """The space that ticks, names and title need left, right, above and below the axes, in points."""
    if not axes.shown:
        return 0.0, 0.0, 0.0, 0.0
    across = (
        [(share, width_of(text, axes.x_size)) for share, text in axes.x.shown()] if axes.has_x_labels else []
    )
    before = max((width / 2 for share, width in across if share < NEAR), default=0.0)
    after = max((width / 2 for share, width in across if share > 1 - NEAR), default=0.0)
    above = LINE * TITLE_SIZE + axes.above if axes.title else SIZE / 2
    beneath = LINE * axes.x_size + TICK + PAD if across else 0.0
    beneath += LINE * SIZE + PAD if axes.x_name else 0.0
    names = _labels_width(axes) + (LINE * SIZE + PAD if axes.y_name else 0.0)
    return max(before, names), after, above, beneath


def _labels_width(axes: Axes) -> float:
    """The width of the labels along y, including ticks."""
    if not axes.has_y_labels or not axes.y.ticks:
        return 0.0
    widest = max((width_of(text, TICK_SIZE) for _, text in axes.y.shown()), default=0.0)
    return widest + PAD + (0.0 if axes.has_rows else TICK)


def marks_on(axes: Axes, box: Box) -> Iterator[Mark]:
    """The marks of the axes within their box."""
    left, right, top, bottom = box

    def across(value: float) -> float:
        return left + (right - left) * axes.x.share(value)

    def down(value: float) -> float:
        return bottom - (bottom - top) * axes.y.share(value)

    if axes.shown:
        yield from _frame(axes, box)
    clipped = []
    for item in axes.items:
        if isinstance(item, Spot):
            yield spot_at(item, across(item.x), down(item.y))
        elif isinstance(item, Guide):
            at = across(item.value) if item.upright else down(item.value)
            ends = [(at, top), (at, bottom)] if item.upright else [(left, at), (right, at)]
            yield Outline([ends], None, item.colour, item.width, item.dash)
        else:
            lines = [[(across(x), down(y)) for x, y in line] for line in item.lines]
            placed = dataclasses.replace(item, lines=lines)
            if item.clipped:
                clipped.append(placed)
            else:
                yield placed
    if clipped:
        yield Clip(box, clipped)
    for label in axes.labels:
        x = left + (right - left) * label.x if "x" in label.shares else across(label.x)
        y = bottom - (bottom - top) * label.y if "y" in label.shares else down(label.y)
        yield from _lines_of(label, x + label.offset[0], y + label.offset[1])


def _lines_of(label: Label, x: float, y: float) -> Iterator[Text]:
    lines = label.text.split("\n")
    first = y + BASELINE[label.rise] * label.size
    if label.rise == "centre":
        first -= (len(lines) - 1) / 2 * LINE * label.size
    for number, line in enumerate(lines):
        yield Text(
            x, first + number * LINE * label.size, line, label.size, label.colour, label.anchor, label.bold
        )


def spot_at(spot: Spot, x: float, y: float) -> Dot | Outline:
    if not spot.marker:
        return Dot(x, y, spot.radius, spot.fill, spot.stroke)
    outline = [(x + spot.radius * dx, y + spot.radius * dy) for dx, dy in MARKERS[spot.marker]]
    return Outline([outline], spot.fill, closed=True)


def _frame(axes: Axes, box: Box) -> Iterator[Mark]:
    """The lines, ticks, labels and names of the axes."""
    left, right, top, bottom = box
    across = [(left + (right - left) * share, text) for share, text in axes.x.shown()]
    upward = [(bottom - (bottom - top) * share, text) for share, text in axes.y.shown()]
    between = [[(x, top), (x, bottom)] for x, _ in across]
    frame = [[(left, top), (left, bottom), (right, bottom)]]
    if axes.has_x_labels:
        frame += [[(x, bottom), (x, bottom + TICK)] for x, _ in across]
    if not axes.has_rows:
        between += [[(left, y), (right, y)] for y, _ in upward]
        frame += [[(left - TICK, y), (left, y)] for y, _ in upward] if axes.has_y_labels else []
    if between:
        yield Outline(between, None, FAINT, 0.6)
    yield Outline(frame, None, MUTED, 0.7)
    foot = bottom
    if axes.has_x_labels and across:
        foot += TICK + PAD + LINE * axes.x_size
        baseline = bottom + TICK + PAD + BASELINE["top"] * axes.x_size
        yield from (Text(x, baseline, text, axes.x_size, anchor="middle") for x, text in across)
    if axes.has_y_labels:
        x = left - PAD - (0.0 if axes.has_rows else TICK)
        lower = BASELINE["centre"] * TICK_SIZE
        yield from (Text(x, y + lower, text, TICK_SIZE, anchor="end") for y, text in upward)
    if axes.x_name:
        baseline = foot + PAD + BASELINE["top"] * SIZE
        yield Text((left + right) / 2, baseline, axes.x_name, SIZE, anchor="middle")
    if axes.y_name:
        x = left - _labels_width(axes) - PAD
        yield Text(x, (top + bottom) / 2, axes.y_name, SIZE, anchor="middle", upward=True)
    if axes.title:
        yield Text(left, top - axes.above, axes.title, TITLE_SIZE, bold=True)
