"""All of the study of several sites: what is run, and the paper's claims judged by it."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import (
    judging,
    sites,
    sites_arrivals,
    sites_hours,
    sites_jobs,
    sites_levels,
    sites_loss,
    sites_messages,
    sites_scatter,
    sites_smpi,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_studies import PaperRow
    from topolane_studies.claims import Claim
    from topolane_studies.sites_arrivals import ArrivalsOutcome
    from topolane_studies.sites_jobs import JobsOutcome
    from topolane_studies.sites_levels import LevelsLine
    from topolane_studies.sites_loss import IterationTimes

    Bar = Callable[[str, int], contextlib.AbstractContextManager[Callable[..., None]]]


@dataclasses.dataclass(frozen=True)
class SitesFound:
    """All that was simulated. quick: neither the four programs together nor collectives."""

    times: IterationTimes
    outcomes: list[ArrivalsOutcome]
    played: list[JobsOutcome]
    levels: list[LevelsLine]


def silent(what: str, total: int) -> contextlib.AbstractContextManager[Callable[..., None]]:
    """No bar."""
    return contextlib.nullcontext(lambda: None)


def study(programs: Path, quick: bool, *, workers: int | None = None, bar: Bar = silent) -> SitesFound:
    """Simulates everything; what is compiled lies in `programs`. Raises Missing."""
    sites_smpi.build(programs)
    if not quick:
        sites_levels.build(programs)  # now, not when hours have been simulated
    parts = [sites_loss.runs(programs, quick), sites_scatter.runs(programs, quick)]
    parts += [sites_arrivals.runs(programs)] + ([] if quick else [sites_jobs.runs(programs)])
    runs = sites.unique(run for part in parts for run in part)
    with bar("simulating", sites_loss.total(runs)) as done:
        times = sites_loss.simulated(programs, runs, workers=workers, done=done)
    played, levels = [], []
    if not quick:
        with bar("four programs", len(sites_jobs.POLICIES)) as done:
            played = sites_jobs.study(times, workers=workers, done=done)
        with bar("collectives", len(sites_levels.tasks(programs))) as done:
            levels = sites_levels.study(programs, workers=workers, done=done)
    scenarios = sites_arrivals.scenarios(times, quick)
    with bar("programs that come and go", len(scenarios)) as done:
        outcomes = over(sites_hours.play, scenarios, workers=workers, done=done)
    return SitesFound(times, outcomes, played, levels)


def of_programs(quick: bool) -> list[Claim[IterationTimes]]:
    """What the paper says of single programs."""
    return [*sites_loss.claims(quick), sites_scatter.claim(quick), *sites_messages.claims(quick)]


def of_four(quick: bool) -> list[Claim[list[JobsOutcome]]]:
    """What it says of four together."""
    return [] if quick else sites_jobs.claims()


def judged(found: SitesFound, quick: bool) -> list[PaperRow]:
    """The paper's claims next to what was found."""
    rows = [claim.row(found.times) for claim in of_programs(quick)]
    return [*rows, *(claim.row(found.played) for claim in of_four(quick)), *never_measured()]


def missing(why: str, quick: bool) -> list[PaperRow]:
    """The paper's claims where nothing can be simulated."""
    rows = [claim.missing(why) for claim in of_programs(quick)]
    return [*rows, *(claim.missing(why) for claim in of_four(quick)), *never_measured()]


def never_measured() -> list[PaperRow]:
    """Claims that nothing here measures."""
    emulated = (
        "guests are emulated here, which costs far more than what would be measured; "
        "of the overlay benches/run.py sites/tunnel"
    )
    return [judging.missing("overhead of guest and overlay on one site", "measured", emulated, value=True)]


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """Runs the study; without SimGrid each row is missing."""
    with tempfile.TemporaryDirectory(prefix="topolane-sites-") as name:
        try:
            return judged(study(Path(name), quick, workers=workers), quick)
        except sites_smpi.Missing as absent:
            return missing(str(absent), quick)
