"""Bins of job size, in nodes: (low, high), both inside the bin; `high` is None for the last one.

The bins follow the classes of SC'18 (Pollard, Jain, Herbein, Bhatele: Evaluation of an
interference-free node allocation policy on fat-tree clusters): a leaf is a boundary, since a job
that fits one leaf uses no link.
"""

from __future__ import annotations

from collections.abc import Sequence

Bin = tuple[int, "int | None"]

BOUNDARIES = (1, 4, 64, 128, 256)
LARGE = (512, 1024, 2048, 4096)


def size_bins(leaf: int, largest: int) -> list[Bin]:
    """Bins up to `largest` nodes on leaves of `leaf` nodes, such as 1, 2-4, 5-18, 19-64, ..., 257 or more."""
    boundaries = BOUNDARIES + tuple(edge for edge in LARGE if edge * 2 <= largest)
    bins: list[Bin] = []
    low = 1
    for high in sorted({*boundaries, leaf}):
        bins.append((low, high))
        low = high + 1
        if high >= largest:
            return bins
    return [*bins, (low, None)]


def bin_label(bounds: Bin) -> str:
    """The label of a bin: `19–64`, `1`, `257+`."""
    low, high = bounds
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def nodes_label(bounds: Bin) -> str:
    """The label of a bin with its unit: `19–64 nodes`, `1 node`."""
    return f"{bin_label(bounds)} node{'' if bounds == (1, 1) else 's'}"


def merge_bins(several: Sequence[Sequence[Bin]]) -> list[Bin]:
    """All bins that occur in any run, sorted by size, without duplicates."""
    return sorted(
        {bounds for bins in several for bounds in bins},
        key=lambda bounds: (bounds[0], float("inf") if bounds[1] is None else bounds[1]),
    )
