"""Joins runs that Slurm ended and restarted into one job, for cases in which the queue `slurm` decides itself
what ends a run.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from topolane.slurm import accounting
from topolane.slurm.accounting_jobs import AccountedJobs, AccountedRun, EarlierRun
from topolane.slurm.inspection import names_in
from topolane.units import plural

FAILED = frozenset({"NODE_FAIL", "REQUEUED"})
"""States of runs that a node failure may have ended."""
CLOSE = 60
"""The most seconds between the end of a run and a record that one of its nodes went down."""


@dataclasses.dataclass(frozen=True)
class Downs:
    """The times at which nodes went down, in seconds since 1970."""

    times: dict[str, list[int]]

    @classmethod
    def read(cls, path: Path | None, cluster: str | None) -> Downs:
        """The times in `events.txt`. Raises InputError for a file that is not the output of its command."""
        times: dict[str, list[int]] = defaultdict(list)
        if path is None:
            return cls(times)
        for number, row in accounting.events(path, cluster):
            start, _ = accounting.times(path, number, row)
            if row["State"].startswith("DOWN") and start is not None:
                times[row["NodeName"]].append(start)
        return cls(times)

    def ended(self, run: AccountedRun) -> bool:
        """Whether one of the run's nodes went down when it ended."""
        end = run.start + run.run
        return any(
            abs(time - end) <= CLOSE for node in names_in(run.hosts) for time in self.times.get(node, ())
        )


def join(jobs: AccountedJobs, downs: Downs, preempts: bool, requeues: bool, notes: list[str]) -> None:
    """Joins runs that were preempted or ended by a node failure with the next run of the same job, which then
    waits since the first submission.

    preempts: whether the queue preempts. requeues: whether jobs are restarted unless they say otherwise.
    """
    counts = Counter(run.job for run in jobs.runs)
    failed = _without(jobs, lambda run: run.state in FAILED and downs.ended(run))
    if failed:
        notes.append(
            f"{plural(failed, 'run')} that ended because a node failed, joined with the later run of the same job: "
            "in the queue slurm a job starts again if one of its own nodes fails"
        )
    preempted = _without(jobs, lambda run: run.state == "PREEMPTED") if preempts else 0
    if preempted:
        notes.append(
            f"{plural(preempted, 'run')} that ended by preemption, joined with the later run of the same job: "
            "the queue slurm decides again which job gives way"
        )
    for place, run in enumerate(jobs.runs):
        if run.state == "NODE_FAIL" or not requeues and counts[run.job] < 2:
            jobs.runs[place] = run._replace(no_requeue=True)


def _without(jobs: AccountedJobs, is_ended: Callable[[AccountedRun], bool]) -> int:
    """Joins each ended run with the job's next run. Returns the number of runs that disappear.

    The later run gets the ended ones as its earlier runs. It takes the index of the first, because the job
    came before others of the same second.
    """
    runs = jobs.runs
    ended = {place for place, run in enumerate(runs) if is_ended(run)}
    numbers = {runs[place].job for place in ended}
    places = [place for place, run in enumerate(runs) if run.job in numbers]
    places.sort(key=lambda place: (runs[place].job, runs[place].start))
    before: list[int] = []
    joined: set[int] = set()
    for place, then in zip(places, [*places[1:], None]):
        run = runs[place]
        if place in ended and then is not None and runs[then].job == run.job:
            before.append(place)
        elif before:
            runs[before[0]] = _joined([runs[each] for each in before], run)
            joined.update(before[1:], [place])
            before = []
    jobs.runs = [run for place, run in enumerate(runs) if place not in joined]
    return len(joined)


def _joined(ended: Sequence[AccountedRun], last: AccountedRun) -> AccountedRun:
    """The last run, waiting since the first of the ended runs was submitted."""
    earlier = [each for run in ended for each in (*run.earlier, EarlierRun(run.start, run.run, run.nodes))]
    return last._replace(
        submit=ended[0].submit,
        eligible=ended[0].eligible,
        queued=ended[0].queued,
        earlier=(*earlier, *last.earlier),
    )
