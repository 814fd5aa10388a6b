"""Positions of the link cells on the picture of a tree.

The links of a group form a block. Each column has the uplinks of one switch, the first port at the bottom;
the links of a leaf's nodes lie side by side. Each column is split into an upward and a downward half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import polars

from .data import MachinePicture
from .tree_layout import TreeLayout, TreeRow, lay_out

HALF = 0.42  # half of the width of a leaf's column, in leaves
WIDEST = 3.0  # largest column width of a switch above the leaves, in leaves
GAP = 6.0  # distance between a strip and the bars next to it, in points
LEAST, MOST = 2.4, 12  # height of a strip with few links, and its limit on small leaves, in nodes

Boxes = numpy.ndarray  # one row per box: left, right, low, high


@dataclass(frozen=True)
class Strip:
    """The links of a level: columns and rows of a group's block, and its position."""

    columns: int
    rows: int
    low: float
    high: float


def strips_of(links: polars.DataFrame, picture: MachinePicture) -> tuple[TreeLayout, list[Strip]]:
    """The layout with space for the links of every level, and the strip of each level; level 0 has the nodes'
    links.
    """
    shapes = [_shape(links, level) for level in range(len(picture.levels))]
    gap = GAP / lay_out(picture).cell_points
    heights = [float(min(max(rows, LEAST), max(picture.leaf, MOST))) for _, rows in shapes[1:]]
    layout = lay_out(picture, [height + 2 * gap for height in heights])
    strips = [Strip(*shapes[0], -1.0, 0.0)]
    for shape, low, height in zip(shapes[1:], layout.y, heights):
        strips.append(Strip(*shape, low + gap, low + gap + height))
    return layout, strips


def _shape(links: polars.DataFrame, level: int) -> tuple[int, int]:
    own = links.filter(polars.col("level") == level)
    if own.is_empty():
        return 1, 1
    switches, ports = own["switch"].max() + 1, own["port"].max() + 1
    return (switches, ports) if level else (switches * ports, 1)


def with_ports(links: polars.DataFrame) -> polars.DataFrame:
    """The cables of a machine without WAN links. `port` is the number of a cable among its switch's uplinks."""
    cables = links.filter(polars.col("level") != "wan").with_columns(polars.col("level").cast(polars.Int64))
    parallel = 1 + polars.col("cable").max().over("level")
    return cables.with_columns(port=polars.col("parent") * parallel + polars.col("cable"))


def cells(
    links: polars.DataFrame,
    level: int,
    strip: Strip,
    layout: TreeLayout,
    row: TreeRow,
    picture: MachinePicture,
) -> dict[int, Boxes]:
    """The cells of a level within a row, by load class. Adjacent cells of one class form one box."""
    own = links.filter(polars.col("level") == level)
    starts = numpy.array([leaf.start for leaf in picture.levels[0]])
    group = own["group"].to_numpy()
    block = group if level else numpy.searchsorted(starts, group, side="right") - 1
    here = numpy.isin(block, row.groups[max(level - 1, 0)])
    own, group, block = own.filter(here), group[here], block[here]
    port, switch = own["port"].to_numpy(), own["switch"].to_numpy()
    if level:
        column, line, base, size = switch, port, strip.low, (strip.high - strip.low) / strip.rows
    else:  # the first node is on top
        column, line, base, size = port, starts[block] - group - 1, 0.0, 1.0
    is_up = (own["direction"] == "up").to_numpy()
    left, right = _sides(layout.spans[max(level - 1, 0)], strip.columns, level, block, column, is_up)
    return _on_end(own["kind"].to_numpy(), left, right, line, base, size)


def _sides(
    spans: Sequence[tuple[float, float]],
    columns: int,
    level: int,
    block: numpy.ndarray,
    column: numpy.ndarray,
    is_up: numpy.ndarray,
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The left and right edge of each cell: one half of its column, with the columns centred over their
    leaves.
    """
    first, last = numpy.array(spans, dtype=float).reshape(-1, 2)[block].reshape(-1, 2).T
    left, width = block_of(first, last, columns, level)
    left = left + column * width
    inset = 0.08 * width if columns > 1 else 0.0 * width
    middle, slit = left + width / 2, 0.01 * width
    return numpy.where(is_up, left + inset, middle + slit), numpy.where(
        is_up, middle - slit, left + width - inset
    )


def block_of(
    first: numpy.ndarray, last: numpy.ndarray, columns: int, level: int
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The left edge of the first column, and the column width, of groups with this first and last leaf."""
    width = (last - first + 2 * HALF) / columns
    width = numpy.minimum(width, WIDEST) if level > 1 else width
    return (first + last - columns * width) / 2, width


def _on_end(
    kind: numpy.ndarray,
    left: numpy.ndarray,
    right: numpy.ndarray,
    line: numpy.ndarray,
    base: float,
    size: float,
) -> dict[int, Boxes]:
    order = numpy.lexsort((line, left))
    kind, left, right, line = kind[order], left[order], right[order], line[order]
    begins = numpy.ones(len(line), dtype=bool)
    begins[1:] = (left[1:] != left[:-1]) | (line[1:] != line[:-1] + 1) | (kind[1:] != kind[:-1])
    first = numpy.flatnonzero(begins)
    end = numpy.append(first[1:], len(line))
    low, high = base + line[first] * size, base + (line[end - 1] + 1) * size
    boxes = numpy.column_stack([left[first], right[first], low, high])
    return {int(each): boxes[kind[first] == each] for each in numpy.unique(kind)}
