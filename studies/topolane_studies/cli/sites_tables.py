"""The tables of `topolane paper sites`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane.cli.table import PrintedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_studies.sites import Wan
    from topolane_studies.sites_arrivals import ArrivalsOutcome
    from topolane_studies.sites_jobs import JobsOutcome
    from topolane_studies.sites_levels import LevelsLine
    from topolane_studies.sites_loss import IterationTimes
    from topolane_studies.sites_study import SitesFound


def every(found: SitesFound, quick: bool) -> list[PrintedTable]:
    """All tables."""
    tables = measured(found.times, quick)
    if not quick:
        tables += [
            levels_table(found.levels),
            jobs_table(found.played),
            shared_table(found.times, found.played),
        ]
    return [*tables, arrivals_table(found.outcomes)]


def by_window(quick: bool) -> list[Wan]:
    """The latencies with TCP's window and no tunnel, then those without the window."""
    from topolane_studies import sites_loss

    return [wan for wan in sites_loss.wans(quick) if not wan.tunnel]


def heading(wan: Wan) -> str:
    """Of a column."""
    kind = " tunnel" if wan.tunnel else "" if wan.window else " free"
    return f"{wan.latency * 1e3:g} ms{kind}"


def measured(times: IterationTimes, quick: bool) -> list[PrintedTable]:
    """All that SMPI and the prediction give of single programs."""
    tables = [loss_table(times, quick), scatter_table(times, quick), prediction_table(times, quick)]
    more = [] if quick else [speed_table(times), tunnel_table(times)]
    return [tables[0], *more, *tables[1:]]


def loss_table(times: IterationTimes, quick: bool) -> PrintedTable:
    """Speed in halves by latency."""
    from topolane_studies import sites_loss

    wans = sites_loss.wans(quick)
    columns = [heading(wan) for wan in wans]
    lines = []
    for job in sites_loss.jobs(quick):
        speeds = [100 * times.speed(job, wan) for wan in wans]
        lines.append((job.name, times.one(job) * job.whole, *speeds))
    return PrintedTable(
        "loss",
        "speed in two halves, % of one site's, by latency of the WAN; tunnel: with OpenVPN; free: without "
        "TCP's window",
        ("class C", "one site (s)", *columns),
        lines,
    )


def speed_table(times: IterationTimes) -> PrintedTable:
    """What the speed of the processes does."""
    from topolane_studies import sites, sites_loss
    from topolane_studies.sites import SitesProgram

    speeds = sorted({*sites_loss.SPEEDS, sites.SPEED})
    lines = []
    for kernel in sites.KERNELS:
        job = SitesProgram(kernel, sites.sized(kernel, 32))
        lines.append((job.name, *(100 * times.speed(job, sites.tunnelled(), speed) for speed in speeds)))
    return PrintedTable(
        "speeds",
        "the same at 5 ms with the tunnel, by operations a second of a process",
        ("class C", *(f"{speed:.3g}" for speed in speeds)),
        lines,
    )


def tunnel_table(times: IterationTimes) -> PrintedTable:
    """What the cost of a packet in the tunnel does."""
    from topolane_studies import sites_loss
    from topolane_studies.sites import SitesProgram

    wans = sites_loss.own_wans(quick=False)
    columns = ["none", *(f"{1e6 * wan.tunnel.packet:g} us" for wan in wans if wan.tunnel)]
    lines = []
    for kernel, speed in sites_loss.OWN_SPEED.items():
        job = SitesProgram(kernel, 32)
        speeds = [100 * times.speed(job, wan, speed) for wan in wans]
        lines.append((job.name, times.one(job, speed) * job.whole, *speeds))
    return PrintedTable(
        "tunnel",
        "the same at 5 ms for processes as slow on one site as the paper's, by CPU time of a packet in the tunnel",
        ("class C", "one site (s)", *columns),
        lines,
    )


def scatter_table(times: IterationTimes, quick: bool) -> PrintedTable:
    """The points of the figure."""
    from topolane_studies import sites_scatter

    lines = [
        (
            point.job.name,
            point.job.size,
            point.traffic / 1e6,
            point.turns,
            100 * point.loss,
        )
        for point in sites_scatter.points(times, quick)
    ]
    return PrintedTable(
        "scatter",
        "between the halves on one site, and loss of speed in halves at 5 ms with the tunnel",
        ("program", "class", "MB/s", "turns/s", "loss (%)"),
        lines,
        ("class",),
    )


def prediction_table(times: IterationTimes, quick: bool) -> PrintedTable:
    """What the engine gets about a program, and what it predicts."""
    from topolane_studies import sites_loss, sites_predict, sites_scatter

    chosen = [wan for wan in by_window(quick) if wan.latency in (1e-3, 5e-3, 10e-3)]
    lines = []
    for job in sites_loss.jobs(quick):
        cut = sites_predict.cut(times, job)
        pairs = [
            f"{100 * sites_predict.loss(times, job, wan):.1f} / {100 * times.loss(job, wan):.1f}"
            for wan in chosen
        ]
        lines.append((job.name, cut.turns, cut.bytes / 1e6, *pairs))
    return PrintedTable(
        "prediction",
        "loss of speed in halves, %: predicted by the engine / simulated; turns of the rank with the most, MB in the "
        f"busier direction; of classes B and C {sites_predict.near(times, sites_scatter.jobs(quick))}",
        ("class C", "turns/s", "MB/s", *map(heading, chosen)),
        lines,
    )


def jobs_table(found: Sequence[JobsOutcome]) -> PrintedTable:
    """Four programs, by who decides."""
    names = {"stay": "as placed", "inter-site-traffic": "paper's rule", "predicted-loss": "ours"}
    programs = sorted(found[0].ended)
    lines = [
        (
            f"{each.length} x",
            names[each.policy],
            *(each.ended[program] for program in programs),
            each.total,
            each.moves,
            each.copying,
            ", ".join(each.spread),
        )
        for each in sorted(found, key=lambda each: each.length)
    ]
    return PrintedTable(
        "four",
        "four programs submitted together: seconds until each has ended, until all have; guests moved, seconds of "
        "copying",
        ("benchmark", "decided by", *programs, "all", "moved", "copying", "on both sites afterwards"),
        lines,
        ("decided by", "on both sites afterwards"),
    )


def shared_table(times: IterationTimes, found: Sequence[JobsOutcome]) -> PrintedTable:
    """The WAN's model compared with SMPI."""
    from topolane_studies import sites_jobs

    return PrintedTable(
        "shared",
        "the four as placed, speed in % of one site's: in halves alone, together under SMPI and together by the model "
        "of a shared WAN",
        ("program", "alone", "SMPI", "model"),
        list(sites_jobs.shared(times, found)),
    )


def levels_table(found: Sequence[LevelsLine]) -> PrintedTable:
    """Two-level collectives compared with flat ones."""
    from topolane_studies import sites

    lines = [
        (
            line.collective,
            line.size,
            line.placement,
            *(f"{1e3 * flat:.1f} / {1e3 * two:.1f}" for flat, two in line.seconds.values()),
        )
        for line in found
    ]
    return PrintedTable(
        "collectives",
        "collectives of 32 ranks on two sites, ms, flat (MPICH's) / two-level, by latency, with TCP's window",
        ("call", "bytes", "ranks in", *(f"{1e3 * latency:g} ms" for latency in sites.LATENCIES)),
        lines,
        ("ranks in",),
    )


def arrivals_table(found: Sequence[ArrivalsOutcome]) -> PrintedTable:
    """Programs that come and go, by who decides."""
    from topolane_studies import sites_arrivals

    lines = []
    for who in sites_arrivals.POLICIES:
        mean = sites_arrivals.means(found, who)
        lines.append((who, mean["total"] / 3600, *(mean[name] for name in MEANS)))
    return PrintedTable(
        "arrivals",
        "programs that come and go, means over seeds: hours until all have ended, run / run on one site, "
        "(wait + run) / run on one site; guests moved, programs of which guests moved, guests that came back, "
        "and within a quarter of an hour",
        ("decided by", "hours", "stretch", "slowdown", "moved", "programs", "came back", "soon"),
        lines,
    )


MEANS = ("stretch", "slowdown", "moves", "programs_moved", "returned", "flaps")
