"""What `topolane workload import` makes of the accounting of a real Slurm is what happened there."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import Cluster, Inside, printed_by, running
from topolane.slurm import accounting, accounting_workload
from waiting import until

NODES = 4


@pytest.fixture(scope="module")
def accounted(inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ("--leaf", 2, "--pod", 2, "--select", "cons_tres", "--accounting", "slurmdbd")
    with running(NODES, tmp_path_factory.mktemp("accounted"), *options, inside=inside) as up:
        yield up


def test_import_gives_what_happened(accounted: Cluster, tmp_path: Path) -> None:
    fields = accounted.run("sacct", "--helpformat").split()
    assert set(accounting.FIELDS) <= set(fields)

    first = accounted.submit("--nodes=1", "--ntasks=3", "--time=10", script="sleep 3")
    after = accounted.submit("--nodes=1", "--time=10", f"--dependency=afterok:{first}", script="sleep 1")
    again = accounted.submit("--nodes=2", "--time=20", "--requeue", script="sleep 600")
    array = accounted.submit("--nodes=1", "--array=1-3", "--time=10", script="sleep 1")
    until(lambda: accounted.job(again)["job_state"] == "RUNNING", "the job that is requeued runs")
    accounted.run("scontrol", "requeue", again)

    def rows() -> list[list[str]]:
        said = accounted.run("sacct", "-XPnD", "-o", "JobID,State,Start,End", "-S", "now-1days", "-E", "now")
        return [line.split("|") for line in said.splitlines()]

    until(lambda: "REQUEUED" in (row[1] for row in rows()), "accounting knows the first run")
    # Slurm begins it again once slurmd takes its credential for a new one. Asked to begin it earlier, slurmd may refuse it.
    until(lambda: accounted.job(again)["job_state"] == "RUNNING", "the requeued job runs again")
    accounted.run("scancel", again)

    def ended() -> bool:
        states = [(row[0], row[1].split()[0]) for row in rows()]
        return all(state in ("COMPLETED", "CANCELLED", "REQUEUED") for _, state in states) and (
            (str(again), "CANCELLED") in states and (str(after), "COMPLETED") in states
        )

    until(ended, "accounting knows all ends")
    # Not before: a node that fails ends the jobs that still run on it.
    accounted.run("scontrol", "update", f"nodename={accounted.facts['PREFIX']}4", "state=down", "reason=x")
    until(
        lambda: (
            f"{accounted.facts['PREFIX']}4|"
            in accounted.run("sacctmgr", "-nP", "show", "event", "format=nodename,start")
        ),
        "accounting knows of the node",
    )
    directory = printed_by(accounted, tmp_path)
    assert {file.name for file in directory.iterdir()} == {dump.file for dump in accounting.DUMPS}

    imported = accounting_workload.read(directory, shared=True)
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(imported.csv.splitlines()):
        found.setdefault(row["job"], []).append(row)
    assert set(found) == {str(first), str(after), str(again), *(f"{array}_{task}" for task in (1, 2, 3))}
    said = {(row[0], row[1].split()[0]): row for row in rows()}
    for (job, state), (_, _, start, end) in said.items():
        (row,) = (row for row in found[job] if row["state"] == state)
        begin, finish = accounting.time(start), accounting.time(end)
        assert begin is not None and finish is not None
        assert int(row["run"]) == finish - begin
    assert [row["state"] for row in found[str(again)]] == ["REQUEUED", "CANCELLED"]
    assert [row["nodes"] for row in found[str(again)]] == ["2", "2"]
    (one,), (two,) = found[str(first)], found[str(after)]
    assert (one["cores"], one["nodes"], one["walltime"]) == ("3", "1", "600")
    assert re.fullmatch(rf"{accounted.facts['PREFIX']}[1-4]", one["hosts"])
    # The dependency is over when the first job has ended; the wait begins there and not at submission.
    assert int(two["submit"]) >= int(one["start"]) + int(one["run"])
    assert int(two["submitted"]) < int(two["submit"])
    assert "3 tasks of 1 array: each task is a job" in imported.notes
    assert "1 further run of requeued jobs: each is a job" in imported.notes
    assert not any("ParentName" in line for line in imported.notes)
    assert not any(line.startswith("no ") or "clock" in line or "missing" in line for line in imported.notes)
    assert imported.failures is None or imported.failures.startswith("node,from,until\n")
