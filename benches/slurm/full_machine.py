"""Jobs that hold the whole machine, on the same nodes under every policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slurm_sites import Shape
from workload import Job


def fill(jobs: Sequence[Job], shape: Shape) -> Iterator[tuple[list[int], int]]:
    """Nodes and minutes of jobs that fill the whole machine: jobs of the log that can be placed without using
    another job's links, and then jobs inside leaves. Every policy allows them on these nodes.
    """
    free = [list(range(leaf * shape.leaf, (leaf + 1) * shape.leaf)) for leaf in range(shape.leaves)]
    crossed: set[int] = set()
    for job in jobs:
        whole, rest = divmod(job.nodes, shape.leaf)
        if not whole or (whole == 1 and not rest):
            places = [leaf for leaf in range(shape.leaves) if len(free[leaf]) >= job.nodes][:1]
            parts = [(leaf, job.nodes) for leaf in places]
        else:
            parts = _in_pods(whole, rest, free, crossed, shape)
            crossed |= {leaf for leaf, _ in parts}
        if parts:
            nodes = [node for leaf, count in parts for node in _take(free[leaf], count)]
            yield nodes, job.minutes
    for leaf in free:
        if leaf:
            yield _take(leaf, len(leaf)), jobs[0].minutes


def _in_pods(
    whole: int, rest: int, free: list[list[int]], crossed: set[int], shape: Shape
) -> list[tuple[int, int]]:
    for pod in range(shape.pods):
        leaves = [leaf for leaf in range(pod * shape.pod, (pod + 1) * shape.pod) if leaf not in crossed]
        empty = [leaf for leaf in leaves if len(free[leaf]) == shape.leaf][:whole]
        last = [leaf for leaf in leaves if leaf not in empty and len(free[leaf]) >= rest][:1] if rest else []
        if len(empty) == whole and bool(last) == bool(rest):
            return [(leaf, shape.leaf) for leaf in empty] + [(leaf, rest) for leaf in last]
    return []


def _take(free: list[int], count: int) -> list[int]:
    taken = free[:count]
    del free[:count]
    return taken
