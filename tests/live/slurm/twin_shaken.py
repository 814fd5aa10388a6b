"""Measures how close a replay comes to itself if times change by a second. No model of Slurm can be expected
to come closer to the records.
"""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import twin_table
from measure import Row
from twin_command import replayed

Jobs = list[dict[str, Any]]


def rows(log: Path, how: Sequence[str | Path], nodes: int, interval: float, seeds: int) -> list[Row]:
    """The measures of shaken replays under the queue `slurm`, each compared with the replay that is not
    shaken. They have no targets: they show how close a model can come.

    log: a log with its configuration next to it; how: options for machine and policy. Raises BenchError,
    OSError and ValueError.
    """
    jobs = read(log)
    config = json.loads(config_of(log).read_text())
    itself = replayed(log, "slurm", how)
    made: list[Row] = []
    for shake, each in shakes(jobs, config, seeds).items():
        found = []
        for other_jobs, other_config in each:
            other = log.with_name("shaken.csv")
            write(other, other_jobs, other_config)
            found.append(twin_table.closeness(itself, replayed(other, "slurm", how), nodes, interval))
        made += twin_table.rows(f"a replay and itself, {shake}", found, interval, with_targets=False)
    return made


def write(log: Path, jobs: Jobs, config: dict[str, Any]) -> None:
    """Writes a log and its configuration for the queue `slurm`."""
    with open(log, "w", newline="") as file:
        writer = csv.DictWriter(file, list(jobs[0]))
        writer.writeheader()
        writer.writerows(jobs)
    config_of(log).write_text(json.dumps(config))


def shakes(
    jobs: Jobs, config: dict[str, Any], seeds: int
) -> dict[str, Iterator[tuple[Jobs, dict[str, Any]]]]:
    """By name: the changed jobs and configurations to replay instead of these."""
    never = config.get("never_started", [])
    numbers = range(1, seeds + 1)
    return {
        "all submissions 1 s later": iter([(_later(jobs), config | {"never_started": _later(never)})]),
        "runs 1 s longer or shorter": ((_other_runs(jobs, seed), config) for seed in numbers),
        "turns some seconds earlier": (
            (jobs, config | {"begin": config.get("begin", 0) - seed}) for seed in numbers
        ),
    }


def in_their_seconds(jobs: Jobs, seed: int) -> Jobs:
    """The jobs at random times that the records, which have whole seconds, cannot distinguish from the recorded ones.

    Jobs submitted in the same second keep their order.
    """
    draw = random.Random(seed)
    made: Jobs = []
    for second, each in itertools.groupby(jobs, key=lambda job: float(job["submit"])):
        same = list(each)
        parts = sorted(draw.random() for _ in same)
        made += [
            job | {"submit": second + part, "run": max(float(job["run"]) + draw.random() - draw.random(), 1)}
            for job, part in zip(same, parts)
        ]
    return made


def read(log: Path) -> Jobs:
    """The jobs of a log. Raises OSError."""
    with open(log, newline="") as file:
        return list(csv.DictReader(file))


def _later(jobs: Jobs) -> Jobs:
    return [job | {"submit": float(job["submit"]) + 1} for job in jobs]


def _other_runs(jobs: Jobs, seed: int) -> Jobs:
    draw = random.Random(seed)
    return [job | {"run": max(float(job["run"]) + draw.choice((-1, 1)), 1)} for job in jobs]


def config_of(log: Path) -> Path:
    """The file with the configuration of the queue `slurm` next to a log."""
    return log.with_name(f"{log.stem}-slurm.json")
