"""Compares `least-slowdown` with the other policies in coupled runs, and reports which targets it meets.

`run.py least-slowdown --loads cab-aug cab-sep LOG.swf.gz --machine cab` prints a table for each load.
Targets: wait plus run time at most that of the best other policy; and at most half of the node hours that
jobs lose to contention under slurm-tree.
"""

from __future__ import annotations

from typing import Any

from measure import Options, Result
from topolane import Network, Shape, Task
from topolane.cli import common
from topolane.run import Run
from topolane.sweep import compare

OWN = "least-slowdown"
POLICIES = ("first-fit", "slurm-tree", "hop-bytes", "isolated", "dedicated", OWN)


def measure(options: Options) -> Result:
    """Runs every policy on every load."""
    shape = Shape(cores_per_node=options.cores_per_node, limit=options.limit)
    tasks = [
        Task(machine=options.machine, workload=load, shape=shape, policy=policy, network=Network())
        for load in options.loads
        for policy in POLICIES
    ]
    with common.counting_bar("simulating", len(tasks)) as done:
        runs = compare(tasks, workers=options.jobs, done=done)
    facts = []
    for first in range(0, len(runs), len(POLICIES)):
        of_load = [figures(run) for run in runs[first : first + len(POLICIES)]]
        facts.append({"load": options.loads[first // len(POLICIES)], "runs": of_load, **verdicts(of_load)})
    for load in facts:
        print_load(load)
    return Result(facts=facts)


def figures(run: Run) -> dict[str, Any]:
    """The values of a run that are compared: hours and node hours."""
    summary = run.summary
    return {
        "policy": run.policy,
        "wait": summary["mean_wait"] / common.HOUR,
        "wait_and_run": summary["mean_turnaround"] / common.HOUR,
        "slowdown": summary["mean_slowdown"],
        "lost": summary["contention"]["node_seconds_lost"] / common.HOUR,
    }


def verdicts(runs: list[dict[str, Any]]) -> dict[str, bool]:
    """By target: whether it is met."""
    by_policy = {run["policy"]: run for run in runs}
    own = by_policy.pop(OWN)
    return {
        "wait_and_run_met": own["wait_and_run"] <= min(run["wait_and_run"] for run in by_policy.values()),
        "lost_met": own["lost"] <= by_policy["slurm-tree"]["lost"] / 2,
    }


def print_load(load: dict[str, Any]) -> None:
    """Prints the table of a load and its verdicts."""
    print(load["load"])
    rows = [
        [
            run["policy"],
            f"{run['wait']:,.3f}",
            f"{run['wait_and_run']:,.3f}",
            f"{run['slowdown']:,.2f}",
            f"{run['lost']:,.0f}",
        ]
        for run in load["runs"]
    ]
    common.print_table(["policy", "wait (h)", "wait + run (h)", "slowdown", "node hours lost"], rows)
    met = {True: "met", False: "MISSED"}
    print(f"wait + run at most that of the best other policy: {met[load['wait_and_run_met']]}")
    print(f"node hours lost at most half of slurm-tree's: {met[load['lost_met']]}\n")
