"""The tables of `topolane paper gang`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane.cli.table import PrintedTable

from topolane_gang.study import gang

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topolane_gang.study.gang_causes import Cause, Other
    from topolane_gang.study.gang_studies import Coupled, Even, PolicyMix, Seen


def every(seen: Mapping[str, Seen], causes: Sequence[Cause], mixes: Sequence[Other]) -> list[PrintedTable]:
    """All tables of what was seen on each kind of cores."""
    if not seen:
        return []
    found = [
        even_table({where: one.even for where, one in seen.items()}),
        coupled_table({where: one.coupled for where, one in seen.items()}),
        mixed_table({where: one.mixed for where, one in seen.items()}),
    ]
    return [*found, causes_table(causes), mixes_table(mixes)] if causes else found


def even_table(found: Mapping[str, Sequence[Even]]) -> PrintedTable:
    """The micro-benchmark."""
    return PrintedTable(
        "even",
        f"{gang.EVEN_JOBS} domains over-subscribing the cores: iterations that end more than "
        f"{gang.ITERATION:g} s after the others of the job",
        ("cores", "policy", "iterations", "late", "late (%)", "worst lag (ms)"),
        [
            (where, one.policy, one.iterations, one.late, 100 * one.share, 1e3 * one.worst)
            for where, each in found.items()
            for one in each
        ],
        ("policy",),
    )


def coupled_table(found: Mapping[str, Sequence[Coupled]]) -> PrintedTable:
    """Barrier-coupled jobs."""
    lines = []
    for where, each in found.items():
        for interval in gang.INTERVALS:
            own = [one for one in each if one.interval == interval]
            shares = [" ".join(f"{share:.1%}" for share in one.shares) for one in own]
            lines.append((where, 1e3 * interval, own[0].alone, *shares))
    return PrintedTable(
        "coupled",
        "two barrier-coupled jobs: the iterations of each, of a fair half of what it does alone",
        ("cores", "barrier every (ms)", "alone (1/s)", *gang.POLICIES),
        lines,
    )


def mixed_table(found: Mapping[str, Sequence[PolicyMix]]) -> PrintedTable:
    """The CoEVP-like mix."""
    names = [job.name for job in gang.MIX.jobs(2, gang.SECONDS)]
    return PrintedTable(
        "mix",
        "the CoEVP-like mix: seconds from arrival to end (mean, and of each job), from first instruction to end "
        "(mean), and until all have ended",
        ("cores", "policy", "mean run time", *names, "first to end", "all"),
        [
            (where, one.policy, one.turnaround, *one.each, one.running, one.last)
            for where, each in found.items()
            for one in each
        ],
        ("policy",),
    )


def causes_table(found: Sequence[Cause]) -> PrintedTable:
    """Where the poster's effect comes from."""
    return PrintedTable(
        "causes",
        "where the lag comes from: the micro-benchmark under the credit scheduler and under gang, simulated",
        ("what", "cores", "credit: late (%)", "worst lag (ms)", "gang: late (%)", "worst lag (ms) "),
        [
            (
                one.what,
                one.cores,
                100 * one.credit.share,
                1e3 * one.credit.worst,
                100 * one.gang.share,
                1e3 * one.gang.worst,
            )
            for one in found
        ],
    )


def mixes_table(found: Sequence[Other]) -> PrintedTable:
    """What the mix does to the answer."""
    return PrintedTable(
        "mixes",
        "other mixes, simulated: mean run time, then until all have ended (s)",
        ("mix", "cores", *gang.POLICIES, *(f"{policy}: all" for policy in gang.POLICIES)),
        [
            (one.what, one.cores, *(mix.turnaround for mix in one.under), *(mix.last for mix in one.under))
            for one in found
        ],
    )
