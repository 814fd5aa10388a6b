"""Synthetic runs on a network, for the report: slowed jobs and loaded links, drawn from a seed."""

from __future__ import annotations

import dataclasses
import itertools
import random

import polars
from topolane.report import ReportedRun

SCHEMA = {
    "link": polars.Int64,
    "direction": polars.String,
    "level": polars.String,
    "group": polars.Int64,
    "switch": polars.Int64,
    "parent": polars.Int64,
    "cable": polars.Int64,
    "bandwidth": polars.Float64,
    "mean_load": polars.Float64,
}
Missing = tuple[int, int, int, int, int]  # level, group, switch, parent, cable


def links_of(
    tree: tuple[int, ...],
    parents: tuple[int, ...],
    cables: tuple[int, ...],
    *,
    seed: int = 1,
    most: float = 0.3,
    missing: tuple[Missing, ...] = (),
) -> polars.DataFrame:
    """`links.csv` of PGFT(tree; parents; cables) with loads up to `most`, a tenth of them none."""
    draw, rows, number, switches = random.Random(seed), [], 0, 1
    groups = 1
    for children in tree:
        groups *= children
    for level, children in enumerate(tree):
        sides = (range(groups), range(switches), range(parents[level]), range(cables[level]))
        for place in itertools.product(*sides):
            for direction in ("up", "down"):
                load = 0.0 if draw.random() < 0.1 else round(draw.uniform(1e-6, most), 6)
                if (level, *place) not in missing:
                    rows.append((number, direction, str(level), *place, 4e9, load))
            number += 1
        groups, switches = groups // children, switches * parents[level]
    return polars.DataFrame(rows, schema=SCHEMA, orient="row")


def on_network(
    run: ReportedRun, links: polars.DataFrame, *, slowed: bool = True, seed: int = 2
) -> ReportedRun:
    """`run` with its jobs of several nodes slowed down, or not, and these links."""
    draw = random.Random(seed)
    nodes = run.jobs["requested_number_of_resources"].to_list()
    pattern = [draw.choice(("pairs", "stencil4d")) for _ in nodes]
    stretch = [
        round(1.0 + max(0.0, draw.gauss(0.05, 0.05)), 6) if slowed and each > 1 else 1.0 for each in nodes
    ]
    jobs = run.jobs.with_columns(pattern=polars.Series(pattern), contention=polars.Series(stretch))
    several = jobs.filter(polars.col("requested_number_of_resources") > 1)
    lost = (
        jobs["requested_number_of_resources"] * jobs["execution_time"] * (1.0 - 1.0 / jobs["contention"])
    ).sum()
    suffered = {
        "mean": several["contention"].mean(),
        "max": several["contention"].max(),
        "node_seconds_lost": lost,
    }
    turnaround = (jobs["finish_time"] - jobs["submission_time"]).mean()
    summary = {**run.summary, "contention": suffered, "mean_turnaround": turnaround}
    return dataclasses.replace(run, jobs=jobs, links=links, network="congestion", summary=summary)
