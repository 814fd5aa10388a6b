"""Figures of the plugin inside slurmctld: what is computed from what the plugin counts and from where jobs ran."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import topolane
from topolane import Machine, Workload

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benches"), str(ROOT / "benches" / "slurm"), str(ROOT / "tests" / "slurm")]

import cab
import links_in_tree as tree
from full_machine import fill
from scale_rows import quantile
from slurm_sites import Shape
from workload import jobs_of, workload_of


def test_a_quantile_lies_between_the_bounds_that_hold_it() -> None:
    """Whatever the bounds are: powers of two, or finer."""
    counted = {"under_256_nanoseconds": 10, "under_320_nanoseconds": 0, "under_1280_nanoseconds": 80}
    counted |= {"under_2560_nanoseconds": 10, "calls": 100}
    assert quantile(counted, 0.5) == pytest.approx(320 * 2)
    assert quantile(counted, 0.1) == pytest.approx(256)
    assert quantile(counted, 0.95) == pytest.approx(1280 * math.sqrt(2))
    assert math.isnan(quantile({"under_256_nanoseconds": 0}, 0.5))


@pytest.mark.parametrize("nodes", [36, 72, 324, 1296])
def test_the_jobs_that_fill_the_machine_need_no_link_of_each_other(nodes: int) -> None:
    """They hold each node once, and no two of them cross a switch: every policy lets them run where they are."""
    shape = Shape.of(nodes)
    jobs = jobs_of(workload_of(None, None, nodes, 1000, None))
    places = [where for where, _ in fill(jobs, shape)]
    assert sorted(node for where in places for node in where) == list(range(nodes))
    leaf, pod = shape.leaf, shape.leaf * shape.pod
    groups = {f"leaf{n}": range(n * leaf, (n + 1) * leaf) for n in range(shape.leaves)}
    groups |= {f"pod{n}": range(n * pod, (n + 1) * pod) for n in range(shape.pods)}
    switches = {name: frozenset(f"node{node}" for node in below) for name, below in groups.items()}
    ran = [
        tree.Ran(n, "p", frozenset(f"node{node}" for node in where), 0, 1) for n, where in enumerate(places)
    ]
    assert not tree.meetings(ran, switches)


def test_measures_agree_with_the_simulator() -> None:
    """Hops, waits and the jobs that share links, computed here from nodes and times, are those that Topolane reports."""
    shape = Shape.of(324)
    jobs = jobs_of(workload_of(None, None, 324, 300, 1.2), 100)
    leaf, pod = shape.leaf, shape.leaf * shape.pod
    groups = {f"leaf{n}": range(n * leaf, (n + 1) * leaf) for n in range(shape.leaves)}
    groups |= {f"pod{n}": range(n * pod, (n + 1) * pod) for n in range(shape.pods)}
    groups |= {"core": range(324)}
    switches = {name: frozenset(f"node{node + 1}" for node in below) for name, below in groups.items()}
    ran = cab.simulated(jobs, shape, "slurm-tree", "easy", 0.0)
    found = cab.measures(ran, switches, 324)
    rows = [f"{job.number},{job.submit},{job.run},{60 * job.minutes},{job.nodes}" for job in jobs]
    assert found.sharing and found.hops
    measured = _summary(rows, shape)
    assert found.jobs == measured["jobs"]
    assert found.sharing == measured["jobs_sharing_links"]
    assert found.hops == pytest.approx(measured["mean_aph"])
    assert found.wait == pytest.approx(measured["mean_wait"], abs=1e-6)


def _summary(rows: list[str], shape: Shape) -> dict[str, float]:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "jobs.csv"
        path.write_text("\n".join(["id,submit,run,walltime,nodes", *rows]) + "\n")
        workload = Workload.read(str(path))
    machine = Machine.parse(shape.machine(), "machine.toml")
    summary: dict[str, float] = topolane.simulate(
        workload, machine, policy="slurm-tree", queue="easy"
    ).summary
    return summary
