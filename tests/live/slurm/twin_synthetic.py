"""The twin's plan without a Slurm: a log and a configuration as the import would write them, with the starts
of the queue `slurm`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import twin_shaken
from topolane.slurm import accounting_config
from topolane.slurm.accounting_preemption import seconds
from twin_command import replayed
from twin_plan import ACCOUNTS, SETTINGS, Event, Job, TwinPlan
from twin_run import hosts

LEAF, POD = 6, 3
"""Nodes per leaf and leaves per pod, as in tests/slurm/config.sh."""
BEFORE = 3
"""Seconds from the start of slurmctld to the first submission."""
LAUNCH = 1
"""Seconds by which a job runs longer than it sleeps."""
ROUNDS = 4
"""How often dependencies are resolved again from the last replay. Few jobs depend on a job that itself
depends on others.
"""
LIMITS = {"MaxJobsPerUser": "jobs_per_user", "MaxTRESPerUser": "nodes_per_user", "GrpTRES": "nodes"}


def write(plan: TwinPlan, log: Path, how: tuple[str | Path, ...]) -> None:
    """Writes a log of what the queue `slurm` does with a plan. how: options for machine and policy.

    Raises BenchError.
    """
    config = _config(plan)
    eligible: dict[int, float] = {}
    for _ in range(ROUNDS):
        rows = [_row(job, eligible.get(job.number, 0)) for job in plan.jobs]
        rows.sort(key=lambda row: float(row["submit"]))
        twin_shaken.write(log, rows, config)
        runs = replayed(log, "slurm", how)
        ends = dict(zip(runs.ids.tolist(), (runs.start + runs.run).tolist()))
        eligible = {job.number: ends[job.after[1]] for job in plan.jobs if job.after}
    starts = dict(zip(runs.ids.tolist(), runs.start.tolist()))
    twin_shaken.write(log, [row | {"start": starts[row["id"]]} for row in rows], config)


def topology(nodes: int) -> str:
    """A topology.conf in the form of tests/slurm/config.sh."""
    leaves = [f"Nodes={hosts((first, last))}" for first, last in _chunks(nodes, LEAF)]
    pods = [f"Switches=leaf[{first}-{last}]" for first, last in _chunks(len(leaves), POD)]
    lines = [f"SwitchName=leaf{number} {of}\n" for number, of in enumerate(leaves, 1)]
    lines += [f"SwitchName=pod{number} {of}\n" for number, of in enumerate(pods, 1)]
    return "".join([*lines, f"SwitchName=core Switches=pod[1-{len(pods)}]\n"])


def _chunks(count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(1, count + 1, size):
        yield first, min(first + size - 1, count)


def _row(job: Job, eligible: float) -> dict[str, Any]:
    return {
        "id": job.number,
        "submit": round(max(job.submit + job.begin, eligible)),
        "run": round(job.run) + LAUNCH,
        "walltime": 60 * job.minutes,
        "nodes": job.nodes,
        "partition": job.partition,
        "user": job.user,
        "account": job.account,
        "qos": job.qos,
        "reservation": job.reservation,
        "requested_processors": job.nodes,
        "nice": job.nice,
    }


def _config(plan: TwinPlan) -> dict[str, Any]:
    priority = {key: SETTINGS[name] for key, name in accounting_config.WEIGHTS.items()}
    times = accounting_config.TIMES.items()
    priority |= {key: seconds(str(SETTINGS[name]), name, Path("twin_plan.py")) for key, name in times}
    words = dict(word.partition("=")[::2] for word in str(SETTINGS["SchedulerParameters"]).split(","))
    schedulers = {
        key: int(words[name]) for key, name in accounting_config.SCHEDULERS.items() if name in words
    }
    return {
        "epoch": 0,
        "begin": -BEFORE,
        "priority": priority,
        "schedulers": schedulers,
        "processors_per_node": 16,
        "partitions": [
            {"name": "pbatch", "nodes": hosts(plan.partitions.batch), "tier": 1, "factor": 1},
            {"name": "pdebug", "nodes": hosts(plan.partitions.debug), "tier": 10, "factor": 10},
        ],
        "qos": [_qos(name, words) for name, words in plan.site.qos.items()],
        "associations": list(_associations()),
        "reservations": [
            {
                "name": each.name,
                "nodes": hosts(each.nodes),
                "from": each.start,
                "until": each.start + 60 * each.minutes,
            }
            for each in plan.reservations
        ],
        "out_of_service": list(_out_of_service(plan.events)),
    }


def _qos(name: str, text: str) -> dict[str, Any]:
    words = dict(word.partition("=")[::2] for word in text.split())
    limits = {key: int(words[word].removeprefix("node=")) for word, key in LIMITS.items() if word in words}
    return {"name": name, "priority": int(words["Priority"]), "usage_factor": 1.0, "limits": limits}


def _associations() -> Iterator[dict[str, Any]]:
    yield {"account": "root", "user": "", "parent": "", "shares": 1, "limits": {}}
    for account, (shares, users) in ACCOUNTS.items():
        yield {"account": account, "user": "", "parent": "", "shares": shares, "limits": {}}
        for user in users:
            yield {"account": account, "user": user, "parent": "", "shares": 10, "limits": {}}


def _out_of_service(events: list[Event]) -> Iterator[dict[str, Any]]:
    since: dict[tuple[int, int], float] = {}
    for event in events:
        if event.state == "resume":
            yield {
                "name": "",
                "nodes": hosts(event.nodes),
                "from": int(since[event.nodes]),
                "until": int(event.at),
            }
        else:
            since[event.nodes] = event.at
