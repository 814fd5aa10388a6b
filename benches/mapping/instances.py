"""Four mapping instances: 1,024 ranks on 16 nodes per leaf x 8 leaves x 8 pods, with shuffled ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

RANKS = 1_024
CHILDREN = (16, 8, 8)
"""Nodes per leaf, leaves per pod, and pods."""


def stencil(x: int = 16, y: int = 8, z: int = 8) -> Edges:
    """A seven-point stencil on a grid, not periodic, with weight 1 between neighbours."""
    ids = np.arange(x * y * z).reshape(x, y, z)
    low = [np.take(ids, range(ids.shape[axis] - 1), axis).ravel() for axis in range(3)]
    high = [np.take(ids, range(1, ids.shape[axis]), axis).ravel() for axis in range(3)]
    return both(np.concatenate(low), np.concatenate(high), 1)


def rgg2d(seed: int = 3) -> Edges:
    """A random geometric graph: points of the unit square that are closer than 0.55 sqrt(ln n / n)."""
    points = np.random.default_rng(seed).random((RANKS, 2))
    near = 0.55 * np.sqrt(np.log(RANKS) / RANKS)
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    a, b = np.nonzero(np.triu(distance <= near, 1))
    return both(a, b, 1)


def tp_dp_ring(group: int = 8) -> Edges:
    """Tensor-parallel groups with all-to-all traffic of weight 8, and rings through the groups of weight 1."""
    ids = np.arange(RANKS)
    a, b = np.nonzero(np.triu(ids[:, None] // group == ids[None] // group, 1))
    inside = both(a, b, 8)
    ring = both(ids, (ids + group) % RANKS, 1)
    return joined(inside, ring)


def butterfly() -> Edges:
    """Recursive doubling: i and i xor 2^k exchange weight 1."""
    ids = np.arange(RANKS)
    stages = [(ids, ids ^ (1 << k)) for k in range(RANKS.bit_length() - 1)]
    a, b = (np.concatenate(side) for side in zip(*stages))
    return a, b, np.ones(len(a), np.int64)


def both(a: NDArray[np.int64], b: NDArray[np.int64], weight: int) -> Edges:
    """The edges in both directions."""
    return np.concatenate([a, b]), np.concatenate([b, a]), np.full(2 * len(a), weight)


def joined(one: Edges, other: Edges) -> Edges:
    """The edges of both graphs."""
    a, b, weight = (np.concatenate(pair) for pair in zip(one, other))
    return a, b, weight


def shuffled(edges: Edges, seed: int = 0) -> Edges:
    """The edges with their ranks permuted."""
    order = np.random.default_rng(seed).permutation(RANKS)
    new = np.argsort(order)
    return new[edges[0]], new[edges[1]], edges[2]


def mean_hops(edges: Edges, host: NDArray[np.int64]) -> float:
    """Mean links per unit of traffic, including the nodes' links (2, 4 or 6)."""
    a, b = host[edges[0]], host[edges[1]]
    leaf, pod = CHILDREN[0], CHILDREN[0] * CHILDREN[1]
    hops = np.where(a == b, 0, np.where(a // leaf == b // leaf, 2, np.where(a // pod == b // pod, 4, 6)))
    return float((hops * edges[2]).sum() / edges[2].sum())


INSTANCES: dict[str, tuple[Callable[[], Edges], float]] = {
    "stencil": (stencil, 2.930),
    "rgg2d": (rgg2d, 2.372),
    "tp_dp_ring": (tp_dp_ring, 2.039),
    "butterfly": (butterfly, 3.800),
}
"""Each instance with its target in mean hops: the best of Scotch, SharedMap and METIS when the target was
set.
"""
