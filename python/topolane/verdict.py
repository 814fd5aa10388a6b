"""The verdict of a comparison: what each policy gains and costs against one of them, and whether that exceeds the noise of the log."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from topolane import noise
from topolane.units import DAY, HOUR, MINUTE, duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.noise import Noise
    from topolane.run import Run

SHARING, WAIT, WEIGHTED = "jobs_sharing_links", "mean_wait", "mean_wait_by_work"
USE, TURNAROUND = "utilization_while_waiting", "mean_turnaround"
LEAST_WAIT = MINUTE
"""Smaller differences of waits are ties."""
LEAST_SHARE = 0.01
"""Smaller differences are ties: of utilisation, and of jobs that share links as a share of all jobs."""


LEAST_FOLDED = 0.005
"""Runs whose utilisation differs by less, or whose makespan by a smaller share, count as the same in a table."""


def are_alike(measure: str, values: Sequence[float], texts: Sequence[str]) -> bool:
    """Whether a table may fold a measure of runs into one line. measure: its key in the summary; texts: the values as printed."""
    if len(set(texts)) == 1:
        return True
    if measure not in ("utilization", "makespan"):
        return False
    whole = 1.0 if measure == "utilization" else max(values)
    return max(values) - min(values) <= LEAST_FOLDED * whole


@dataclasses.dataclass(frozen=True)
class Difference:
    """A measure under the reference and under another policy. Times are in seconds."""

    before: float
    after: float
    low: float | None
    """Of the 95 % interval of the change; None if the measure has none."""
    high: float | None
    is_tie: bool

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclasses.dataclass(frozen=True)
class Trade:
    """What one run gains and costs against the reference."""

    number: int
    """Of the run among those compared."""
    label: str
    scenario: str
    has_network: bool
    differences: dict[str, Difference]
    fewer_jobs: int = 0
    """Jobs that it never starts and the reference does. Without them the others wait less, so waits do not compare."""
    variants: tuple[Trade, ...] = ()
    """The same rule with an assumed speed-up."""

    @property
    def fewer(self) -> float:
        """How many jobs fewer share links; 0 for a tie."""
        sharing = self.differences[SHARING]
        return 0.0 if sharing.is_tie else -sharing.change

    def longer(self, measure: str) -> float:
        """By how much a time is longer; 0 for a tie."""
        found = self.differences[measure]
        return 0.0 if found.is_tie else found.change

    @property
    def gains(self) -> bool:
        """Whether anything is better, for the same jobs."""
        if self.fewer_jobs:
            return False
        times = (WEIGHTED, TURNAROUND) if self.has_network else (WEIGHTED,)
        return self.fewer > 0 or any(self.longer(name) < 0 for name in times)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The policies of a comparison against one of them, the best trade first."""

    reference: str
    trades: tuple[Trade, ...]
    block: float | None
    """Length of the blocks of the bootstrap in seconds; None if the log is too short for an interval."""
    least_wait: float

    @property
    def sentence(self) -> str:
        """The best trade, or that there is none."""
        best = self.trades[0]
        if not best.gains and len(self.trades) > 1:
            return f"{self.reference}: no other policy gains anything over it."
        lead = f"{best.label}, the best trade" if len(self.trades) > 1 else best.label
        return f"{lead}: {self._words(best)}{self._variants(best)}."

    @property
    def numbers(self) -> str:
        """The numbers behind the sentence."""
        best = self.trades[0].differences
        pairs = [("wait", WAIT), ("weighted wait", WEIGHTED)]
        if self.trades[0].has_network:
            pairs[0] = ("wait + run", TURNAROUND)
        texts = [
            f"{name} {best[key].before / HOUR:,.2f} -> {best[key].after / HOUR:,.2f} h{_tie(best[key])}"
            for name, key in pairs
        ]
        use = best[USE]
        texts.append(f"utilisation while jobs wait {percent(use.before)} -> {percent(use.after)}{_tie(use)}")
        return f"{self.reference} -> {self.trades[0].label}: {'; '.join(texts)}"

    @property
    def lines(self) -> list[str]:
        """A line for each other policy."""
        others = self.trades[1:] if self.trades[0].gains or len(self.trades) == 1 else self.trades
        return [f"{trade.label}: {self._words(trade)}{self._variants(trade)}." for trade in others]

    @property
    def rule(self) -> str:
        """What counts as a tie."""
        least = duration(self.least_wait).replace(".0 ", " ")
        if self.block is None:
            return f"A tie: waits differ by less than {least}. The log is too short to say how noisy it is."
        return (
            f"A tie: waits differ by less than {least}, or by no more than the noise of this log (95 % interval of "
            f"{noise.DRAWS:,} draws of its blocks of {plural(round(self.block / DAY), 'day')})."
        )

    def facts(self, number: int) -> dict[str, Any]:
        """The verdict on a run, for JSON."""
        every = {each.number: each for trade in self.trades for each in (trade, *trade.variants)}
        trade = every.get(number)
        return {
            "against": self.reference,
            "sentence": self.sentence if trade is None else f"{trade.label}: {self._words(trade)}.",
            "best_trade": trade is self.trades[0] and trade.gains,
            "block": self.block,
            "least_wait": self.least_wait,
            "differences": {}
            if trade is None
            else {
                name: {
                    "difference": found.change,
                    "low": found.low,
                    "high": found.high,
                    "tie": found.is_tie,
                }
                for name, found in trade.differences.items()
            },
        }

    def _words(self, trade: Trade) -> str:
        parts = []
        if trade.fewer_jobs:
            parts.append(f"{plural(trade.fewer_jobs, 'job')} never start, so do not compare its waits")
        if trade.has_network and not trade.fewer_jobs:
            parts.append(self._time(trade.differences[TURNAROUND], ("end", "later", "sooner"), "wait + run"))
        parts.append(self._sharing(trade))
        if not trade.fewer_jobs:
            weighted = trade.differences[WEIGHTED]
            parts.append(self._time(weighted, ("wait", "longer", "less"), "weighted by node-hours"))
        words = "; ".join(parts)
        return words if trade.scenario == "none" else f"{words}; assumed: {_assumed(trade.scenario)}"

    def _sharing(self, trade: Trade) -> str:
        found = trade.differences[SHARING]
        if found.is_tie:
            return f"as many jobs share links as under {self.reference}"
        if found.after == 0:
            return f"no job shares links ({found.before:,.0f} did under {self.reference})"
        return f"{plural(round(found.after), 'job')} {'shares' if found.after == 1 else 'share'} links ({found.before:,.0f} under {self.reference})"

    def _time(self, found: Difference, words: tuple[str, str, str], what: str) -> str:
        verb, more, less = words
        same = "as long" if verb == "wait" else "as soon"
        if found.change == 0 and not found.low and not found.high:
            return f"jobs {verb} {same} ({what}), a tie"
        if found.is_tie:
            apart = _range(found, signed=True) or f"{duration(abs(found.change))} apart"
            return f"jobs {verb} {same} ({what}: {apart}), a tie"
        how = f"jobs {verb} {duration(abs(found.change))} {more if found.change > 0 else less} ({what})"
        return f"{how}, more than the noise of this log ({_range(found)})" if found.low is not None else how

    def _variants(self, trade: Trade) -> str:
        found = []
        for variant in trade.variants:
            change = variant.longer(WEIGHTED)
            size = duration(abs(change))
            how = "as long" if change == 0 else f"{size} {'longer' if change > 0 else 'less'}"
            found.append(f"; if {_assumed(variant.scenario)}, jobs wait {how}")
        return "".join(found)


def of(runs: Sequence[Run], reference: tuple[str, str] | None = None, least: float = 0.0) -> Verdict | None:
    """The verdict on runs of the same jobs; None for a single one. On a network, runs without it do not count.

    reference: policy and queue of the run to compare with, by default the first. least: seconds below which differences
    of mean waits mean nothing.
    """
    numbers = [number for number, run in enumerate(runs) if run.network] or list(range(len(runs)))
    first = next(
        (number for number in numbers if (runs[number].policy, runs[number].queue) == reference), numbers[0]
    )
    base, others = runs[first], [number for number in numbers if number != first]
    if not others:
        return None
    with_queue = len({runs[number].queue for number in numbers}) > 1
    bound = max(LEAST_WAIT, least)
    found, block = [], None
    for number in others:
        between = noise.between(base.jobs, runs[number].jobs)
        block = between.block if between else block
        found.append(_trade(number, base, runs[number], between, bound, with_queue=with_queue))
    return Verdict(_name(base, with_queue=with_queue), _ranked(_grouped(found, runs)), block, bound)


def _trade(
    number: int, base: Run, run: Run, between: Noise | None, bound: float, *, with_queue: bool
) -> Trade:
    differences = {}
    for name in (WAIT, WEIGHTED, TURNAROUND):
        before, after = base.summary[name], run.summary[name]
        change = after - before
        low = high = None
        if between is not None:
            below, above = between.around[name]
            low, high = round(change + below, 3), round(change + above, 3)
        holds_zero = low is not None and high is not None and low <= 0 <= high
        differences[name] = Difference(before, after, low, high, abs(change) < bound or holds_zero)
    jobs = max(base.summary["jobs"], 1)
    for name, least in ((SHARING, LEAST_SHARE * jobs), (USE, LEAST_SHARE)):
        before, after = base.summary[name], run.summary[name]
        differences[name] = Difference(
            before, after, None, None, before == after or abs(after - before) < least
        )
    label = _name(run, with_queue=with_queue)
    missing = max(_never_start(run) - _never_start(base), 0)
    return Trade(number, label, run.scenario, run.network is not None, differences, missing)


def _never_start(run: Run) -> int:
    reasons = run.summary["left_out"].items()
    return sum(
        jobs for reason, jobs in reasons if reason.startswith(("refused by the policy", "still waiting"))
    )


def _name(run: Run, *, with_queue: bool) -> str:
    return f"{run.label}, {run.queue}" if with_queue else run.label


def _grouped(trades: Sequence[Trade], runs: Sequence[Run]) -> list[Trade]:
    """The trades with those of the same rule under an assumed speed-up as their variants."""
    groups: dict[tuple[str, str], list[Trade]] = {}
    for trade in trades:
        groups.setdefault((runs[trade.number].policy, runs[trade.number].queue), []).append(trade)
    found = []
    for group in groups.values():
        plain = next((trade for trade in group if trade.scenario == "none"), None)
        if plain is None:
            found += group
        else:
            others = tuple(trade for trade in group if trade is not plain)
            found.append(dataclasses.replace(plain, variants=others))
    return found


def _ranked(trades: Sequence[Trade]) -> tuple[Trade, ...]:
    """The best trade first. On a network it has the shortest time from submission to end, as far as that exceeds the noise. Of those
    left, it is the one that costs least wait, among those with at least half of the largest gain. Assumed speed-ups come last.
    """
    most = max((trade.fewer for trade in trades if trade.gains), default=0.0)
    soonest = min((trade.longer(TURNAROUND) for trade in trades if trade.gains), default=0.0)

    def place(trade: Trade) -> tuple[float, ...]:
        time = trade.longer(TURNAROUND) if trade.has_network else 0.0
        found = trade.differences[TURNAROUND]
        if trade.has_network and found.low is not None and found.low <= soonest:
            time = soonest
        is_far = not trade.has_network and most > 0 and trade.fewer < most / 2
        assumed = trade.scenario != "none"
        return (assumed, not trade.gains, time, is_far, trade.longer(WEIGHTED), -trade.fewer, trade.number)

    return tuple(sorted(trades, key=place))


def _assumed(scenario: str) -> str:
    if scenario in ("v1", "v2"):
        return f"isolated jobs run faster by {scenario.upper()}"
    return f"isolated jobs run {scenario} % faster"


def _tie(found: Difference) -> str:
    return " (tie)" if found.is_tie else ""


def _range(found: Difference, *, signed: bool = False) -> str:
    """The interval as text, in one unit; without the sign of a shorter time unless it is asked for. Empty if there is none."""
    if found.low is None or found.high is None:
        return ""
    low, high = found.low, found.high
    if not signed:
        low, high = sorted((abs(low), abs(high)))
    size = max(abs(low), abs(high)) if signed else abs(found.change)
    unit, name = (HOUR, "h") if size >= 59.5 * MINUTE else (MINUTE, "min")
    sign = "+" if signed else ""
    ends = [f"{value / unit:{sign},.1f}".replace("-", "−") for value in (low, high)]
    return f"95 %: {ends[0]} to {ends[1]} {name}"
