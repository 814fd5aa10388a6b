"""Makes room for waiting jobs on a full machine, with `topolane slurm plan --room-for` and `apply` on a
running slurmctld with the plugin.

A policy fills the machine with jobs that can be requeued. Then one wide job after another is submitted,
planned for and started by apply. docs/explanation/making-room.md describes the measurements.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import Any

from measure import Options, Result, Row
from slurm_sites import PATIENCE, Site, System, ready, say, site
from waiting import until

TOPOLANE = (sys.executable, "-c", "from topolane.cli import main; main()", "slurm")


def measure(options: Options) -> Result:
    """Plans and applies."""
    ready(options.nodes)
    rng = random.Random(options.seed)
    made: list[dict[str, Any]] = []
    with site(options.nodes, options.engine) as slurm:
        slurm.begin(System.policy(options.policy), {"JobRequeue": 1, "PriorityType": "priority/basic"})
        fill(slurm, rng)
        for number in range(options.jobs):
            nodes = rng.randint(options.nodes // 8, options.nodes // 3)
            made.append(make_room(slurm, nodes, number))
            say(f"job {number + 1} of {options.jobs}: {made[-1]}")
    planned = [one for one in made if one["cost"] is not None]
    rows = [
        Row(
            "plans",
            f"{len(planned)} of {len(made)} jobs of {options.nodes // 8} to {options.nodes // 3} nodes",
            "",
            (len(planned),),
        ),
        Row("plan", "command, with reading Slurm", "s", tuple(one["planning"] for one in made)),
        Row("apply", "until the job runs", "s", tuple(one["applying"] for one in planned)),
        Row(
            "cost over bound",
            "of the plans",
            "",
            tuple(one["cost"] / one["least"] for one in planned if one["least"]),
        ),
        Row(
            "not as planned",
            "jobs on other nodes, or other jobs requeued",
            "",
            (sum(not one["as_planned"] for one in planned),),
            1,
        ),
    ]
    return Result(rows, {"jobs": made})


def fill(slurm: Site, rng: random.Random) -> None:
    """Submits endless jobs of 1 to 12 nodes until some must wait; the waiting ones are cancelled."""
    up = slurm.up
    while True:
        sizes = [rng.choice((1, 2, 3, 4, 6, 6, 8, 12)) for _ in range(8)]
        jobs = [
            up.submit(f"--nodes={size}", "--exclusive", "--requeue", script="sleep 100000") for size in sizes
        ]
        until(
            lambda jobs=jobs: all(reason(slurm, job) != "None" or nodes_of(slurm, job) for job in jobs),
            "a look at all",
        )
        if waiting := [job for job in jobs if not nodes_of(slurm, job)]:
            up.run("scancel", *waiting)
            return


def make_room(slurm: Site, nodes: int, number: int) -> dict[str, Any]:
    """Makes room for a job of `nodes` nodes. The cost is None if there is no plan. Requeued jobs are
    cancelled, so that the machine stays as full as the plan left it.
    """
    up = slurm.up
    job = up.submit(
        f"--nodes={nodes}", "--exclusive", "--requeue", "--priority=100000", script="sleep 100000"
    )
    until(
        lambda: reason(slurm, job) in ("Resources", "Priority") or nodes_of(slurm, job), "a look at the job"
    )
    found: dict[str, Any] = {"job": job, "nodes": nodes, "cost": None}
    before = running(slurm)
    file = up.directory / f"plan{number}.json"
    began = time.monotonic()
    said = command(slurm, "plan", "--json", "--any-priority", "--room-for", job, "--out", file)
    found["planning"] = time.monotonic() - began
    if said.returncode:
        up.run("scancel", job)
        return found | {"why": said.stderr.strip()}
    plan = json.loads(said.stdout)
    began = time.monotonic()
    done = command(slurm, "apply", file, "--timeout", 600)
    found["applying"] = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"apply: {done.stderr.strip()}")
    gone = {int(one["job"]) for one in plan["requeued"]}
    hosts = "scontrol", "show", "hostnames"
    same = up.run(*hosts, plan["nodes"]) == up.run(*hosts, nodes_of(slurm, job))
    found |= {"cost": plan["node_hours"], "least": plan["least_node_hours"], "requeued": len(gone)}
    found["as_planned"] = same and before - running(slurm) == gone
    if gone:
        up.run("scancel", *gone)
    return found


def command(slurm: Site, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs `topolane slurm` in that Slurm."""
    return subprocess.run(
        [*TOPOLANE, *map(str, words)],
        env=slurm.up.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def reason(slurm: Site, job: int) -> str:
    return slurm.up.run("squeue", "-h", "-o", "%r", "-j", job).strip()


def nodes_of(slurm: Site, job: int) -> str:
    return slurm.up.run("squeue", "-h", "-o", "%N", "-j", job).strip()


def running(slurm: Site) -> set[int]:
    return {int(job) for job in slurm.up.run("squeue", "-h", "-t", "running", "-o", "%A").split()}
