"""One site against two halves: the loss by latency, and up to which latency two sites help."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import PaperRow, sites, sites_smpi
from topolane_studies.sites import SitesProgram, Wan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from topolane_studies import Verdict
    from topolane_studies.sites import SmpiRun

PAPER_SPEED = {("lu", 32): 0.65, ("cg", 32): 0.35}
"""Of one site's speed, in halves at 5 ms."""
POINTS = 0.10
"""A speed agrees if it lies within ten points. Fixed before the first run, as all tolerances here."""
PAPER_TOLERABLE = {
    ("lu", 16): 7.5e-3,
    ("lu", 32): 7.5e-3,
    ("lu", 64): 2e-3,
    ("cg", 16): None,
    ("cg", 32): None,
    ("cg", 64): None,
}
"""The highest latency in seconds at which twice the nodes on two sites beat the nodes of one."""
PAPER_TRAFFIC = {
    ("lu", 16): 3.36e6,
    ("lu", 32): 5.88e6,
    ("lu", 64): 6.94e6,
    ("cg", 16): 40.7e6,
    ("cg", 32): 19.9e6,
    ("cg", 64): 28.5e6,
}
"""Bytes per second between the halves."""
FACTOR = 1.5
"""A traffic agrees if it is at most this factor off."""
PAPER_SENDS = {("lu", 32): 1_303_278, ("cg", 32): 372_599, ("bt", 32): 239_381}
PAPER_SECONDS = {("lu", 32): 143.0, ("cg", 32): 84.0, ("bt", 32): 185.0}
COUNTS = 0.10
"""Numbers of sends agree within a tenth."""
ORDER = ("cg", "bt", "lu", "ep")
"""Of the loss, the highest first."""


@dataclasses.dataclass(frozen=True)
class IterationTimes:
    """What was simulated: seconds of the iterations of every run of one program, and what it sends."""

    taken: Mapping[SmpiRun, list[float]]
    sent: Mapping[SitesProgram, dict[tuple[int, int], tuple[int, int, int]]]
    """Messages, bytes and turns of every pair in the iterations that are run."""
    programs: Path

    def one(self, job: SitesProgram, speed: float = sites.SPEED) -> float:
        """On one site, seconds."""
        return self.taken[sites.alone(self.programs, job, speed)][0]

    def two(self, job: SitesProgram, wan: Wan, speed: float = sites.SPEED) -> float:
        """In two halves, seconds."""
        return self.taken[sites.spread(self.programs, job, wan, speed)][0]

    def speed(self, job: SitesProgram, wan: Wan, speed: float = sites.SPEED) -> float:
        """In two halves, of that on one site."""
        return self.one(job, speed) / self.two(job, wan, speed)

    def loss(self, job: SitesProgram, wan: Wan, speed: float = sites.SPEED) -> float:
        """Of speed, 0 to 1."""
        return 1 - self.speed(job, wan, speed)

    def across(self, job: SitesProgram) -> tuple[int, int, int]:
        """Messages, bytes and turns between the halves, both ways."""
        half = sites.halves(job.ranks)
        crossing = [of for (a, b), of in self.sent[job].items() if half[a] != half[b]]
        return tuple(map(sum, zip(*crossing))) if crossing else (0, 0, 0)  # type: ignore[return-value]

    def traffic(self, job: SitesProgram) -> float:
        """Bytes per second between the halves on one site."""
        return self.across(job)[1] / self.one(job)


def simulated(
    programs: Path,
    runs: Sequence[SmpiRun],
    *,
    workers: int | None = None,
    done: Callable[[], None] | None = None,
) -> IterationTimes:
    """Simulates all runs, and counts what each of their programs sends."""
    jobs = list(dict.fromkeys(job for run in runs for job in run.jobs))
    counting = [dataclasses.replace(sites.alone(programs, job), counting=True) for job in jobs]
    plain = sites.unique(runs)
    counts = over(sites_smpi.sent, counting, workers=workers, done=done)
    seconds = over(sites_smpi.seconds, plain, workers=workers, done=done)
    return IterationTimes(dict(zip(plain, seconds)), dict(zip(jobs, counts)), programs)


def total(runs: Sequence[SmpiRun]) -> int:
    """How many simulations `simulated` needs for runs."""
    return len({job for run in runs for job in run.jobs}) + len(runs)


def wans(quick: bool) -> list[Wan]:
    """Every latency with and without TCP's window."""
    chosen = (0.0, sites.MIDDLE) if quick else sites.LATENCIES
    return [Wan(latency, window) for latency in chosen for window in (sites.WINDOW, None)]


def jobs(quick: bool) -> list[SitesProgram]:
    """The programs whose loss is looked at."""
    return [
        SitesProgram(kernel, sites.sized(kernel, ranks))
        for kernel in sites.KERNELS
        for ranks in ((32,) if quick else (16, 32, 64))
    ]


def smaller(job: SitesProgram) -> SitesProgram:
    """Half of a program's ranks."""
    return dataclasses.replace(job, ranks=job.ranks // 2)


def compared(quick: bool) -> list[SitesProgram]:
    """The programs of the table of tolerable latencies; it needs all of them."""
    return [] if quick else [SitesProgram(*key) for key in PAPER_TOLERABLE]


def runs(programs: Path, quick: bool) -> list[SmpiRun]:
    """All runs of this part."""
    wanted = [sites.alone(programs, job) for job in jobs(quick)]
    wanted += [sites.spread(programs, job, wan) for job in jobs(quick) for wan in wans(quick)]
    wanted += [sites.alone(programs, smaller(job)) for job in compared(quick)]
    for speed in () if quick else SPEEDS:
        for kernel in sites.KERNELS:
            job = SitesProgram(kernel, sites.sized(kernel, 32))
            wanted += [sites.alone(programs, job, speed), sites.spread(programs, job, Wan(), speed)]
    return sites.unique(wanted)


SPEEDS = (2.5e8, 1e9, 2e9)
"""Other operations a second than supposed, to see what hangs on them."""


def tolerable(times: IterationTimes, job: SitesProgram, window: float | None) -> float | None:
    """The highest of the latencies up to which two sites help, or None where they do not even at the lowest.

    They help if N ranks in two halves take less time than N / 2 on one site, at that latency and all lower ones but 0.
    """
    highest = None
    for latency in sites.LATENCIES[1:]:
        if times.two(job, Wan(latency, window)) >= times.one(smaller(job)):
            break
        highest = latency
    return highest


def rows(times: IterationTimes, quick: bool) -> list[PaperRow]:
    """The paper's figures next to ours."""
    found = [speed_row(times, SitesProgram(*key), paper) for key, paper in PAPER_SPEED.items()]
    found.append(order_row(times))
    found += [tolerable_row(times, job) for job in compared(quick)]
    for key, paper in PAPER_TRAFFIC.items():
        if SitesProgram(*key) in jobs(quick):
            found.append(traffic_row(times, SitesProgram(*key), paper))
    for (kernel, ranks), sends in PAPER_SENDS.items():
        found.append(
            sends_row(
                times, SitesProgram(kernel, sites.sized(kernel, ranks)), sends, PAPER_SECONDS[kernel, ranks]
            )
        )
    found.append(overhead_row())
    return found


def not_measured(missing: str) -> list[PaperRow]:
    """The paper's figures where SimGrid is not there: what is missing."""
    found = [
        PaperRow(f"{SitesProgram(*key).name} in halves at 5 ms", f"{paper:.0%}", "", "not measured", missing)
        for key, paper in PAPER_SPEED.items()
    ]
    return [
        *found,
        PaperRow("order of the loss", " > ".join(ORDER).upper(), "", "not measured", missing),
        *(
            PaperRow(
                f"{SitesProgram(*key).name}: two sites help up to", up_to(paper), "", "not measured", missing
            )
            for key, paper in PAPER_TOLERABLE.items()
        ),
        overhead_row(),
    ]


def overhead_row() -> PaperRow:
    """What guest and overlay cost against bare metal."""
    why = "guests are emulated here, which costs far more than what would be measured"
    return PaperRow("overhead of guest and overlay on one site", "measured", "", "not measured", why, "none")


def speed_row(times: IterationTimes, job: SitesProgram, paper: float) -> PaperRow:
    """Speed in halves at 5 ms."""
    ours = times.speed(job, Wan())
    agrees = abs(ours - paper) <= POINTS
    why = f"{times.speed(job, Wan(window=None)):.0%} without the window"
    if not agrees:
        why += f"; {WHY[job.kernel]}"
    return PaperRow(
        f"{job.name} in halves at 5 ms, of one site's speed",
        f"{paper:.0%}",
        f"{ours:.0%}",
        "agrees" if agrees else "differs",
        why,
        f"{POINTS * 100:.0f} points",
    )


WHY = {
    "lu": "LU loses a fixed time an iteration, so that it hangs on how fast processes compute (see the speeds); TCP's "
    + "slow start and an overlay are not simulated",
    "cg": "here CG computes as fast as the others, though its products wait for memory; slower processes lose less "
    + "(see the speeds)",
}


def order_row(times: IterationTimes) -> PaperRow:
    """Which program loses most."""
    found = {
        kernel: times.loss(SitesProgram(kernel, sites.sized(kernel, 32)), Wan()) for kernel in sites.KERNELS
    }
    ours = sorted(ORDER, key=lambda kernel: -found[kernel])
    return PaperRow(
        "order of the loss, class C, 32 ranks, 5 ms",
        " > ".join(kernel.upper() for kernel in ORDER),
        " > ".join(kernel.upper() for kernel in ours),
        "agrees" if tuple(ours) == ORDER else "differs",
        f"MG, whose place is not given, loses {found['mg']:.0%}: "
        + ", ".join(f"{kernel.upper()} {found[kernel]:.1%}" for kernel in ours),
        "exact",
    )


def tolerable_row(times: IterationTimes, job: SitesProgram) -> PaperRow:
    """Up to which latency two sites help."""
    paper = PAPER_TOLERABLE[job.kernel, job.ranks]
    ours = tolerable(times, job, sites.WINDOW)
    free = tolerable(times, job, None)
    verdict: Verdict = "agrees" if ours == paper else "differs"
    ratio = times.one(job) / times.one(smaller(job))
    most = up_to(sites.LATENCIES[-1])
    why = f"{most} is the most tried; " if ours == sites.LATENCIES[-1] else ""
    why += f"without the window {up_to(free)}; on one site {job.ranks} ranks take {ratio:.0%} of {job.ranks // 2}'s time"
    return PaperRow(
        f"{job.name}: two sites help up to", up_to(paper), up_to(ours), verdict, why, "the same latency"
    )


def up_to(latency: float | None) -> str:
    """A latency in words."""
    return "none" if latency is None else f"{latency * 1e3:g} ms"


def traffic_row(times: IterationTimes, job: SitesProgram, paper: float) -> PaperRow:
    """Bytes per second between the halves."""
    ours = times.traffic(job)
    agrees = 1 / FACTOR <= ours / paper <= FACTOR
    at_5 = times.across(job)[1] / times.two(job, Wan())
    why = f"both ways, on one site; one way {ours / 2e6:.2f}; both ways in halves at 5 ms {at_5 / 1e6:.2f}"
    if job.kernel == "cg" and not agrees:
        why += "; CG runs faster here, and the paper's own figures fall and rise with the ranks"
    return PaperRow(
        f"{job.name}: MB/s between the halves",
        f"{paper / 1e6:.2f}",
        f"{ours / 1e6:.2f}",
        "agrees" if agrees else "differs",
        why,
        f"a factor of {FACTOR:g}",
    )


def sends_row(times: IterationTimes, job: SitesProgram, paper: int, seconds: float) -> PaperRow:
    """Sends of the whole benchmark."""
    ours = sum(of[0] for of in times.sent[job].values()) * job.whole
    agrees = abs(ours / paper - 1) <= COUNTS
    why = f"it took {seconds:.0f} s there and {times.one(job) * job.whole:.0f} s here"
    if not agrees:
        why += "; ours are NPB's calls, counted: the log was of a part, or of another program"
    return PaperRow(
        f"{job.name}: sends of the whole run",
        f"{paper:,}",
        f"{ours:,.0f}",
        "agrees" if agrees else "differs",
        why,
        f"{COUNTS:.0%}",
    )
