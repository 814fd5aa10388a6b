"""The state of an agent as plain values: its jobs and its matrix."""

from __future__ import annotations

import math
import os
from typing import Any

from topolane._engine import GangHeld, GangRound

from topolane_gang.agent import Agent


def agent_status(agent: Agent) -> dict[str, Any]:
    """The whole state, for JSON. Times in seconds."""
    round, jobs, means = agent.round(), agent.jobs(), agent.means
    return {
        "agent": {
            "process": os.getpid(),
            "policy": agent.policy,
            "cores": list(agent.cores),
            "switched_by": agent.switched_by,
            "pinned_by": means.pinning,
            "ranked_by": means.ranking,
            "real_time": means.real_time,
            "missing": list(means.missing),
        },
        "jobs": [_job(one) for one in jobs],
        "round": _round(round),
    }


def _job(one: GangHeld) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "state": one.state,
        "reason": one.reason,
        "threads": one.threads,
        "weight": one.weight,
        "cores": one.cores,
        "given": one.given,
        "ran": one.ran,
        "ready": one.ready,
        "blocked": one.blocked,
        "cpu": one.cpu,
        "barrier": one.barrier,
    }


def _round(round: GangRound) -> dict[str, Any]:
    first, fillers = round.now
    return {
        "slices": [
            {
                "seconds": None if math.isinf(seconds) else seconds,
                "first": of_first,
                "fillers": of_fillers,
                "now": (of_first, of_fillers) == (first, fillers),
            }
            for seconds, of_first, of_fillers in round.slices
        ],
        "cores": {str(job): cores for job, cores in round.cores.items()},
        "gangs": round.gangs,
        "now": {"first": first, "fillers": fillers},
    }


def matrix_rows(shown: dict[str, Any]) -> list[list[str]]:
    """A row for each slice and a cell for each core, with the first jobs there; fillers are in parentheses."""
    names = {job["id"]: job["name"] for job in shown["jobs"]}
    cores = {int(job): of for job, of in shown["round"]["cores"].items()}
    rows = []
    for slice in shown["round"]["slices"]:
        row = ["*" if slice["now"] else ""]
        row.append("no end" if slice["seconds"] is None else f"{1e3 * slice['seconds']:.1f} ms")
        for core in shown["agent"]["cores"]:
            there = [names.get(job, str(job)) for job in slice["first"] if core in cores.get(job, ())]
            there += [f"({names.get(job, job)})" for job in slice["fillers"] if core in cores.get(job, ())]
            row.append(" ".join(there) or "–")
        rows.append(row)
    return rows
