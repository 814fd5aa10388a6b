"""Where the axes of a figure go: a grid, with room for what stands around each of them.

Matplotlib's constrained layout asks every part of a figure for its extent, twice, and takes longer than drawing. The figures
here are grids whose ticks, titles and legends have one line of text, so the widths of tick labels are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import LayoutEngine
from matplotlib.textpath import text_to_path

LINE = 1.2  # height of a line of text, in its size
EDGE = 3.0  # points around the figure
GAP = 9.0  # points between neighbours
NEAR = 0.04  # of an axis: a label so near its end stands out


class Grid(LayoutEngine):
    """A layout engine for figures of one grid of axes, all lengths in points."""

    _adjust_compatible = False
    _colorbar_gridspec = True

    def execute(self, fig: Figure) -> None:
        """Place all axes."""
        width, height = (72 * float(inches) for inches in fig.get_size_inches())
        all_axes = [axes for axes in fig.axes if axes.get_subplotspec() is not None]
        if not all_axes:
            return
        specs = [axes.get_subplotspec() for axes in all_axes]
        grid = specs[0].get_gridspec()
        labels = [_labels(axes) for axes in all_axes]
        left, right = [0.0] * grid.ncols, [0.0] * grid.ncols
        top, bottom = [0.0] * grid.nrows, [0.0] * grid.nrows
        for axes, spec, (x, y) in zip(all_axes, specs, labels):
            row, column = spec.rowspan.start, spec.colspan.start
            if not axes.axison:
                continue
            before, after = _beyond(axes.xaxis, x)
            left[column] = max(left[column], before, _beside(axes, y))
            right[column] = max(right[column], after)
            top[row] = max(top[row], _above(axes))
            bottom[row] = max(bottom[row], _beneath(axes, x))
        above, beneath, aside = _around(fig)
        wide = width - aside - 2 * EDGE - sum(left) - sum(right) - GAP * (grid.ncols - 1)
        inner = max(wide / grid.ncols, 1.0)
        tall = height - above - beneath - 2 * EDGE - sum(top) - sum(bottom) - GAP * (grid.nrows - 1)
        ratios = grid.get_height_ratios() or [1] * grid.nrows
        heights = [max(tall, 1.0) * ratio / sum(ratios) for ratio in ratios]
        columns = _starts(aside + EDGE, left, [inner] * grid.ncols, right)
        rows = _starts(above + EDGE, top, heights, bottom)
        for axes, spec in zip(all_axes, specs):
            row, column = spec.rowspan.start, spec.colspan.start
            low = height - rows[row] - heights[row]
            axes.set_position((columns[column] / width, low / height, inner / width, heights[row] / height))


def _starts(
    first: float, before: Sequence[float], sizes: Sequence[float], after: Sequence[float]
) -> list[float]:
    """Where the parts of a row begin that need room before and after them."""
    steps = [one + size + other + GAP for one, size, other in zip(before, sizes, after)]
    return [first + start + room for start, room in zip(accumulate(steps, initial=0.0), before)]


Label = tuple[float, str]
"""A tick label, and how far along its axis it is, 0 to 1."""


def _labels(axes: Axes) -> tuple[list[Label], list[Label]]:
    """The tick labels that are shown at the foot and on the left."""
    return _shown(axes.xaxis, "labelbottom"), _shown(axes.yaxis, "labelleft")


def _shown(axis: Axis, side: str) -> list[Label]:
    if not axis.get_visible() or not axis.get_tick_params().get(side, True):
        return []
    places = list(axis.get_majorticklocs())
    texts = axis.get_major_formatter().format_ticks(places)
    first, last, *scaled = axis.get_transform().transform([*axis.get_view_interval(), *places])
    along = [(place - first) / (last - first) for place in scaled]
    return [(part, text) for part, text in zip(along, texts) if -1e-9 <= part <= 1 + 1e-9]


def _beyond(axis: Axis, labels: Sequence[Label]) -> tuple[float, float]:
    """How far the labels of ticks stand out at the two ends of a horizontal axis."""
    ends = ([label for label in labels if part(label[0]) < NEAR] for part in (lambda x: x, lambda x: 1 - x))
    before, after = (_width(near, axis) / 2 for near in ends)
    return before, after


def _width(labels: Iterable[Label], axis: Axis) -> float:
    """The width of the widest label of ticks."""
    font = FontProperties(family=rcParams["font.family"], size=_label_size(axis))
    widths = (text_to_path.get_text_width_height_descent(text, font, False)[0] for _, text in labels)
    return max(widths, default=0.0)


def _label_size(axis: Axis) -> float:
    return float(axis.get_tick_params().get("labelsize", rcParams[f"{axis.axis_name}tick.labelsize"]))


def _beside(axes: Axes, labels: Sequence[Label]) -> float:
    """Room for the tick labels and the name of the vertical axis."""
    room = _width(labels, axes.yaxis) + _ticks(axes.yaxis) if labels else 0.0
    return room + _name(axes.yaxis)


def _beneath(axes: Axes, labels: Sequence[Label]) -> float:
    """Room for the tick labels and the name of the horizontal axis."""
    room = LINE * _label_size(axes.xaxis) + _ticks(axes.xaxis) if labels else 0.0
    return room + _name(axes.xaxis)


def _ticks(axis: Axis) -> float:
    """From the axis to the labels of its ticks."""
    length = axis.get_tick_params().get("length", rcParams[f"{axis.axis_name}tick.major.size"])
    return float(length) + float(rcParams[f"{axis.axis_name}tick.major.pad"])


def _name(axis: Axis) -> float:
    return LINE * axis.label.get_fontsize() + axis.labelpad if axis.label.get_text() else 0.0


def _above(axes: Axes) -> float:
    """Room for the title."""
    if not axes.get_title(loc="left"):
        return rcParams["font.size"] / 2
    return LINE * rcParams["axes.titlesize"] + 72 * axes.titleOffsetTrans.get_matrix()[1, 2] / axes.figure.dpi


def _around(fig: Figure) -> tuple[float, float, float]:
    """Room above, beneath and before the grid, for legends and for the names of all axes; puts these names at the edge."""
    above = beneath = before = 0.0
    width, height = fig.get_size_inches()
    for text in fig.texts:
        line = LINE * text.get_fontsize() + EDGE
        if text.get_rotation() == 90.0:
            before += line
            text.set_x(EDGE / 72 / width)
        else:
            beneath += line
            text.set_y(EDGE / 72 / height)
    for legend in fig.legends:
        entries, columns = len(legend.get_texts()), legend._ncols
        lines = -(-entries // columns)
        size = legend.prop.get_size_in_points()
        tall = size * (
            lines * LINE + (lines - 1) * rcParams["legend.labelspacing"] + 2 * rcParams["legend.borderpad"]
        )
        if legend._outside_loc == "upper":
            above += tall
        else:
            beneath += tall
    return above, beneath, before
