"""Runs a hundred groups under the default scheduler, Kueue in front of it, and topolane-scheduler, on one
cluster, one after another.

The groups, their arrival times and their run times are the same for all. Results come from the API server:
which pod was on which node, and when.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
from collections.abc import Sequence

import groups
from cluster import Cluster, Shape, cluster, load_text, say, start_kueue
from groups import Group, Record
from kueue_controller import missing_kueue
from measure import Options, Result, table

ROOM = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}
WHOLE_NODE = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"}
SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 10, 12, 16, 20, 24)
"""The sizes of groups in nodes. A size that is listed twice is drawn twice as often."""
PATIENCE = 30.0
"""Seconds without a start after which the waiting groups are given up."""


def drawn(options: Options, name: str) -> list[Group]:
    """Random groups in order of arrival."""
    draw = random.Random(options.seed)
    made, at = [], 0.0
    for number in range(options.groups):
        at += draw.expovariate(1 / options.every)
        runs = options.runs * draw.uniform(0.5, 1.5)
        made.append(Group(f"{name}-{number}", draw.choice(SIZES), WHOLE_NODE, arrives=at, runs=runs))
    return made


@dataclasses.dataclass(frozen=True)
class Row:
    """The results of the groups under one system."""

    system: str
    started: int
    groups: int
    in_parts: int
    """Groups that had a pod on a node for over a second before their last pod had one."""
    sharing: int
    """Groups whose links another group may have used at the same time."""
    pairs: int
    hops: float
    wait: float
    longest_wait: float
    pods_per_minute: float


def play(plane: Cluster, wanted: Sequence[Group], system: str, policy: str) -> Row:
    """Submits the groups at their times and waits for their ends."""
    name = f"{system} {policy}".strip()
    say(f"{name}: {len(wanted)} groups")
    record = Record(plane.api, wanted)
    begin = time.monotonic()
    coming, running = list(reversed(wanted)), {group.name: group for group in wanted}
    created: dict[str, float] = {}
    last_change = begin
    while running:
        now = time.monotonic()
        if coming and coming[-1].arrives <= now - begin:
            group = coming.pop()
            created[group.name] = now
            groups.submit(plane.api, group, system, policy)
            last_change = now
            continue
        for one in list(running.values()):
            life = record.lives[one.name]
            if life.whole and now - life.whole >= one.runs:
                life.ended = time.monotonic()
                plane.api.delete(f"{groups.JOBS}/{one.name}")
                del running[one.name]
                last_change = now
        if not coming and now - last_change > PATIENCE + max(group.runs for group in wanted):
            say(
                f"{name}: {len(running)} groups did not start and are given up; {why_waits(plane, next(iter(running)))}"
            )
            break
        time.sleep(0.02)
    end = time.monotonic()
    record.stop()
    lives = {group.name: record.lives[group.name] for group in wanted}
    for life in lives.values():
        life.ended = life.ended or end
    plane.clear()
    return row(plane.shape, name, wanted, lives, created, end - begin)


def why_waits(plane: Cluster, group: str) -> str:
    """The reasons in the conditions of a group's pods."""
    path = f"/api/v1/namespaces/default/pods?labelSelector={groups.GROUP}%3D{group}"
    pods = plane.api.items(path)
    said = {
        condition.get("message", "")
        for pod in pods
        for condition in pod["status"].get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    }
    return f"{group} has {len(pods)} pods: {'; '.join(sorted(said)) or 'no reason is given'}"


def row(
    shape: Shape,
    name: str,
    wanted: Sequence[Group],
    lives: dict[str, groups.Life],
    created: dict[str, float],
    seconds: float,
) -> Row:
    whole = {key: life for key, life in lives.items() if life.whole}
    waits = [life.whole - created[key] for key, life in whole.items()] or [0.0]
    shared = groups.shared(shape, list(lives.values()))
    pods = sum(group.size for group in wanted if group.name in whole)
    return Row(
        name, len(whole), len(wanted),
        sum(life.begun > 0 and (not life.whole or life.whole - life.begun > 1) for life in lives.values()),
        shared.groups, shared.pairs,
        statistics.fmean(groups.hops(shape, list(life.nodes.values())) for life in whole.values()) if whole else 0.0,
        statistics.fmean(waits), max(waits), pods / seconds * 60,
    )  # fmt: skip


HEADINGS = [
    "system", "groups started", "in parts over 1 s", "shared links with others", "shared uplinks", "mean hops",
    "mean wait (s)", "longest wait (s)", "pods/minute",
]  # fmt: skip


def cells(row: Row) -> list[str]:
    return [
        row.system, f"{row.started} of {row.groups}", str(row.in_parts), str(row.sharing), str(row.pairs),
        f"{row.hops:.2f}", f"{row.wait:.1f}", f"{row.longest_wait:.1f}", f"{row.pods_per_minute:.0f}",
    ]  # fmt: skip


def measure(options: Options) -> Result:
    """Runs all systems and prints a table that compares them."""
    systems = options.systems.split(",")
    if unknown := set(systems) - set(groups.SYSTEMS):
        raise ValueError(
            f"--systems: there is no system {', '.join(sorted(unknown))}; there are {', '.join(groups.SYSTEMS)}"
        )
    if "kueue" in systems and (why := missing_kueue()):
        say(f"{why}; it is skipped")
        systems.remove("kueue")
    rows = []
    with cluster(Shape(options.nodes, 8, 4, ROOM)) as plane:
        plane.start("default-scheduler", None)
        if "kueue" in systems:
            start_kueue(plane)
        plane.start("topolane-scheduler", {"policy": "isolated", "groupTimeoutSeconds": 10})
        for system in systems:
            for policy in options.policies.split(",") if system == "topolane" else [""]:
                name = f"{system}-{policy}".strip("-")
                rows.append(play(plane, drawn(options, name), system, policy))
    print(table([HEADINGS, *map(cells, rows)]))
    print(load_text())
    missed = [row for row in rows if row.system == "topolane isolated" and (row.sharing or row.in_parts)]
    for row in missed:
        print(f"MISSED: under {row.system} {row.sharing} groups shared links, {row.in_parts} were in parts")
    return Result(facts=[dataclasses.asdict(row) for row in rows], failed=bool(missed))
