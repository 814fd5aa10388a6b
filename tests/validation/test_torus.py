"""Hops and links of a torus are those of SimGrid's torus, which routes in the order of the dimensions too.

SimGrid counts the first dimension as the fastest. In a ring of even size both ways may be equally short; SimGrid takes one, and
a job here may use both. So the sets of links are equal if all sizes are odd, and SimGrid's are the smaller ones otherwise.
"""

import itertools

import numpy as np
import pytest
from components import run
from topolane._engine import LinkUse
from topolane.sources import machine


@pytest.mark.parametrize("sizes", [(5, 3, 7), (3, 3, 3, 3), (9, 5), (4, 6, 3)], ids=str)
def test_hops_and_links_are_simgrids(compiled, sizes):
    """40 random jobs of 2 to 12 nodes on each torus: the hops of each pair, and the number of links of each job."""
    fabric = machine(f"torus(size={'x'.join(map(str, sizes))})")
    strides = np.cumprod([1, *sizes[:-1]])
    theirs = [int(np.dot(place, strides)) for place in itertools.product(*map(range, sizes))]
    rng = np.random.default_rng(len(sizes))
    jobs = [sorted(rng.choice(fabric.nodes, size=rng.integers(2, 13), replace=False)) for _ in range(40)]
    words = [len(sizes), *sizes, len(jobs)]
    for job in jobs:
        words += [len(job), *(theirs[node] for node in job)]
    lines = run([compiled("simgrid_torus").simgrid_torus()], " ".join(map(str, words)), 60).splitlines()
    for job, line in zip(jobs, lines, strict=True):
        links, *hops = map(int, line.split())
        nodes = [int(node) for node in job]
        assert hops == [fabric.hops(a, b) for a in nodes for b in nodes]
        own = LinkUse(fabric, [(1, nodes, []), (2, nodes, [])]).shared
        assert links == own if all(size % 2 for size in sizes) else links <= own
