"""Slurm read by its own commands and through slurmrestd: both give the same records, and both say when Slurm is away."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs the extra slurm: httpx")

from live_cluster import Cluster, Inside, running
from reading import with_commands
from topolane.slurm.client import SlurmError, connect
from topolane.slurm.records import Snapshot
from waiting import until


@pytest.fixture(scope="module")
def trixie(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Twelve nodes of Slurm 24.11, whose scontrol writes JSON."""
    with running(12, tmp_path_factory.mktemp("json"), "--auth", "none", inside=inside) as cluster:
        yield cluster


@pytest.fixture
def commands(trixie: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    """Slurm's commands of that cluster are those of this process."""
    monkeypatch.setenv("PATH", with_commands(trixie, tmp_path)["PATH"])
    monkeypatch.setenv("SLURM_CONF", trixie.facts["SLURM_CONF"])
    return trixie


def lasting(snapshot: Snapshot) -> dict[str, object]:
    """A snapshot but for its time, and for Slurm's estimates."""
    jobs = {job: dataclasses.replace(each, expected_start=0.0) for job, each in snapshot.jobs.items()}
    return dataclasses.asdict(dataclasses.replace(snapshot, time=0.0, jobs=jobs))


def test_both_sources_give_the_same_records(commands: Cluster) -> None:
    """Running and waiting jobs, an array, a node that is drained and a reservation."""
    runs = commands.submit("--nodes=2", "--nodelist=node[1-2]", "--time=10", "--comment=mine")
    commands.submit("--nodes=12", "--time=10", "--exclude=node3", "--hold")
    commands.submit("--nodes=1", "--array=0-3%2", "--time=10", "--hold")
    commands.run("scontrol", "update", "nodename=node12", "state=drain", "reason=away")
    kept = ["starttime=2030-01-01T00:00:00", "duration=60", "users=root", "nodes=node7"]
    commands.run("scontrol", "create", "reservation", "reservationname=maint", *kept)
    by_commands, by_rest = connect(), connect(f"unix:{commands.facts['SOCKET']}")
    until(lambda: by_rest.snapshot().jobs[runs].state == "RUNNING", "the job runs")
    found = by_commands.snapshot()
    assert lasting(found) == lasting(by_rest.snapshot())
    assert (
        len(found.jobs) == 6 and found.jobs[runs].nodes == "node[1-2]" and found.jobs[runs].cores_held == 16
    )
    assert found.jobs[runs].comment == "mine" and found.reservations["maint"].nodes == "node7"
    assert not found.nodes["node12"].usable and found.nodes["node1"].usable
    assert found.partitions["pbatch"].nodes == "node[1-12]" and found.partitions["pbatch"].up
    assert abs(found.time - by_rest.clock()) <= 2


def test_a_slurm_without_jobs_and_one_that_is_away(commands: Cluster) -> None:
    """`scontrol --json` prints empty lists and ends with 0 in both cases; only the second is an error."""
    commands.run("scancel", "--user=root")
    commands.script("stop", "slurmctld")
    read = connect()
    with pytest.raises(SlurmError, match="sdiag"):
        read.snapshot()
    with pytest.raises(SlurmError, match="slurmctld does not answer `scontrol show jobs`"):
        read._source.read("jobs")
    commands.script("start", "slurmctld")
    until(lambda: bool(read.snapshot().nodes), "slurmctld answers again")


def test_a_machine_without_the_commands_gets_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sentence names the command and the other way to reach Slurm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=r"scontrol cannot be run: No such file.*--slurmrestd"):
        connect()
    older = tmp_path / "scontrol"
    older.write_text("#!/bin/sh\necho \"scontrol: unrecognized option '--json=list'\" >&2\nexit 1\n")
    older.chmod(0o755)
    with pytest.raises(SlurmError, match=r"no --json: Slurm 23\.02 or newer"):
        connect()
