"""`sbatch --segment` inside a real slurmctld: policies that keep segments keep those of Slurm's jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import Site, plugin_cluster
from waiting import until

RULES = "Partition=psegments Policy=segments\n"
PARTITIONS = "pstock psegments"
LEAF = 6
TAKEN = ("node[1-5]", "node[7-9]", "node[13-17]", "node[19-21]")
"""One node is free on the first and the third leaf, three on the others."""


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = ("--leaf", LEAF, "--pod", 2, "--partitions", PARTITIONS)
    with plugin_cluster(built, inside, tmp_path_factory.mktemp("slurm"), *options, rules=RULES) as cluster:
        yield Site(cluster, built)


def leaves(site: Site, job: int) -> dict[int, int]:
    """How many nodes a job has on each leaf, counted from 0."""
    return dict(Counter((int(name.removeprefix("node")) - 1) // LEAF for name in site.nodes(job)))


def test_segments_of_a_job_lie_on_one_leaf_each(site: Site) -> None:
    """A job starts where its segments are whole, and waits while nodes are enough but segments are not."""
    site.wait_idle()
    taken = [site.start("-p", "pstock", "-N", nodes_in(nodes), "-w", nodes) for nodes in TAKEN]
    first = site.start("-p", "psegments", "-N4", "--segment=2")
    assert leaves(site, first) == {1: 2, 3: 2}
    second = site.cluster.submit("-p", "psegments", "-N4", "--segment=2", script="sleep 600")
    assert site.waits(second)
    site.cluster.run("scancel", taken[1])
    until(lambda: bool(site.nodes(second)), "the start of the job that waits")
    assert leaves(site, second) == {1: 4}


def test_a_policy_without_segments_leaves_them_to_slurm(site: Site) -> None:
    """Stock Slurm on a tree takes no notice of --segment: the job starts on one node of each leaf."""
    site.wait_idle()
    for nodes in ("node[1-5]", "node[7-11]", "node[13-17]", "node[19-23]"):
        site.start("-p", "pstock", "-N5", "-w", nodes)
    job = site.start("-p", "pstock", "-N4", "--segment=2")
    assert leaves(site, job) == {0: 1, 1: 1, 2: 1, 3: 1}


def nodes_in(hosts: str) -> int:
    first, _, last = hosts.removeprefix("node[").removesuffix("]").partition("-")
    return int(last) - int(first) + 1
