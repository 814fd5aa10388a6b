"""The text of the page about contention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topolane.units import duration, percent

from .data import ReportedRun

WORDS = (
    "No speed-up is assumed in these runs: jobs slow each other down where their traffic meets. A job's "
    "run time in the log is taken as its time alone. It communicates for a fraction f of that "
    "(--comm-fraction), by a pattern drawn for it, and while it does its neighbours communicate for a "
    "fraction f of their time. Where sharing links would make communication take S times as long, the "
    "job needs 1 + f × f × (S − 1) seconds for every second alone, from event to event as neighbours come "
    "and go. Not modelled: phases in step, latency, the traffic of file systems, and what a placement "
    "does to a job itself: alone means on the same nodes."
)


def words(runs: Sequence[ReportedRun]) -> str:
    """The meaning of the figures, and the assumptions about these runs."""
    settings = sorted(
        f"{one['model']} over {one['routing']} routes with f = {one['communication']}"
        for one in {
            tuple(sorted(_setting(run).items())): _setting(run) for run in runs if run.network
        }.values()
    )
    return f"{WORDS} The model here: {'; '.join(settings)}." if settings else WORDS


def _setting(run: ReportedRun) -> dict[str, Any]:
    known = run.summary.get("contention") or {}
    return {name: known.get(name, "?") for name in ("model", "routing", "communication")}


def bought_back(runs: Sequence[ReportedRun]) -> list[str]:
    """One or two sentences for each isolating run: its cost and its saving compared with its reference run."""
    from topolane._engine import InputError
    from topolane.sweep import shares_bought_back

    if all(run.network for run in runs):
        return []  # there is no reference run
    try:
        rows = shares_bought_back(runs)
    except InputError:  # an unknown policy: whether it isolates is not known
        return []
    sentences = []
    for row in rows:
        extra, saved, whole = row["extra_wait"], row["saved_wait"], row["saved"]
        share = "" if row["share"] is None else f" ({percent(row['share'], 0)} of that)"
        sentences.append(
            f"“{row['policy']}” against “{row['reference']}” under {row['queue']}: keeping jobs apart costs "
            f"{duration(extra)} of mean wait; contention adds {duration(saved)}{share} to the wait of "
            f"“{row['reference']}”. Wait and run together are {duration(abs(whole))} "
            f"{'shorter' if whole >= 0 else 'longer'} with jobs kept apart."
        )
    return sentences
