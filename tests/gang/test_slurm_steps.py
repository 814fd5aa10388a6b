"""Steps of a real slurmd as jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, running, script, until
from topolane._engine import InputError
from topolane.gang.slurm_steps import step

SPIN = "while :; do :; done"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node of two cores that two jobs may have at once."""
    checked = script("check")
    if checked.returncode:
        pytest.skip(checked.stderr.strip().removeprefix("cluster.sh: "))
    options = ("--cpus", 2, "--select", "cons_tres", "--partitions", "pbatch:ALL:FORCE:2")
    with running(1, tmp_path_factory.mktemp("gang"), *options) as up:
        yield up


@pytest.fixture(autouse=True)
def told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that Slurm is."""
    monkeypatch.setenv("SLURM_CONF", cluster.facts["SLURM_CONF"])


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[int]:
    """A script that runs a step of two tasks, each with a child that computes."""
    number = cluster.submit("-n2", script=f"srun -n2 sh -c '({SPIN}) & wait'")
    until(lambda: len(_listed(cluster, number, "0")) == 4, "both tasks and their children run")
    yield number
    cluster.run("scancel", number)
    until(lambda: cluster.run("squeue", "-h") == "", "the job ends")


def _listed(cluster: Cluster, job: int, wanted: str) -> set[int]:
    """What descends from the slurmstepd of a step, from /proc alone."""
    found: set[int] = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().rstrip(b"\0") == f"slurmstepd: [{job}.{wanted}]".encode():
                found |= _below(int(file.parent.name))
        except OSError:
            continue  # it has ended
    return found


def _below(process: int) -> set[int]:
    found: set[int] = set()
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            found |= {child} | _below(child)
    return found


def test_a_step_is_its_tasks_and_what_they_started(cluster: Cluster, job: int) -> None:
    """Rule: all processes below the step's slurmstepd, and as many threads as its tasks have cores; a job is all its
    steps, and its script, which waits for them, counts for none."""
    first = step(f"{job}.0")
    assert set(first.processes) == _listed(cluster, job, "0")
    assert first.threads == 2
    script_of = step(f"{job}.batch")
    assert set(script_of.processes) == _listed(cluster, job, "batch")
    whole = step(str(job))
    assert set(whole.processes) == set(first.processes) | set(script_of.processes)
    assert whole.threads == 2


def test_a_script_that_runs_no_steps_has_the_cores_of_its_job(cluster: Cluster) -> None:
    """Rule: what computes in a script itself has all cores of the job."""
    number = cluster.submit("-n1", "-c2", script="sleep 600")
    until(lambda: len(_listed(cluster, number, "batch")) == 2, "the script runs")
    assert step(str(number)).threads == step(f"{number}.batch").threads == 2
    cluster.run("scancel", number)


def test_what_is_no_step_here_is_refused_in_a_sentence(cluster: Cluster, job: int) -> None:
    """Rule: one sentence that says what was asked for and why there is nothing to adopt."""
    for wanted in (f"{job}.7", "99999", "99999.0"):
        with pytest.raises(InputError, match=f"Slurm step {wanted} has no process on this node"):
            step(wanted)
    for wanted in ("", "x", "1.x", "1.2.3", "0", "-1"):
        with pytest.raises(InputError, match="JOB or JOB.STEP is wanted"):
            step(wanted)
    os.environ["PATH"], path = "/nonexistent", os.environ["PATH"]
    try:
        with pytest.raises(InputError, match="scontrol listpids 1 cannot be run: No such file"):
            step("1")
    finally:
        os.environ["PATH"] = path
