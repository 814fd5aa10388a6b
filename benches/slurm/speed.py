"""What the driver costs: idle, deciding, and reading all of Slurm anew."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from live import HELD, Driver, Load, cancel_all, daemons, driver, settings, submit
from live_cluster import Cluster, until
from measure import Row
from numpy import percentile
from scale import Scale
from topolane.slurm import client
from topolane.slurm import config as configuration
from topolane.slurm.daemon import Log
from topolane.slurm.mirror import Mirror
from topolane.slurm.records import Snapshot
from topolane.slurm.setup import connect, mirror_of
from workload import jobs_of

DECISION_LIMIT = 1.0
"""Milliseconds, the 99th percentile."""
RESYNC_LIMIT = 2.0
IDLE_LIMIT = 1.0
LONG = 3000
"""Seconds that jobs sleep which are not to end by themselves."""
SETTLED = 8.0
"""Seconds after which what was released runs."""


def idle(up: Cluster, scale: Scale) -> list[Row]:
    """Nothing changes: one job has all nodes, the others wait for it."""
    alone = Load(daemons(up))
    time.sleep(scale.idle_seconds / 3)
    before = alone.shares()
    for nodes in (scale.nodes, *[1] * scale.idle_jobs):
        submit(up, HELD, nodes, LONG, 60)
    with driver(up) as ours:
        wait_for_starts(ours)
        load = Load({"driver": ours.process.pid} | daemons(up))
        time.sleep(scale.idle_seconds)
        shares = load.shares()
    what = f"{scale.idle_jobs:,} held jobs, nothing changes"
    rows = [Row("idle", f"{what}: the driver", "% of a core", (100 * shares["driver"],), IDLE_LIMIT)]
    for name in ("slurmrestd", "slurmctld"):
        note = f"{what}: {name} ({100 * before[name]:.2g} with no driver and no jobs)"
        rows.append(Row("idle", note, "% of a core", (100 * shares[name],)))
    cancel_all(up)
    return rows


def fill(up: Cluster, scale: Scale, count: int) -> None:
    """Queues jobs as wide as the month's, which do not end by themselves."""
    queued = len(up.run("squeue", "-h", "-o", "%i").split())
    for job in jobs_of(scale.nodes, 2 * count, 1.0)[: max(count - queued, 0)]:
        submit(up, HELD, job.nodes, LONG, 60 * job.minutes)


def wait_for_starts(ours: Driver) -> None:
    """Until the driver has looked, and released nothing more for a while."""

    def settled() -> bool:
        done = ours.events("start") or ours.events("pass")
        return bool(done) and time.time() - done[-1]["time"] > SETTLED

    until(settled, "released jobs run", 300)


def decision(up: Cluster, scale: Scale) -> list[Row]:
    """Decisions with a deep queue: by the live driver's log, and in process from the same state."""
    fill(up, scale, scale.queued + scale.queued // 10 + scale.nodes // 10)
    with driver(up) as ours:
        wait_for_starts(ours)
        churn(up, scale)
        wait_for_starts(ours)
        seconds = [event["seconds"] for event in ours.events("start")]
    what = f"{scale.queued:,} queued"
    rows = spread(f"{what}, live, a start", seconds, DECISION_LIMIT)
    with_state = mirrored(up)
    update, some, none = played(*with_state, scale)
    rows += spread(f"{what}, in process, a start", some, DECISION_LIMIT)
    rows += spread(f"{what}, in process, a pass that starts nothing", none)
    return rows + spread(f"{what}, in process, telling the scheduler what changed", update)


def churn(up: Cluster, scale: Scale) -> None:
    """Cancels running jobs, so that others may start."""
    draw = random.Random(1)
    end = time.monotonic() + scale.churn_seconds
    while time.monotonic() < end:
        running = up.run("squeue", "-h", "-t", "RUNNING", "-o", "%i").split()
        if running:
            up.run("scancel", *draw.sample(running, min(3, len(running))))
        time.sleep(1)


def spread(what: str, seconds: list[float], limit: float | None = None) -> list[Row]:
    """Median and 99th percentile; the latter is judged."""
    return [
        Row("decision", f"{what} ({len(seconds):,}): {name}", "ms", (value,), limit if at == 99 else None)
        for name, at in (("median", 50), ("p99", 99))
        if seconds and (value := 1e3 * float(percentile(seconds, at))) is not None
    ]


def mirrored(up: Cluster) -> tuple[Mirror, Snapshot]:
    """A mirror of Slurm as it is now, as the driver makes one."""
    config = config_of(up)
    slurm = connect(config)
    snapshot = slurm.snapshot()
    slurm.close()
    mirror = mirror_of(config, snapshot, Log("/dev/null").write)
    mirror.update(snapshot)
    return mirror, snapshot


def config_of(up: Cluster) -> configuration.Config:
    """What the driver reads when it starts."""
    path = up.directory / "log" / "in-process.toml"
    path.write_text(settings(up, "isolated", 1.0, Path("/dev/null")))
    topology = up.directory / "topology.conf"
    return dataclasses.replace(configuration.read(path), topology=str(topology))


def played(mirror: Mirror, snapshot: Snapshot, scale: Scale) -> tuple[list[float], list[float], list[float]]:
    """Running jobs end at random, one a look; what is started runs at once, and as many come anew.

    Answers CPU seconds: of telling what changed; of deciding, a start; of deciding where none starts.
    """
    draw = random.Random(1)
    update, some, none = [], [], []
    for turn in range(scale.rounds):
        jobs = dict(snapshot.jobs)
        del jobs[draw.choice([job.id for job in jobs.values() if job.holds_nodes])]
        # Every answer of Slurm's is a new one: nothing in it is the same object as before.
        snapshot = pickle.loads(
            pickle.dumps(dataclasses.replace(snapshot, jobs=jobs, time=snapshot.time + 1))
        )
        begun = time.thread_time()
        mirror.update(snapshot)
        told = time.thread_time()
        starts = mirror.decide(snapshot.time)
        decided = time.thread_time()
        update.append(told - begun)
        some += [(decided - told) / len(starts) for _ in starts]
        none += [] if starts else [decided - told]
        for start in starts:
            run(snapshot, start.job, start.hosts, 10**6 * (turn + 1) + start.job.id)
    return update, some, none


def run(snapshot: Snapshot, job: Any, hosts: str, anew: int) -> None:
    """Lets a job run from now on, and another like it wait."""
    change = {"state": "RUNNING", "nodes": hosts, "start": snapshot.time, "priority": 1}
    snapshot.jobs[job.id] = dataclasses.replace(job, **change)
    snapshot.jobs[anew] = dataclasses.replace(job, id=anew, number=str(anew), record=str(anew))


def resync(up: Cluster, scale: Scale) -> list[Row]:
    """A new driver's first look: everything is read and mirrored."""
    fill(up, scale, scale.resync_jobs)
    with driver(up) as ours:
        wait_for_starts(ours)
    config = config_of(up)
    kinds: dict[str, list[float]] = {}
    for _ in range(scale.repeats):
        for kind, seconds in once(config).items():
            kinds.setdefault(kind, []).append(seconds)
    running = len(up.run("squeue", "-h", "-t", "RUNNING", "-o", "%i").split())
    what = f"{scale.resync_jobs:,} jobs ({running} running)"
    return [
        Row("resync", f"{what}: {kind}", "s", tuple(values), RESYNC_LIMIT if kind == "in all" else None)
        for kind, values in kinds.items()
    ]


def once(config: configuration.Config) -> dict[str, float]:
    """Seconds of a resynchronisation, in all and part by part."""
    slurm = connect(config)
    whole, snapshot = timed(slurm.snapshot)
    mirror = mirror_of(config, snapshot, Log("/dev/null").write)
    told, _ = timed(lambda: mirror.update(snapshot))
    socket = httpx.HTTPTransport(uds=config.slurmrestd.removeprefix("unix:"))
    with httpx.Client(transport=socket, base_url="http://slurm", timeout=60) as http:
        jobs, text = timed(lambda: http.get(f"/slurm/{slurm.version}/jobs").content)
        nodes, _ = timed(lambda: http.get(f"/slurm/{slurm.version}/nodes").content)
    slurm.close()
    read, answer = timed(lambda: json.loads(text)["jobs"])
    made, _ = timed(lambda: [list(client._jobs(record, snapshot.partitions)) for record in answer])
    return {
        "in all": whole + told,
        "reading Slurm": whole,
        "mirror and scheduler": told,
        "of reading: slurmrestd's answer of jobs, asked alone": jobs,
        "of reading: its answer of nodes, asked alone": nodes,
        "of reading: JSON of the jobs": read,
        "of reading: records of the jobs": made,
    }


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the answer."""
    begun = time.perf_counter()
    answer = action()
    return time.perf_counter() - begun, answer
