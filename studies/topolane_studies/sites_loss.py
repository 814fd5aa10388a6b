"""One site against two halves: the loss by latency, and up to which latency two sites help.

All rows are tested, and judged with the tunnel. That was written down before the first run with it, as were its constants.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import claims as claims_of
from topolane_studies import sites, sites_smpi
from topolane_studies.judging import Tolerance, within_factor, within_points
from topolane_studies.sites import SitesProgram, Wan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from topolane_studies.claims import Claim
    from topolane_studies.sites import SmpiRun

PAPER_SPEED = {("lu", 32): 65.0, ("cg", 32): 35.0}
"""In halves at 5 ms, in % of one site's."""
SPEED = within_points(10.0)
"""Fixed before the first run, as all tolerances here."""
PAPER_TOLERABLE = {("lu", 16): 7.5e-3, ("lu", 32): 7.5e-3, ("lu", 64): 2e-3}
"""The highest latency in seconds at which twice the nodes on two sites beat the nodes of one."""
SAME = Tolerance("the same latency", lambda ours, paper: ours == paper)
NEVER = (("cg", 16), ("cg", 32), ("cg", 64))
"""Programs that two sites help at no latency."""
SLIDES = (
    (SitesProgram("lu", 32), (10e-3,), "faster"),
    (SitesProgram("lu", 64), (2.5e-3,), "faster"),
    (SitesProgram("lu", 64), (5e-3, 7.5e-3, 10e-3), "slower"),
)
"""The same in the words of two slides: at these latencies, compared with half of the nodes on one site."""
PAPER_TRAFFIC = {
    ("lu", 16): 3.36,
    ("lu", 32): 5.88,
    ("lu", 64): 6.94,
    ("cg", 16): 40.7,
    ("cg", 32): 19.9,
    ("cg", 64): 28.5,
}
"""MB/s between the halves."""
TRAFFIC = within_factor(1.5)
PAPER_SECONDS = {"lu": 142.95, "cg": 84.29, "bt": 185.13}
"""Of the run of 32 ranks on one site."""
OWN_SPEED = {"lu": 4.77e8, "cg": 6.13e7}
"""Operations a second at which 32 ranks here take the paper's seconds."""
ORDER = {"CG": 4, "BT": 3, "LU": 2, "EP": 1}
"""Of the loss, the highest first; the paper prints no figures."""


@dataclasses.dataclass(frozen=True)
class IterationTimes:
    """What was simulated: seconds of the iterations of every run of one program, and what it sends."""

    taken: Mapping[SmpiRun, list[float]]
    sent: Mapping[SitesProgram, dict[tuple[int, int], tuple[int, int, int]]]
    """Messages, bytes and turns of every pair in the iterations that are run."""
    programs: Path
    broadcasts: Mapping[SitesProgram, int] = dataclasses.field(default_factory=dict)
    """Calls of MPI_Bcast of every program."""

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

    def traffic(self, job: SitesProgram, speed: float = sites.SPEED) -> float:
        """Bytes per second between the halves on one site."""
        return self.across(job)[1] / self.one(job, speed)


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
    return IterationTimes(
        dict(zip(plain, seconds)),
        {job: of.pairs for job, of in zip(jobs, counts)},
        programs,
        {job: of.broadcasts for job, of in zip(jobs, counts)},
    )


def total(runs: Sequence[SmpiRun]) -> int:
    """How many simulations `simulated` needs for runs."""
    return len({job for run in runs for job in run.jobs}) + len(runs)


def latencies(quick: bool) -> tuple[float, ...]:
    """Those at which all programs are simulated."""
    return (0.0, sites.MIDDLE) if quick else sites.LATENCIES


def wans(quick: bool) -> list[Wan]:
    """Every latency with the tunnel, which the paper is compared with, with TCP's window alone, and without."""
    kinds = (sites.tunnelled, Wan, partial(Wan, window=None))
    return [kind(latency) for kind in kinds for latency in latencies(quick)]


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
    return [] if quick else [SitesProgram(*key) for key in (*PAPER_TOLERABLE, *NEVER)]


def runs(programs: Path, quick: bool) -> list[SmpiRun]:
    """All runs of this part."""
    wanted = [sites.alone(programs, job) for job in jobs(quick)]
    wanted += [sites.spread(programs, job, wan) for job in jobs(quick) for wan in wans(quick)]
    wanted += [sites.alone(programs, smaller(job)) for job in compared(quick)]
    wanted += [
        sites.spread(programs, job, sites.tunnelled(latency))
        for job, at, _ in (() if quick else SLIDES)
        for latency in at
    ]
    wanted += [
        sites.spread(programs, job, dear(latency))
        for job in compared(quick)
        if (job.kernel, job.ranks) in PAPER_TOLERABLE
        for latency in sorted({*sites.LATENCIES[1:], *(one for _, at, _ in SLIDES for one in at)})
    ]
    for kernel, speed in OWN_SPEED.items():
        job = SitesProgram(kernel, 32)
        wanted.append(sites.alone(programs, job, speed))
        wanted += [sites.spread(programs, job, wan, speed) for wan in own_wans(quick)]
    for speed in () if quick else SPEEDS:
        for kernel in sites.KERNELS:
            job = SitesProgram(kernel, sites.sized(kernel, 32))
            wanted += [
                sites.alone(programs, job, speed),
                sites.spread(programs, job, sites.tunnelled(), speed),
            ]
    return sites.unique(wanted)


SPEEDS = (2.5e8, 1e9, 2e9)
"""Other operations a second than supposed, to see what hangs on them."""


PACKETS = (sites.PACKET, 24e-6, 36e-6, 48e-6, 60e-6, 72e-6, 96e-6, 135e-6)
"""CPU seconds of a packet in the tunnel: from what was measured here on a faster processor than the paper's to an Athlon of
1.4 GHz, through which OpenVPN carried 83 Mbit/s (Mache et al., Performance Implications of Using VPN Technology for Cluster
Integration and Grid Computing, 2006)."""
DEAR = 48e-6
"""One of these, for the reasons next to rows."""


def dear(latency: float = sites.MIDDLE) -> Wan:
    """The link with a tunnel whose packets cost more than was measured."""
    return sites.tunnelled(latency, DEAR)


def own_wans(quick: bool) -> list[Wan]:
    """Links that programs as slow as the paper's are spread over: with the window alone, then with tunnels."""
    return [Wan(), *(sites.tunnelled(packet=packet) for packet in (PACKETS[:1] if quick else PACKETS))]


def tolerable(times: IterationTimes, job: SitesProgram, kind: Callable[[float], Wan]) -> float:
    """The highest of the latencies up to which two sites help, or 0 where they do not even at the lowest.

    They help if N ranks in two halves take less time than N / 2 on one site, at that latency and all lower ones but 0.
    """
    highest = 0.0
    for latency in sites.LATENCIES[1:]:
        if times.two(job, kind(latency)) >= times.one(smaller(job)):
            break
        highest = latency
    return highest


def claims(quick: bool) -> list[Claim[IterationTimes]]:
    """What the paper says of single programs."""
    chosen = jobs(quick)
    return [
        *(speed_claim(SitesProgram(*key), paper) for key, paper in PAPER_SPEED.items()),
        order_claim(),
        *(tolerable_claim(job) for job in compared(quick)),
        *(slide_claim(*slide) for slide in (() if quick else SLIDES)),
        *(
            traffic_claim(SitesProgram(*key), paper)
            for key, paper in PAPER_TRAFFIC.items()
            if SitesProgram(*key) in chosen
        ),
    ]


def speed_claim(job: SitesProgram, paper: float) -> Claim[IterationTimes]:
    """Speed in halves at 5 ms. It is below one site's in any case, so it has no direction."""
    own = OWN_SPEED[job.kernel]

    def why(times: IterationTimes) -> str:
        return (
            f"without the tunnel {times.speed(job, Wan()):.0%}; as slow on one site as in the paper "
            f"({times.one(job, own) * job.whole:.0f} s) it keeps {times.speed(job, sites.tunnelled(), own):.0%}, "
            f"without the tunnel {times.speed(job, Wan(), own):.0%}"
        )

    what = f"{job.name} in halves at 5 ms, % of one site's speed"
    return claims_of.figure(
        what, paper, lambda times: 100 * times.speed(job, sites.tunnelled()), SPEED, why=why
    )


def loss_of_32(times: IterationTimes, kernel: str) -> float:
    """Of a kernel on 32 ranks at 5 ms."""
    return times.loss(SitesProgram(kernel, sites.sized(kernel, 32)), sites.tunnelled())


def order_claim() -> Claim[IterationTimes]:
    """Which program loses most; the paper does not give MG's place."""

    def ours(times: IterationTimes) -> dict[str, float]:
        return {name: loss_of_32(times, name.lower()) for name in ORDER}

    def why(times: IterationTimes) -> str:
        return ", ".join(f"{kernel.upper()} {loss_of_32(times, kernel):.1%}" for kernel in sites.KERNELS)

    return claims_of.rank("order of the loss, class C, 32 ranks, 5 ms", ORDER, ours, why)


def tolerable_claim(job: SitesProgram) -> Claim[IterationTimes]:
    """Up to which latency two sites help."""

    def why(times: IterationTimes) -> str:
        ratio = times.one(job) / times.one(smaller(job))
        costly = (
            ""
            if key in NEVER
            else f"if a packet costs {1e6 * DEAR:g} us {up_to(tolerable(times, job, dear))}; "
        )
        return (
            f"{up_to(sites.LATENCIES[-1])} is the most tried; without the tunnel {up_to(tolerable(times, job, Wan))}; "
            f"{costly}on one site {job.ranks} ranks take {ratio:.0%} of {job.ranks // 2}'s time"
        )

    def ours(times: IterationTimes) -> float:
        return tolerable(times, job, sites.tunnelled)

    what, key = f"{job.name}: two sites help up to", (job.kernel, job.ranks)
    if key in NEVER:
        return claims_of.direction(
            what, up_to(0.0), lambda times: (not ours(times), up_to(ours(times)), why(times))
        )
    return claims_of.figure(what, PAPER_TOLERABLE[key], ours, SAME, neutral=0.0, shown=up_to, why=why)


def up_to(latency: float) -> str:
    """A latency in words."""
    return f"{latency * 1e3:g} ms" if latency else "none"


def slide_claim(job: SitesProgram, at: Sequence[float], claim: str) -> Claim[IterationTimes]:
    """Whether two sites beat half of the nodes on one at these latencies."""

    def seen(times: IterationTimes) -> tuple[bool, str, str]:
        shares, costly = (
            [times.two(job, kind(latency)) / times.one(smaller(job)) for latency in at]
            for kind in (sites.tunnelled, dear)
        )
        holds = all((share < 1) == (claim == "faster") for share in shares)
        seen = ", ".join(f"{share:.0%}" for share in costly)
        why = f"if a packet in the tunnel costs {1e6 * DEAR:g} us: {seen}"
        return holds, ", ".join(f"{share:.0%} of the time" for share in shares), why

    where = ", ".join(map(up_to, at))
    return claims_of.direction(
        f"{job.name} on two sites, against {job.ranks // 2} on one, at {where}", claim, seen
    )


def traffic_claim(job: SitesProgram, paper: float) -> Claim[IterationTimes]:
    """MB/s between the halves, both ways, on one site."""

    def why(times: IterationTimes) -> str:
        at_5 = times.across(job)[1] / times.two(job, sites.tunnelled())
        found = f"one way {times.traffic(job) / 2e6:.2f}; in halves at 5 ms {at_5 / 1e6:.2f}"
        if job.ranks == 32:
            own = times.traffic(job, OWN_SPEED[job.kernel]) / 1e6
            found += f"; as slow on one site as in the paper {own:.2f}"
            if (key := (job.kernel, job.ranks)) in PAPER_SPEED:
                share = PAPER_SPEED[key] / 100
                found += f", at {share:.0%} of that speed, as the paper has it in halves, {share * own:.2f}"
        return found

    return claims_of.figure(
        f"{job.name}: MB/s between the halves",
        paper,
        lambda times: times.traffic(job) / 1e6,
        TRAFFIC,
        shown="{:.2f}".format,
        why=why,
    )
