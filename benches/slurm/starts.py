"""Starts per second: by the driver, by Slurm alone, and by scontrol."""

from __future__ import annotations

import subprocess
import time
from collections import Counter

from live import FREE, HELD, PATIENCE, Ended, Load, cancel_all, daemons, driver, submit
from live_cluster import Cluster, until
from measure import Row
from scale import Scale

STARTS_LIMIT = 50.0
SECONDS = 1
SCONTROL_JOBS = 200


def starts(up: Cluster, scale: Scale) -> list[Row]:
    """A backlog of jobs of one node, by both."""
    return by_driver(up, scale) + by_slurm(up, scale) + by_scontrol(up, scale)


def by_driver(up: Cluster, scale: Scale) -> list[Row]:
    """The driver finds them waiting."""
    ended = Ended(up)
    for _ in range(scale.backlog):
        submit(up, HELD, 1, SECONDS, 5)
    with driver(up) as ours:
        load = Load({"the driver": ours.process.pid} | daemons(up))
        until(lambda: len(ended.more()) >= scale.backlog, "the backlog ends", PATIENCE)
        shares = load.shares()
        released = [event["time"] for event in ours.events("start")]
    what = f"{scale.backlog:,} jobs of one node"
    rows = [
        Row("starts", f"{what}: started by Slurm", "1/s", (started(ended),), STARTS_LIMIT, True),
        Row("starts", f"{what}: released", "1/s", (rate(released),)),
        Row("starts", f"{what}: released, the fastest second", "1/s", (fastest(released),)),
    ]
    shares["slurmds and jobs"] = 2 * shares["all"] - sum(shares.values())
    return rows + [Row("starts", f"{what}: cores in use, {name}", "", (v,)) for name, v in shares.items()]


def by_slurm(up: Cluster, scale: Scale) -> list[Row]:
    """The same backlog in a partition that Slurm starts by itself, from the moment that it may."""
    ended = Ended(up)
    up.run("scontrol", "update", f"partitionname={FREE}", "state=down")
    for _ in range(scale.backlog):
        submit(up, FREE, 1, SECONDS, 5)
    up.run("scontrol", "update", f"partitionname={FREE}", "state=up")
    until(lambda: len(ended.more()) >= scale.backlog, "the backlog ends", PATIENCE)
    what = f"{scale.backlog:,} jobs of one node: started by Slurm without a driver"
    return [Row("starts", what, "1/s", (started(ended),))]


def by_scontrol(up: Cluster, scale: Scale) -> list[Row]:
    """Releases through the standard input of one scontrol, two commands a job."""
    count = min(SCONTROL_JOBS, scale.nodes)
    ended = Ended(up)
    jobs = [submit(up, FREE, 1, SECONDS, 5, hold=True) for _ in range(count)]
    lines = [
        f"update jobid={job} numnodes=1 nodelist={up.facts['PREFIX']}{node}\nrelease {job}\n"
        for node, job in enumerate(jobs, start=1)
    ]
    begun = time.monotonic()
    subprocess.run(
        ["scontrol"], input="".join(lines), text=True, env=up.environment, stdout=subprocess.DEVNULL
    )
    seconds = time.monotonic() - begun
    until(lambda: len(ended.more()) >= count, "the jobs end", PATIENCE)
    cancel_all(up)
    return [Row("starts", f"{count} jobs of one node: released by scontrol", "1/s", (count / seconds,))]


def rate(times: list[float]) -> float:
    """Events per second from the first to the last."""
    return (len(times) - 1) / max(max(times) - min(times), 1e-9)


def started(ended: Ended) -> float:
    """Starts per second; Slurm counts whole seconds, so that the last is counted as one."""
    times = [record.start for record in ended.records]
    return len(times) / (max(times) - min(times) + 1)


def fastest(times: list[float]) -> float:
    """The most in one second."""
    return max(Counter(map(int, times)).values())
