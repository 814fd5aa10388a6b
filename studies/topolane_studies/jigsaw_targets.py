"""What we want of rules that give jobs links of their own, and whether they reach it. No paper claims it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from topolane_studies.jigsaw import HALF, HALF_MOVES, JIGSAW, MOVES, STRICT, JigsawLoad, interval, mean_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from topolane_studies.jigsaw import JigsawResults


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to give links, by the label of its row, and what it is to reach: ratios to first fit."""

    name: str
    label: str
    use_of_traces: float
    use_of_synthetic: float
    wait: float | None
    break_even: float | None
    wait_by_work: float | None = None
    bandwidth_share: float | None = None
    moves: float | None = None


MODES = (
    Mode("full bandwidth, no moves", STRICT, 0.97, 0.97, 1.12, 2.0, wait_by_work=1.10),
    Mode("full bandwidth, few moves", MOVES, 0.985, 0.98, 1.03, 1.0, wait_by_work=1.05, moves=0.05),
    Mode("at least half", HALF, 0.995, 0.99, 1.02, 0.0, bandwidth_share=0.95),
    Mode("at least half, few moves", HALF_MOVES, 0.995, 0.99, None, None, wait_by_work=1.02, moves=0.05),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """One figure that is to be reached on all loads of a kind."""

    what: str
    target: str
    ours: str
    verdict: Literal["met", "failed", "not measured"]
    why: str = ""


def targets(results: JigsawResults) -> list[Target]:
    """All of them."""
    return [target for mode in MODES for target in _of_mode(results, mode)]


def _of_mode(results: JigsawResults, mode: Mode) -> Iterator[Target]:
    synthetic = [load for load in results.loads if load.kind == "synthetic"]
    traces = [load for load in results.loads if load.kind == "trace"]
    if mode.label not in [rule.label for rule in results.rules]:
        yield Target(mode.name, "", "-", "not measured", f"no row {mode.label!r} was run")
        return
    use = "utilization_while_waiting"

    def ratio(key: str, coupled: bool = False) -> Callable[[JigsawLoad], Sequence[float]]:
        return lambda load: results.ratios(load.name, mode.label, key, coupled=coupled)

    for chosen, kind, least in (
        (traces, "traces", mode.use_of_traces),
        (synthetic, "synthetic", mode.use_of_synthetic),
    ):
        name = f"{mode.name}: utilisation while jobs wait / first-fit's, {kind}"
        yield _worst(results, mode, name, chosen, ratio(use), least, at_least=True)
    if mode.label == STRICT and JIGSAW.label in [rule.label for rule in results.rules]:
        name = f"{mode.name}: the same over jigsaw's"
        over = _over_jigsaw(results, mode, use)
        yield _worst(results, mode, name, results.loads, over, 1.0, at_least=True)
    for key, what, most in (
        ("mean_wait", "mean wait", mode.wait),
        ("mean_wait_by_work", "mean wait by work", mode.wait_by_work),
    ):
        if most is not None:
            yield _worst(
                results, mode, f"{mode.name}: {what} / first-fit's, traces", traces, ratio(key), most
            )
    if mode.break_even is not None:
        yield _break_even(results, mode, mode.break_even)
    if mode.moves is not None:
        moves = [
            (mean_of(results.alone[load.name, mode.label], "moves_per_job"), load.name)
            for load in results.loads
        ]
        most, where = max(moves)
        yield Target(
            f"{mode.name}: moves per job",
            f"at most {mode.moves:g}",
            f"{most:.3f}",
            "met" if most <= mode.moves else "failed",
            f"most on {where}",
        )
    if mode.bandwidth_share is not None:
        shares = [
            (mean_of(results.alone[load.name, mode.label], "mean_bandwidth_share"), load.name)
            for load in results.loads
        ]
        least, where = min(shares)
        met = least >= mode.bandwidth_share
        verdict: Literal["met", "failed"] = "met" if met else "failed"
        name = f"{mode.name}: mean share of bandwidth"
        yield Target(name, f"at least {mode.bandwidth_share:g}", f"{least:.3f}", verdict, f"least on {where}")
    for key, what in (("mean_wait", "mean wait"), ("makespan", "makespan")):
        name = f"{mode.name}: {what} / first-fit's, both under contention"
        yield _worst(results, mode, name, results.loads, ratio(key, coupled=True), 1.0)


def _break_even(results: JigsawResults, mode: Mode, bound: float) -> Target:
    name, aim = f"{mode.name}: break-even speed-up (%)", f"at most {bound:g}"
    if not results.break_even:
        return Target(name, aim, "-", "not measured", "not sought (--no-break-even)")
    most, where = max((results.break_even[load.name, mode.label], load.name) for load in results.loads)
    return Target(name, aim, f"{most:.2f}", "met" if most <= bound else "failed", f"largest on {where}")


def _over_jigsaw(results: JigsawResults, mode: Mode, key: str) -> Callable[[JigsawLoad], Sequence[float]]:
    def over(load: JigsawLoad) -> list[float]:
        own = results.ratios(load.name, mode.label, key)
        return [one / (other or 1.0) for one, other in zip(own, results.ratios(load.name, JIGSAW.label, key))]

    return over


def _worst(
    results: JigsawResults,
    mode: Mode,
    what: str,
    chosen: Sequence[JigsawLoad],
    ratios: Callable[[JigsawLoad], Sequence[float]],
    bound: float,
    *,
    at_least: bool = False,
) -> Target:
    """The load on which the mean over the seeds is worst."""
    aim = f"{'at least' if at_least else 'at most'} {bound:g}"
    if not chosen:
        return Target(what, aim, "-", "not measured", "no such load was run (--trace, --only)")
    if not any(ratios(load) for load in chosen):
        return Target(what, aim, "-", "not measured", "no run under contention (--contention)")
    found = [(interval(ratios(load)), load) for load in chosen]
    sign = -1.0 if at_least else 1.0
    (mean, low, high), load = max(found, key=lambda one: sign * one[0][0])
    met = mean >= bound if at_least else mean <= bound
    blocked = mean_of(results.alone[load.name, mode.label], "head_blocked")
    why = f"worst on {load.name}"
    if not met:
        why += f", where the head waits {blocked:.0%} of the time though nodes enough are free"
    return Target(what, aim, f"{mean:.3f} ({low:.3f} to {high:.3f})", "met" if met else "failed", why)
