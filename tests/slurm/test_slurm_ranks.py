"""The order of ranks on a job's nodes (26.05 and later): steps follow the machine file."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import links_in_tree as tree
import pytest
from live_cluster import RELEASE, Inside
from plugin_site import Site, plugin_cluster

if tuple(map(int, RELEASE.split("."))) < (26, 5):
    pytest.skip(f"Slurm {RELEASE} asks no topology plugin for ranks", allow_module_level=True)

HERE = Path(__file__).parent
LEAVES = [",".join(str(leaf + 4 * row) for row in range(6)) for leaf in range(1, 5)]
"""Four leaves of six nodes: node1, node5, node9 and so on are on the first. So names do not follow the network."""
TOPOLOGY = f"""\
SwitchName=leaf1 Nodes=node[{LEAVES[0]}]
SwitchName=leaf2 Nodes=node[{LEAVES[1]}]
SwitchName=leaf3 Nodes=node[{LEAVES[2]}]
SwitchName=leaf4 Nodes=node[{LEAVES[3]}]
SwitchName=pod1 Switches=leaf1,leaf3
SwitchName=pod2 Switches=leaf2,leaf4
SwitchName=core Switches=pod1,pod2
"""
MACHINE = f"""\
name = "node"
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
cables = [1, 1, 2]
nodes = "node[{LEAVES[0]},{LEAVES[2]},{LEAVES[1]},{LEAVES[3]}]"
"""
BYTES = 1 << 16
"""What a rank of ring.c sends."""
RULES = "Partition=pbatch,pshared Policy=isolated\n"
PRINT = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"')
TO_HOST = ("nsenter", "--target", "1", "--mount", "--root", "--wd=/tmp")
"""Tasks run where the other Slurm is; MPI is outside of it."""


@pytest.fixture(scope="module")
def site(built: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = ("--partitions", "pbatch pshared:ALL:NO pstock")
    given = {"machine": MACHINE, "rules": RULES, "conf_files": {"topology.conf": TOPOLOGY}}
    with plugin_cluster(built, inside, tmp_path_factory.mktemp("slurm"), *options, **given) as cluster:
        yield Site(cluster, built)


def by_rank(printed: str) -> list[str]:
    """The node of each rank, from lines that begin with a rank and its node."""
    found = {int(rank): node for rank, node in re.findall(r"^(\d+) (node\d+)\b", printed, re.MULTILINE)}
    return [found[rank] for rank in range(len(found))]


def hops(site: Site, one: str, other: str) -> int:
    """Links between switches on the way, computed from topology.conf."""
    return len(tree.crossed([one, other], site.tree) - {one, other})


def between_neighbours(site: Site, nodes: Sequence[str]) -> int:
    return sum(hops(site, one, other) for one, other in itertools.pairwise(nodes))


def test_ranks_enter_each_leaf_and_each_pod_once(site: Site) -> None:
    """So neighbours are as near as they can be: three changes of leaf, of which one changes the pod. Stock Slurm takes the
    leaves in the order of topology.conf, and changes the pod each time. Each node has its ranks in a row."""
    site.wait_idle()
    ours = by_rank(site.cluster.run("srun", "-p", "pbatch", "-N24", "-n48", *PRINT))
    assert len(ours) == 48 and ours[::2] == ours[1::2] and len(set(ours)) == 24
    assert between_neighbours(site, ours) == 2 + 4 + 2
    stock = by_rank(site.cluster.run("srun", "-p", "pstock", "-N24", "-n48", *PRINT))
    assert between_neighbours(site, stock) == 3 * 4


def test_a_step_on_some_nodes_of_a_job_lies_on_one_leaf(site: Site) -> None:
    """It gets the first nodes in the order of ranks."""
    site.wait_idle()
    step = f"srun -N6 -n6 {PRINT[0]} {PRINT[1]} '{PRINT[2]}'"
    printed = site.cluster.run("salloc", "-p", "pbatch", "-N14", "sh", "-c", step)
    nodes = by_rank(printed)
    assert len(set(nodes)) == 6 and between_neighbours(site, nodes) == 0


def test_a_job_on_parts_of_nodes(site: Site) -> None:
    """Its ranks follow the same order."""
    site.wait_idle()
    nodes = by_rank(site.cluster.run("srun", "-p", "pshared", "-N16", "-n32", *PRINT))
    visited = [node for node, before in zip(nodes, ["", *nodes]) if node != before]
    groups = [frozenset(tree.crossed([node, ""], site.tree) - {node, ""}) for node in visited]
    changes = [one for one, other in zip(groups, [frozenset(), *groups]) if one != other]
    assert len(visited) == 16 and len(changes) == len(set(changes))


def test_ranks_of_an_mpi_program(site: Site, tmp_path: Path) -> None:
    """The ranks of a real MPI program, started by srun: in a ring, fewer bytes cross links between switches than under stock
    Slurm, and far fewer than in the order of names."""
    if shutil.which("mpicc.mpich") is None:
        pytest.skip("mpicc.mpich is missing")
    site.wait_idle()
    program = site.cluster.directory / "ring"
    subprocess.run(["mpicc.mpich", "-O1", HERE / "ring.c", "-o", program], check=True)
    found = {}
    for partition in ("pstock", "pbatch"):
        printed = site.cluster.run("srun", "--mpi=pmi2", "-p", partition, "-N24", "-n24", *TO_HOST, program)
        sent = [re.split(r"\W+", line) for line in printed.splitlines() if " sent " in line]
        where = by_rank(printed)
        assert len(where) == len(sent) == 24, printed
        found[partition] = sum(
            int(size) * hops(site, where[int(rank)], where[int(to)]) for rank, _, _, size, _, _, to in sent
        )
        print(partition, " ".join(where), "hop-bytes", found[partition])
    by_name = [f"node{number}" for number in range(1, 25)]
    found["by name"] = BYTES * sum(hops(site, *pair) for pair in zip(by_name, [*by_name[1:], by_name[0]]))
    assert found == {"pbatch": 12 * BYTES, "pstock": 16 * BYTES, "by name": 96 * BYTES}
