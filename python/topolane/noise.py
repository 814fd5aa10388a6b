"""The noise of a log: how far differences of waits between two runs of the same jobs would move under another draw of it.

A moving-block bootstrap (Kuensch 1989) over the times of submission. Waits of jobs that are submitted one after another depend on each
other, so whole stretches of the log are drawn: overlapping blocks of two days, or of a week from ten weeks on. Both runs keep
the same jobs in each draw.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import TYPE_CHECKING

from topolane.units import DAY, HOUR

if TYPE_CHECKING:
    import polars

DRAWS = 1000
SEED = 1989
LEAST_BLOCKS = 4
"""A log of fewer blocks has no interval."""
MEASURES = ("mean_wait", "mean_wait_by_work", "mean_turnaround")


@dataclasses.dataclass(frozen=True)
class Noise:
    """The 95 % intervals of differences, as distances from the difference itself; in seconds."""

    block: float
    """The length of a block."""
    around: dict[str, tuple[float, float]]


def block_of(span: float) -> float | None:
    """The length of blocks for a log over these seconds; None if it is too short to say how noisy it is."""
    block = 7 * DAY if span >= 70 * DAY else 2 * DAY
    return block if span >= LEAST_BLOCKS * block else None


def between(one: polars.DataFrame, other: polars.DataFrame) -> Noise | None:
    """The noise of the differences between two tables of jobs, over the jobs of both; None if the log is too short."""
    import polars as pl

    pairs = _by_job(one).join(_by_job(other), "job_id", suffix="_other").sort("job_id")
    if pairs.is_empty():
        return None
    hour = ((pl.col("time") - pl.col("time").min()) // HOUR).cast(pl.Int64)
    names = [f"{name}{run}" for run in ("", "_other") for name in ("wait", "turnaround", "work", "weighted")]
    sums = (
        pairs.group_by(hour.alias("hour"))
        .agg(pl.len().cast(pl.Float64).alias("jobs"), pl.col(names).sum())
        .sort("hour")
    )
    hours = int(sums["hour"][-1]) + 1
    block = block_of(hours * HOUR)
    if block is None:
        return None
    long = int(block / HOUR)
    every = pl.DataFrame({"hour": pl.arange(-1, hours, eager=True)})
    until = every.join(sums, "hour", "left", maintain_order="left").fill_null(0.0).select("jobs", *names)
    until = until.select(pl.all().cum_sum())
    blocks = until.slice(long) - until.slice(0, hours + 1 - long)
    each = -(-hours // long)
    drawn = blocks[_picks(len(blocks), DRAWS * each)].with_columns(
        pl.arange(0, DRAWS * each).floordiv(each).alias("draw")
    )
    totals = drawn.group_by("draw", maintain_order=True).sum().filter(pl.col("jobs") > 0)
    found = totals.select(
        ((pl.col("wait_other") - pl.col("wait")) / pl.col("jobs")).alias("mean_wait"),
        (_ratio("weighted_other", "work_other") - _ratio("weighted", "work")).alias("mean_wait_by_work"),
        ((pl.col("turnaround_other") - pl.col("turnaround")) / pl.col("jobs")).alias("mean_turnaround"),
    )
    around = {}
    for name in MEASURES:
        values = found[name] - found[name].mean()
        ends = [values.quantile(share, "linear") or 0.0 for share in (0.025, 0.975)]
        # The rounding of sums is no noise.
        around[name] = (round(ends[0], 3) + 0.0, round(ends[1], 3) + 0.0)
    return Noise(block, around)


@functools.lru_cache(maxsize=1)
def _picks(blocks: int, count: int) -> polars.Series:
    """Drawn blocks: always the same, so that a log has one interval, and all policies are compared on the same draws."""
    import polars as pl

    return pl.Series(random.Random(SEED).choices(range(blocks), k=count), dtype=pl.UInt32)


def _ratio(above: str, below: str) -> polars.Expr:
    import polars as pl

    return pl.when(pl.col(below) > 0).then(pl.col(above) / pl.col(below)).otherwise(0.0)


def _by_job(jobs: polars.DataFrame) -> polars.DataFrame:
    """A row for each job, over all its runs."""
    import polars as pl

    work = pl.col("requested_number_of_resources") * pl.col("execution_time")
    rows = jobs.select(
        "job_id",
        pl.col("submission_time").alias("time"),
        pl.col("waiting_time").alias("wait"),
        pl.col("turnaround_time").alias("turnaround")
        if "turnaround_time" in jobs.columns
        else (pl.col("finish_time") - pl.col("submission_time")).alias("turnaround"),
        work.alias("work"),
        (work * pl.col("waiting_time")).alias("weighted"),
    )
    rows = rows.with_columns(pl.all().exclude("job_id").cast(pl.Float64))
    if rows["job_id"].is_unique().all():
        return rows
    sums = pl.col("wait", "turnaround", "work", "weighted").sum()
    return rows.sort("job_id", "time").group_by("job_id").agg(pl.col("time").min(), sums)
