"""Computes the traffic across the middle of a program: between halves of its ranks, as in the paper, or
across a balanced minimum cut.

The paper is "MPI on dynamically scheduled virtual clusters over several sites" (2007); the partitioner is the engine's
(`crates/mapping/src/bisection.rs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from topolane._engine import Traffic, parts
from topolane.mpi.counts import Matrix

_WORTH = 0.8
"""A division that moves more guests must cut less than this share of a division that moves few."""

Parts = NDArray[np.int64]


@dataclass(frozen=True)
class Bisection:
    """The traffic across a division of a program's ranks; per second if the matrix contains rates."""

    turns: float
    """The turns of the rank that waits most often for a message from another part."""
    bytes: float
    """Bytes in the busier direction."""
    messages: float
    """Messages in both directions."""
    pair_bursts: float
    """Bytes of the pair of ranks across the division with the most bytes in one direction."""
    pair_bytes: float


def crossing(matrix: Matrix, part: Parts) -> Bisection:
    """The traffic that crosses a division, given by the part of every rank."""
    across = part[matrix.sender] != part[matrix.receiver]
    if not across.any():
        return Bisection(0.0, 0.0, 0.0, 0.0, 0.0)
    sender, receiver, counts = matrix.sender[across], matrix.receiver[across], matrix.counts[across]
    turns = np.bincount(sender, counts[:, 2], matrix.ranks).max()
    parts = int(part.max()) + 1
    way = np.bincount(part[sender] * parts + part[receiver], counts[:, 1], parts * parts).max()
    busiest = counts[counts[:, 1].argmax()]
    # Messages that follow each other without an answer are one burst.
    bursts = min(busiest[0], busiest[2]) or busiest[0]
    return Bisection(float(turns), float(way), float(counts[:, 0].sum()), float(bursts), float(busiest[1]))


def halves(ranks: int) -> Parts:
    """The lower and the upper half of the ranks."""
    return (np.arange(ranks) >= (ranks + 1) // 2).astype(np.int64)


def least_halves(matrix: Matrix) -> Parts:
    """Two halves of the ranks with the fewest bytes between them that the engine finds."""
    sizes = [(matrix.ranks + 1) // 2, matrix.ranks // 2]
    return _parted(matrix.ranks, matrix.sender, matrix.receiver, matrix.bytes, sizes)


def contracted(
    matrix: Matrix, group: Parts, groups: int, latency: float, bandwidth: float
) -> NDArray[np.float64]:
    """The cost in seconds of a WAN between groups of ranks: turns at its latency, bytes at its rate.

    The array is symmetric. Ranks of a group below 0 are skipped.
    """
    kept = (group[matrix.sender] >= 0) & (group[matrix.receiver] >= 0)
    cost = matrix.turns * latency + matrix.bytes / bandwidth
    pairs = group[matrix.sender[kept]] * groups + group[matrix.receiver[kept]]
    one_way = np.asarray(np.bincount(pairs, cost[kept], groups * groups), np.float64)
    weights = one_way.reshape(groups, groups) + one_way.reshape(groups, groups).T
    np.fill_diagonal(weights, 0.0)
    return weights


def cut_weight(weights: NDArray[np.float64], part: Parts) -> float:
    """The weight across a division of the groups."""
    return float(weights[part[:, None] != part].sum() / 2)


def divide(weights: NDArray[np.float64], sizes: Sequence[int], now: Parts | None = None) -> Parts:
    """A part for every group, with parts of the given sizes, little weight across, and few groups that leave
    their part in `now`.

    `now` may contain parts below 0, for groups that are not yet placed.
    """
    groups = len(weights)
    start = np.full(groups, -1, np.int64) if now is None else now
    used = [part for part, size in enumerate(sizes) if size]
    if len(used) < 2:
        return _fill(weights, sizes, start)
    sender, receiver = np.nonzero(weights)
    found = _parted(groups, sender, receiver, weights[sender, receiver], [sizes[part] for part in used])
    fresh = _matched(np.array(used)[found], sizes, start)
    if (start < 0).all():
        return fresh
    few = _fill(weights, sizes, start)
    return fresh if cut_weight(weights, fresh) < _WORTH * cut_weight(weights, few) else few


def _parted(
    count: int,
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    weight: NDArray[np.float64],
    sizes: Sequence[int],
) -> Parts:
    traffic = Traffic.of(count, sender.astype(np.uint32), receiver.astype(np.uint32), weight)
    return parts(traffic, sizes, seed=1).astype(np.int64)


def _fill(weights: NDArray[np.float64], sizes: Sequence[int], start: Parts) -> Parts:
    """Brings every part to its size, with the moves that cost least."""
    part = start.copy()
    inside = np.stack([weights[:, part == one].sum(1) for one in range(len(sizes))], 1)

    def move_group(group_index: int, where: int) -> None:
        if part[group_index] >= 0:
            inside[:, part[group_index]] -= weights[:, group_index]
        part[group_index] = where
        if where >= 0:
            inside[:, where] += weights[:, group_index]

    for one, size in enumerate(sizes):
        while (members := np.flatnonzero(part == one)).size > size:
            others = np.where(np.arange(len(sizes)) == one, -np.inf, inside[members]).max(1, initial=0.0)
            move_group(int(members[(inside[members, one] - others).argmin()]), -1)
    while (free := np.flatnonzero(part < 0)).size:
        open_ = np.array([one for one, size in enumerate(sizes) if (part == one).sum() < size])
        gain = inside[np.ix_(free, open_)]
        group_index, where = np.unravel_index(int(gain.argmax()), gain.shape)
        move_group(int(free[group_index]), int(open_[where]))
    return part


def _matched(part: Parts, sizes: Sequence[int], now: Parts) -> Parts:
    """The same division, with parts of equal size renumbered so that more groups stay where they are."""
    matched = part.copy()
    for size in {*sizes} - {0}:
        names = [one for one in range(len(sizes)) if sizes[one] == size]
        pairs = sorted(
            ((int(((part == one) & (now == name)).sum()), one, name) for one in names for name in names),
            reverse=True,
        )
        given: dict[int, int] = {}
        for _, one, name in pairs:
            if one not in given and name not in given.values():
                given[one] = name
                matched[part == one] = name
    return matched
