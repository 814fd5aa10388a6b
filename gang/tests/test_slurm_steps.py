"""Steps of a real slurmd as jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from adopted_pair import WEIGHT, goes_on, pair, place, seconds, stand_still
from live_cluster import Cluster, running, script
from quiet_cores import QuietCores
from topolane._engine import InputError
from topolane_gang.agent import Agent, AgentJob
from topolane_gang.slurm_steps import step
from waiting import until

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
def launched(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
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


def _with_all_below(processes: Iterable[int]) -> set[int]:
    return {one for process in processes for one in (process, *_below(process))}


def test_a_step_is_its_tasks_and_what_they_started(cluster: Cluster, job: int) -> None:
    """Rule: all processes below the step's slurmstepd, and as many threads as its tasks have cores; a job is all its
    steps, and its script, which waits for them, counts for none."""
    first = step(f"{job}.0")
    assert _with_all_below(first.processes) == _listed(cluster, job, "0")
    assert first.threads == 2
    script_of = step(f"{job}.batch")
    assert _with_all_below(script_of.processes) == _listed(cluster, job, "batch")
    whole = step(str(job))
    assert set(whole.processes) == set(first.processes) | set(script_of.processes)
    assert whole.threads == 2


def test_a_script_that_runs_no_steps_has_the_cores_of_its_job(cluster: Cluster) -> None:
    """Rule: what computes in a script itself has all cores of the job."""
    number = cluster.submit("-n1", "-c2", script="sleep 600")
    until(lambda: len(_listed(cluster, number, "batch")) == 2, "the script runs")
    assert step(str(number)).threads == step(f"{number}.batch").threads == 2
    cluster.run("scancel", number)


def test_a_step_has_its_share_of_the_cores_and_is_let_go_running(cluster: Cluster, job: int) -> None:
    """Rule: a step of weight 3 gets three quarters of the CPU time against a job of weight 1; what Slurm suspends stays
    stopped in its slices until Slurm resumes it; when the agent ends, the step runs on and is Slurm's to end."""
    found = step(f"{job}.0")

    def adopt(agent: Agent) -> AgentJob:
        return agent.adopt("step", pids=found.processes, count=found.threads, weight=WEIGHT)

    busy = sorted(_with_all_below(found.processes), key=seconds)[-2:]
    before = [place(process) for process in busy]
    quiet_cores = QuietCores(_with_all_below(found.processes))
    with pair(adopt) as both:
        share = both.share()
        cluster.run("scontrol", "suspend", job)
        stand_still(busy, lambda: len(both.off(both.adopted)))
        cluster.run("scontrol", "resume", job)
        assert goes_on(busy)
    assert goes_on(busy)
    assert [place(process) for process in busy] == before
    quiet_cores.judge(0.62 < share < 0.88, share)


@pytest.fixture
def tracking(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """Another Slurm, which tracks its processes by control groups."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if not (freezer / "tasks").exists():
        pytest.skip("proctrack/cgroup is tried with the freezer of control groups version 1")
    options = ("--cpus", 2, "--select", "cons_tres", "--prefix", "tracked")
    # Steps are looked for by their numbers, which the other Slurm's have from 1 on.
    lines = ("--conf", "ProctrackType=proctrack/cgroup", "--conf", "FirstJobId=1000")
    with running(1, tmp_path_factory.mktemp("cg"), *options, *lines) as up:
        monkeypatch.setenv("SLURM_CONF", up.facts["SLURM_CONF"])
        (up.directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n")
        for verb in ("stop", "start"):
            assert script(verb, up.directory, "slurmctld", "tracked1").returncode == 0
        until(lambda: "idle" in up.run("sinfo", "-h", "-o", "%T"), "the node is back")
        yield up
    for group in sorted(freezer.glob("slurm_tracked1/**/"), reverse=True):
        group.rmdir()


def test_a_step_that_slurm_tracks_by_control_groups_stays_in_them(tracking: Cluster) -> None:
    """Rule: what Slurm ends a step by is left to it; the step is stopped by other means, and Slurm ends it all the
    same."""
    job = tracking.submit("-n1", "-c2", script=f"({SPIN}) & {SPIN}")
    until(lambda: len(_listed(tracking, job, "batch")) == 2, "the job runs")
    found = step(str(job))
    members = _with_all_below(found.processes)
    quiet_cores = QuietCores(members)
    groups = {one: _freezer(one) for one in members}
    assert all(f"/job_{job}/step_batch" in group for group in groups.values())

    def adopt(agent: Agent) -> AgentJob:
        return agent.adopt("step", pids=found.processes, count=found.threads, weight=WEIGHT)

    with pair(adopt) as both:
        share = both.share()
        assert {one: _freezer(one) for one in members} == groups
        tracking.run("scancel", job)
        until(lambda: tracking.run("squeue", "-h") == "", "Slurm ends the job")
        until(lambda: not any(Path(f"/proc/{one}").exists() for one in members), "its processes are gone")
    quiet_cores.judge(0.62 < share < 0.88, share)


def _freezer(process: int) -> str:
    lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
    return next(line for line in lines if ":freezer:" in line)


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
