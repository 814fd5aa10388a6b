"""When nodes of `events.txt` began to drain.

Slurm records a drained node once its last job has ended (`update_node` and `make_node_idle` in
src/slurmctld/node_mgr.c), but gives it no job from the command on. No record has the time of the command: it was
after the last start on the node and before its event. This takes the middle, which is off by at most half of that.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from topolane.slurm.accounting_jobs import AccountedRun
from topolane.slurm.inspection import names_in

CLEANED_UP = 2
"""The most seconds from the end of a job to the event of its drained node."""
Outage = dict[str, Any]
"""Nodes out of service: `nodes`, `from` and `until` in seconds since second 0, `ends_jobs`."""


def begun(outages: Sequence[Outage], runs: Iterable[AccountedRun], zero: int) -> list[Outage]:
    """The outages, those of drained nodes from when they are taken to have begun to drain.

    Nodes that came back together were drained together, unless a job started in between.
    """
    starts = _last_starts([row for row in outages if not row["ends_jobs"]], runs, zero)
    groups: dict[object, list[Outage]] = defaultdict(list)
    for row in outages:
        if not row["ends_jobs"] and row["until"] is not None:
            groups[row["until"]].append(row)

    def began(row: Outage) -> int:
        start = starts[id(row)]
        group = [row] if row["until"] is None else groups[row["until"]]
        # A node without a job was drained at its event.
        idle = [each["from"] for each in group if id(each) not in starts]
        if at_once := [time for time in idle if start <= time <= row["from"]]:
            return int(min(at_once))
        last = max(starts[id(each)] for each in group if id(each) in starts)
        first = min(each["from"] for each in group)
        if last > first:
            last, first = start, row["from"]
        return int(last + first) // 2

    return [{**row, "from": began(row)} if id(row) in starts else row for row in outages]


def _last_starts(outages: Sequence[Outage], runs: Iterable[AccountedRun], zero: int) -> dict[int, int]:
    """The last start on the nodes of each outage that began when a job on them ended, by id of the outage."""
    of_node: dict[str, list[Outage]] = defaultdict(list)
    for row in outages:
        for name in names_in(row["nodes"]):
            of_node[name].append(row)
    if not of_node:
        return {}
    expanded = functools.lru_cache(maxsize=65_536)(names_in)
    starts: dict[int, int] = {}
    ended: set[int] = set()
    for run in runs:
        start, end = run.start - zero, run.start + run.run - zero
        for name in expanded(run.hosts):
            for row in of_node.get(name, ()):
                if start < row["from"]:
                    starts[id(row)] = max(starts.get(id(row), start), start)
                    if row["from"] - CLEANED_UP <= end <= row["from"]:
                        ended.add(id(row))
    return {key: start for key, start in starts.items() if key in ended}
