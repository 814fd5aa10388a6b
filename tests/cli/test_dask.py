"""The same sweep over a Dask cluster, made for the occasion or already there: a real scheduler and workers, on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import topolane as package
from waiting import DEADLINE, until

distributed = pytest.importorskip("distributed", reason="needs distributed: the extra dask")
pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = Path(sys.executable).parent / "topolane"
DASK = (sys.executable, "-m", "dask")


class Cluster:
    """A scheduler, and workers that a nanny starts again when they end. Each is a process of its own."""

    def __init__(self, directory):
        self.directory, self.processes, self.scheduler = directory, {}, None

    def start(self, name, *arguments, path=None):
        log = self.directory / f"{name}.txt"
        environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
        with log.open("w") as output:
            self.processes[name] = subprocess.Popen(
                [*DASK, *arguments], cwd=self.directory, env=environment, stdout=output, stderr=output
            )
        return log

    def start_scheduler(self):
        log = self.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        found = until(lambda: re.search(r"Scheduler at: +tcp://(\S+)", log.read_text()), "the scheduler")
        self.scheduler = found[1]

    def start_worker(self, name, path=None):
        """A worker in a folder of its own; `path` stands for PYTHONPATH."""
        options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard")
        folder = ("--local-directory", str(self.directory / name))
        log = self.start(name, "worker", self.scheduler, *options, *folder, path=path)
        until(lambda: "Registered to" in log.read_text(), name)

    def worker_processes(self, name):
        """The workers beneath a nanny, which give themselves that name; the other child is a tracker of multiprocessing."""
        tasks = Path(f"/proc/{self.processes[name].pid}/task").glob("*/children")
        return [
            int(child)
            for children in tasks
            for child in children.read_text().split()
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes()
        ]

    def end(self):
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start_scheduler()
        yield made
    finally:
        made.end()


@pytest.fixture
def comparison(toy, log):
    return (
        *("compare", "--machine", toy, "--trace", log, "--jobs", 2, "--json"),
        *("--policies", "first-fit,isolated,random", "--scenarios", "none,v1"),
    )


MANY = (
    *("compare", "--workload", "cab-aug", "--limit", 200, "--policies", "first-fit,isolated"),
    *("--scenarios", "none", "--loads", "0.9,1.1", "--seeds", 30, "--json"),
)
"""120 runs."""


def started(topolane, *arguments):
    return subprocess.Popen(
        [SCRIPT, *map(str, arguments)],
        cwd=topolane.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(topolane):
    path = topolane.directory / "kept/runs.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_a_cluster_made_for_the_occasion(topolane, comparison):
    here = json.loads(topolane(*comparison))
    there = json.loads(topolane(*comparison, "--executor", "dask://", "--out", "out", "--no-report"))
    assert there == here
    assert len(list((topolane.directory / "out/runs").iterdir())) == 4


def test_a_cluster_that_is_there(topolane, comparison, cluster):
    cluster.start_worker("worker")
    executor = ("--executor", f"dask://{cluster.scheduler}")
    assert topolane(*comparison, *executor) == topolane(*comparison)
    topolane.refused(*comparison, "--queue", "nope", *executor, says='unknown queue "nope"')


def test_a_worker_that_is_killed(topolane, cluster):
    """Workers are killed in the midst and started again: the table is that of one process, and each run is kept once."""
    for name in ("one", "two"):
        cluster.start_worker(name)
    running = started(topolane, *MANY, "--executor", f"dask://{cluster.scheduler}", "--resume", "kept")
    for name, count in (("one", 5), ("two", 25)):
        until(lambda count=count: lines(topolane) >= count, f"{count} runs")
        assert running.poll() is None
        (process,) = cluster.worker_processes(name)
        os.kill(process, signal.SIGKILL)
    out, error = running.communicate(timeout=DEADLINE)
    assert (running.returncode, error) == (0, "")
    assert out == topolane(*MANY, "--jobs", 1)
    assert lines(topolane) == 120
    for name in ("one", "two"):
        assert "was killed by signal 9" in (cluster.directory / f"{name}.txt").read_text()


def test_the_command_is_killed(topolane, cluster):
    """SIGKILL ends the command: given again, it goes on with what is left, over Dask or not."""
    cluster.start_worker("worker")
    running = started(topolane, *MANY, "--executor", f"dask://{cluster.scheduler}", "--resume", "kept")
    until(lambda: lines(topolane) >= 10, "10 runs")
    running.kill()
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    before = lines(topolane)
    assert before < 120
    done = topolane.run(*MANY, "--executor", f"dask://{cluster.scheduler}", "--resume", "kept")
    assert f"{before} runs kept from before" in done.stderr
    assert (done.stdout, lines(topolane)) == (topolane(*MANY, "--jobs", 1), 120)


def test_workers_need_no_files(topolane, toy, log, cluster):
    """Workers get the content of the files that a run names: they go on when these files are gone."""
    cluster.start_worker("worker")
    many = ("compare", "--machine", toy, "--trace", log, "--seeds", 300, "--policies", "random", "--json")
    here = topolane(*many, "--jobs", 1)
    running = started(topolane, *many, "--executor", f"dask://{cluster.scheduler}", "--resume", "kept")
    until(lambda: lines(topolane) >= 3, "3 runs")
    log.unlink()
    toy.unlink()
    copies = list((cluster.directory / "worker").rglob("log.csv"))
    for copy in copies:
        assert copy.is_relative_to(cluster.directory)
    assert lines(topolane) < 300
    out, error = running.communicate(timeout=DEADLINE)
    assert (running.returncode, error, out) == (0, "", here)
    assert len(copies) == 1


def test_an_error_on_a_worker_names_the_file(topolane, toy, log, cluster):
    """What a worker finds wrong in its copy of a file is reported with the name of the file itself."""
    cluster.start_worker("worker")
    topolane.refused(
        *("compare", "--machine", toy, "--trace", log, "--partition", "x", "--seeds", 2),
        *("--executor", f"dask://{cluster.scheduler}"),
        says=f"topolane: {log}: a CSV log names no partitions",
    )


def test_another_build_on_a_worker(topolane, comparison, cluster):
    """A worker with another Topolane could give other runs: it is named, and nothing runs."""
    place = cluster.directory / "another"
    shutil.copytree(
        Path(package.__file__).parent, place / "topolane", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (place / "topolane/sources.py").open("a") as text:
        text.write("# another\n")
    cluster.start_worker("other", path=place)
    says = ("Dask worker tcp://127.0.0.1:", "has another build of Topolane")
    topolane.refused(*comparison, "--executor", f"dask://{cluster.scheduler}", says=says)


def test_no_topolane_on_a_worker(topolane, comparison, cluster):
    """A worker without Topolane is named, and nothing runs."""
    place = cluster.directory / "without"
    (place / "topolane").mkdir(parents=True)
    (place / "topolane/__init__.py").write_text("")
    cluster.start_worker("without", path=place)
    says = ("Dask worker tcp://127.0.0.1:", "has no Topolane of this version")
    topolane.refused(*comparison, "--executor", f"dask://{cluster.scheduler}", says=says)


KILLER = """
import distributed, os, topolane

class Killer(topolane.Policy):
    name = "killer"
    isolates = False

    def __init__(self):
        try:
            distributed.get_worker()
        except ValueError:
            return
        os._exit(1)

    def choose(self, request, state):
        return None
"""


def test_a_run_that_ends_every_worker(topolane, toy, log, cluster):
    """A run whose worker ends each time is given up after some workers, in one sentence that names it."""
    (cluster.directory / "killer.py").write_text(KILLER)
    (topolane.directory / "killer.py").write_text(KILLER)
    cluster.start_worker("worker")
    topolane.refused(
        *("compare", "--machine", toy, "--trace", log, "--policies", "killer:Killer", "--seeds", 1),
        *("--executor", f"dask://{cluster.scheduler}"),
        says=("killer:Killer, easy, seed 0", "every Dask worker that ran it ended"),
    )


def test_the_scheduler_goes_away(topolane, cluster):
    """One sentence; what was kept stays, and the same command goes on elsewhere."""
    cluster.start_worker("worker")
    running = started(topolane, *MANY, "--executor", f"dask://{cluster.scheduler}", "--resume", "kept")
    until(lambda: lines(topolane) >= 5, "5 runs")
    cluster.processes["scheduler"].kill()
    out, error = running.communicate(timeout=DEADLINE)
    assert (running.returncode, out) == (2, "")
    (sentence,) = error.splitlines()
    assert f"the Dask scheduler at {cluster.scheduler} went away" in sentence
    done = topolane.run(*MANY, "--jobs", 1, "--resume", "kept")
    assert done.stdout == topolane(*MANY, "--jobs", 1)


def test_no_workers(topolane, comparison, cluster):
    """A scheduler without a worker is refused after half a minute."""
    says = f"the Dask scheduler at {cluster.scheduler} has no worker"
    topolane.refused(*comparison, "--executor", f"dask://{cluster.scheduler}", says=says)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:x"])
def test_no_scheduler_there(topolane, comparison, address):
    topolane.refused(
        *comparison, "--executor", f"dask://{address}", says=f"no Dask scheduler answers at {address}"
    )
