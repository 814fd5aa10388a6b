"""Turns the results of systems into figures with targets."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from measure import Row
from slurm_sites import STOCK

CONTROL = "stock again"
"""A second run of the stock system, whose difference from the first shows the noise of all ratios."""
LIMITS = {"isolated": (5.0, 200.0), "dedicated": (50.0, 2000.0)}
"""Limits of the plugin's time in a call in microseconds: median and 99th percentile."""
CYCLE_LIMIT = 1.10
STARTS_LIMIT = 0.95


@dataclasses.dataclass(frozen=True)
class Cycle:
    """One full cycle of backfill."""

    seconds: float
    """Seconds by sdiag, without the pauses in which backfill releases the locks."""
    processor: float
    """Processor seconds of the thread."""
    tried: int
    """The number of jobs tried."""

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.processor:.2f} s of processor time, {self.tried:,} jobs tried"


@dataclasses.dataclass(frozen=True)
class Rate:
    """The rate of starts while jobs end."""

    starts: float
    """Starts per second."""
    slurmctld: float
    """The cores that slurmctld used."""
    everything: float
    """The cores in use on the whole machine."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """One run of one system."""

    system: str
    calls: dict[str, dict[str, int]]
    """The increase of the plugin's counters in each phase."""
    longest: int
    """Nanoseconds of the longest call in the turn."""
    cycles: list[Cycle]
    watched: tuple[int, float]
    """Number and total seconds of all cycles in the backfill phase."""
    starts: Rate | None
    allocations: Rate | None
    """The rate for jobs that launch nothing."""

    @property
    def cycle(self) -> float:
        return statistics.median(cycle.seconds for cycle in self.cycles)

    @property
    def processor(self) -> float:
        return statistics.median(cycle.processor for cycle in self.cycles)


def quantile(counted: dict[str, int], share: float) -> float:
    """The nanoseconds that this fraction of the calls did not exceed. The plugin counts calls between limits
    (`under_N_nanoseconds`); between two limits, the logarithm of the time is assumed to be uniform.
    """
    counts = sorted(
        (int(name.split("_")[1]), count) for name, count in counted.items() if name.startswith("under_")
    )
    wanted = share * sum(count for _, count in counts)
    if not wanted:
        return math.nan
    passed = 0
    lower = counts[0][0] / 2
    for bound, count in counts:
        if count and passed + count >= wanted:
            return float(lower * (bound / lower) ** ((wanted - passed) / count))
        passed += count
        lower = bound
    return math.nan


def rows_of(turns: Sequence[Turn]) -> list[Row]:
    """The figures. Ratios compare a turn with the stock turn of its round."""
    names = list(dict.fromkeys(turn.system for turn in turns))
    of = {name: [turn for turn in turns if turn.system == name] for name in names}
    rows = [row for name in names if name not in (STOCK.name, CONTROL) for row in _calls(name, of[name])]
    for name in names:
        tried = tuple(float(cycle.tried) for turn in of[name] for cycle in turn.cycles)
        spread = tuple(cycle.seconds / turn.cycle for turn in of[name] for cycle in turn.cycles)
        rows.append(Row("backfill", f"{name}: jobs tried in a cycle", "", tried))
        rows.append(
            Row("backfill", f"{name}: single cycles against the median of their turn", "times", spread)
        )
    rows += _against("backfill", "a cycle", "s", of, lambda turn: turn.cycle, CYCLE_LIMIT, False)
    rows += _against(
        "backfill", "processor time of a cycle", "s", of, lambda turn: turn.processor, None, False
    )
    for what, title, limit in (
        ("starts", "starts", STARTS_LIMIT),
        ("allocations", "starts without a launch", None),
    ):
        rates = {name: [getattr(turn, what) for turn in of[name]] for name in names}
        if all(rate for each in rates.values() for rate in each):
            rows += _against("starts", title, "1/s", rates, lambda rate: rate.starts, limit, True)
            for name, each in rates.items():
                for who in ("slurmctld", "everything"):
                    values = tuple(getattr(rate, who) for rate in each)
                    rows.append(Row("starts", f"{name}: cores in use by {who} ({title})", "", values))
    return rows


def _against(
    figure: str,
    what: str,
    unit: str,
    of: Mapping[str, Sequence[Any]],
    value: Callable[[Any], float],
    limit: float | None,
    more: bool,
) -> list[Row]:
    """Rows with a value of all systems, and its ratio to stock."""
    rows = [Row(figure, f"{name}: {what}", unit, tuple(map(value, turns))) for name, turns in of.items()]
    for name, turns in of.items():
        if name != STOCK.name:
            ratios = tuple(value(turn) / value(stock) for turn, stock in zip(turns, of[STOCK.name]))
            judged = None if name == CONTROL else limit
            rows.append(Row(figure, f"{name}: {what} against stock", "times", ratios, judged, more))
    return rows


def _calls(name: str, turns: Sequence[Turn]) -> list[Row]:
    """Rows about the plugin's time in a call, and about the number of calls."""
    rows = []
    limits = LIMITS.get(name, (None, None))
    for phase in turns[0].calls:
        counted = [turn.calls[phase] for turn in turns]
        calls = sum(each.get("calls", 0) for each in counted)
        if not calls:
            continue
        for share, title, limit in ((0.5, "median", limits[0]), (0.99, "p99", limits[1])):
            values = tuple(quantile(each, share) / 1000 for each in counted)
            what = f"{name}: the plugin in a call, {phase} ({calls:,} calls): {title}"
            # While jobs start, slurmds use the same cores, and the clock includes slurmctld's waits for a
            # core.
            rows.append(Row("call", what, "us", values, limit if phase == "backfill" else None))
    rows.append(Row("call", f"{name}: longest call", "us", tuple(turn.longest / 1000 for turn in turns)))
    planned = [(turn, turn.calls["backfill"]) for turn in turns]
    each_cycle = tuple(counted["calls"] / max(turn.watched[0], 1) for turn, counted in planned)
    rows.append(Row("call", f"{name}: calls in a cycle of backfill", "", each_cycle))
    refused = tuple(100 * counted["refused"] / max(counted["calls"], 1) for _, counted in planned)
    rows.append(Row("call", f"{name}: of them refused", "%", refused))
    part = tuple(100 * counted["nanoseconds"] / 1e9 / max(turn.watched[1], 1e-9) for turn, counted in planned)
    rows.append(Row("call", f"{name}: the plugin's part of the cycles", "%", part))
    faults = tuple(
        float(sum(n for phase in turn.calls.values() for key, n in phase.items() if key.startswith("stock_")))
        for turn in turns
    )
    rows.append(Row("call", f"{name}: calls left to stock for a fault", "", faults))
    return rows
