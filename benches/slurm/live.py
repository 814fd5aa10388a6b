"""A Slurm to be measured: jobs into it, what became of them, and what its processes cost."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))

from live_cluster import Cluster, running, until
from topolane import Machine
from topolane.slurm.fabric import topology_conf

HELD, FREE = "pbatch", "pstock"
"""Partitions of all nodes: jobs of one wait for the driver, those of the other are Slurm's own."""

COMMAND = [sys.executable, "-c", "from topolane.cli import main; main()", "slurm", "run"]
PATIENCE = 300.0
"""Seconds, for what should take far less."""


@contextlib.contextmanager
def cluster(nodes: int, directory: Path) -> Iterator[Cluster]:
    """Slurm with so many nodes."""
    # Ended jobs are forgotten soon, as time is compressed here.
    options = ("--partitions", f"{HELD} {FREE}", "--hold", f"lua:{HELD}", "--conf", "MinJobAge=10")
    with running(nodes, directory, *options) as up:
        for pid in directory.glob(f"run/{up.facts['PREFIX']}*.pid"):
            # Elsewhere the nodes' daemons and jobs are not on the cores of the central ones.
            os.setpriority(os.PRIO_PROCESS, int(pid.read_text()), 10)
        yield up


def machine_of(up: Cluster) -> Machine:
    """The tree that Slurm says its nodes are on."""
    return Machine.parse(topology_conf(up.run("scontrol", "show", "topology")), "topology", "slurm")


NAMES = itertools.count()


def submit(
    up: Cluster, partition: str, nodes: int, seconds: float, minutes: int, *, hold: bool = False
) -> int:
    """A job that sleeps; its number."""
    name = f"sleep-{next(NAMES)}"
    job = {
        "name": name,
        "partition": partition,
        "nodes": str(nodes),
        "time_limit": minutes,
        "current_working_directory": "/tmp",
        "standard_output": "/dev/null",
        "standard_error": "/dev/null",
        "environment": {"PATH": "/usr/bin:/bin"},
        "hold": hold,
    }
    body = {"job": job, "script": f"#!/bin/sh\nsleep {seconds}\n"}
    try:
        answer = up.rest("job/submit", body)
    except ConnectionError:  # slurmrestd drops a connection now and then, before or after it has done all
        if found := up.run("squeue", "-h", "-n", name, "-o", "%i"):
            return int(found)
        answer = up.rest("job/submit", body)
    if not answer.get("job_id"):
        raise RuntimeError(f"Slurm takes no job: {answer.get('errors')}")
    return int(answer["job_id"])


def cancel_all(up: Cluster) -> None:
    """Ends every job and waits until all nodes are free."""
    for state in ("PENDING", "RUNNING"):
        # It goes on for minutes with thousands of jobs.
        subprocess.run(["scancel", "--state", state], env=up.environment, timeout=PATIENCE)
    until(lambda: not up.run("squeue", "-h"), "all jobs end", PATIENCE)


@dataclasses.dataclass(frozen=True)
class Record:
    """A job as Slurm's own log of ended jobs has it; Unix time, whole seconds."""

    number: int
    state: str
    submit: float
    start: float
    end: float
    hosts: str


class Ended:
    """The jobs that have ended, read as the log grows."""

    def __init__(self, up: Cluster) -> None:
        self._path = up.directory / "log" / "jobs.log"
        self._offset = self._path.stat().st_size if self._path.exists() else 0
        self.records: list[Record] = []

    def more(self) -> list[Record]:
        """All that ended since this was made."""
        if self._path.exists():
            with self._path.open() as log:
                log.seek(self._offset)
                text = log.read()
            whole = text[: text.rfind("\n") + 1]
            self._offset += len(whole)
            self.records += map(_record, whole.splitlines())
        return self.records


def _record(line: str) -> Record:
    facts = dict(word.split("=", 1) for word in line.split() if "=" in word)

    def when(key: str) -> float:
        return datetime.datetime.fromisoformat(facts[key]).timestamp()

    times = when("SubmitTime"), when("StartTime"), when("EndTime")
    return Record(int(facts["JobId"]), facts["JobState"], *times, facts["NodeList"])


class Driver:
    """The daemon at work, and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log

    def events(self, *names: str) -> list[dict[str, Any]]:
        """The events of these names so far."""
        text = self._log.read_text() if self._log.exists() else ""
        lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
        return [event for event in lines if event["event"] in names]


@contextlib.contextmanager
def driver(up: Cluster, policy: str = "isolated", interval: float = 1.0) -> Iterator[Driver]:
    """`topolane slurm run` on the partition whose jobs are held."""
    stem = up.directory / "log" / f"topolane-{time.time_ns()}"
    log, errors, config = (stem.with_suffix(suffix) for suffix in (".jsonl", ".err", ".toml"))
    config.write_text(settings(up, policy, interval, log))
    with errors.open("wb") as said:
        process = subprocess.Popen([*COMMAND, "--config", str(config)], env=up.environment, stderr=said)
    ours = Driver(process, log)
    try:
        until(lambda: process.poll() is not None or bool(ours.events("started")), "the driver starts")
        yield ours
    finally:
        process.send_signal(signal.SIGTERM)
        if process.wait(PATIENCE) or errors.read_text():
            raise RuntimeError(f"the driver ended with exit code {process.returncode}: {errors.read_text()}")


def settings(up: Cluster, policy: str, interval: float, log: Path) -> str:
    """The driver's configuration."""
    values = {
        "slurmrestd": f"unix:{up.facts['SOCKET']}",
        "partitions": [HELD],
        "policy": policy,
        "interval": interval,
        "log": str(log),
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def daemons(up: Cluster) -> dict[str, int]:
    """The process ids of Slurm's central daemons."""
    run = up.directory / "run"
    return {name: int((run / f"{name}.pid").read_text()) for name in ("slurmctld", "slurmrestd")}


class Load:
    """What processes, and the whole machine, use of the cores since this was made."""

    def __init__(self, processes: dict[str, int]) -> None:
        self._processes = processes
        self._begun = time.monotonic()
        self._before = self._now()

    def shares(self) -> dict[str, float]:
        """Cores in use, by process; "all" is the machine."""
        seconds = time.monotonic() - self._begun
        return {name: (now - self._before[name]) / seconds for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {name: _process(pid) for name, pid in self._processes.items()} | {"all": _machine()}


TICK = 1 / os.sysconf("SC_CLK_TCK")


def _process(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return TICK * (int(words[11]) + int(words[12]))


def _machine() -> float:
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split()[1:10])
    return TICK * (user + nice + system + irq + soft)
