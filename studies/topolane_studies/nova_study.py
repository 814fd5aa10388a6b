"""The runs of `topolane paper nova`, and the paper's figures next to them."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.compiling import Missing
from topolane.sweep import over

from topolane_studies import nova, nova_smpi
from topolane_studies.judging import direction, figure, missing, within_points, within_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from topolane_studies import PaperRow
    from topolane_studies.nova import NovaSetting

MEAN, MOST, SPREAD, SPREAD_OURS = -14.0, -40.0, 42.0, 3.0
"""The paper's figures of BT, per cent."""
OF_BT = within_share(0.25)
"""Of these figures. Fixed before the first run on InfiniBand, as were the labels of all rows."""
UNCHANGED = within_points(5.0)
"""Of a mean time in per cent; the paper does not say what it calls unchanged."""
QUICK = 10
"""--quick runs a tenth of the iterations."""

COUNTED = "a count of pairs of VMs"
STEADY = (
    "here only the traffic of others varies from run to run, and on a switch of its own the group meets none"
)
SILENT = "EP sends a few bytes at its end: no placement can change it"
SERIAL = "NPB has it for one process only (serial, OpenMP)"


@dataclasses.dataclass(frozen=True)
class KernelTimes:
    """Simulated seconds of a kernel by who places, a value for every seed."""

    kernel: str
    iterations: int
    setting: NovaSetting
    seconds: dict[str, list[float]]

    def mean(self, who: str) -> float:
        """Mean of the runs, seconds."""
        return statistics.fmean(self.seconds[who])

    def most(self, who: str) -> float:
        """The longest run, seconds."""
        return max(self.seconds[who])

    def spread(self, who: str) -> float:
        """(longest - shortest) / longest: with another divisor the paper's figures contradict each other."""
        return (self.most(who) - min(self.seconds[who])) / self.most(who)

    def change(self, who: str) -> float:
        """Of the mean, against stock."""
        return self.mean(who) / self.mean("stock") - 1

    def change_of_most(self, who: str) -> float:
        """Of the longest run, against stock."""
        return self.most(who) / self.most("stock") - 1


def plan(
    programs: Path, kernels: Sequence[str], seeds: Sequence[int], quick: bool
) -> list[tuple[NovaSetting, str, dict[str, list[nova_smpi.KernelRun]]]]:
    """The runs of every (setting, kernel) by who places: all kernels on both networks, BT under every change, and all
    kernels where it is asked whether BT gains most.
    """
    wanted = [(setting, kernel) for setting in (nova.CHOSEN, nova.ETHERNET) for kernel in kernels]
    if not quick:
        wanted += [(change, "bt") for change in nova.CHANGES if "bt" in kernels]
        wanted += [(setting, kernel) for setting in nova.COMPARED for kernel in kernels]
    planned = []
    for setting, kernel in wanted:
        iterations, _ = nova_smpi.KERNELS[kernel]
        if quick or setting in nova.COMPARED:
            # More processes take as much longer to simulate.
            iterations //= QUICK * setting.processes
        count = max(1, iterations)
        runs: dict[str, list[nova_smpi.KernelRun]] = {}
        for seed in seeds:
            for who, hosts in nova.placements(setting, seed).items():
                ranks = tuple(host for host in hosts for _ in range(setting.processes))
                runs.setdefault(who, []).append(
                    nova_smpi.KernelRun(programs, kernel, count, setting, seed, ranks)
                )
        planned.append((setting, kernel, runs))
    return planned


def unique(
    planned: Sequence[tuple[NovaSetting, str, dict[str, list[nova_smpi.KernelRun]]]],
) -> list[nova_smpi.KernelRun]:
    """Every run once: the same placement with the same other VMs takes the same time."""
    runs = dict.fromkeys(run for _, _, by_who in planned for runs in by_who.values() for run in runs)
    return list(runs)


def study(
    planned: Sequence[tuple[NovaSetting, str, dict[str, list[nova_smpi.KernelRun]]]],
    *,
    workers: int | None = None,
    done: Callable[[], None] | None = None,
) -> list[KernelTimes]:
    """The simulated times of all runs."""
    runs = unique(planned)
    taken = dict(zip(runs, over(nova_smpi.seconds, runs, workers=workers, done=done)))
    return [
        KernelTimes(
            kernel,
            by_who["ours"][0].iterations,
            setting,
            {who: [taken[run] for run in of] for who, of in by_who.items()},
        )
        for setting, kernel, by_who in planned
    ]


def seeds_of(quick: bool) -> range:
    """The seeds of a run: the paper repeated each ten times."""
    return range(1, (3 if quick else 10) + 1)


def simulated(
    kernels: Sequence[str],
    seeds: Sequence[int],
    quick: bool,
    workers: int | None,
    counting: Callable[[int], AbstractContextManager[Callable[[], None] | None]],
) -> tuple[list[KernelTimes], str]:
    """The times, or none and the reason why. counting: of how many runs, yields what to call after each."""
    with tempfile.TemporaryDirectory(prefix="topolane-nova-") as name:
        try:
            programs = nova_smpi.build(Path(name))
        except Missing as absent:
            return [], str(absent)
        planned = plan(programs, kernels, seeds, quick)
        with counting(len(unique(planned))) as done:
            return study(planned, workers=workers, done=done), ""


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """What `topolane paper nova` judges."""
    kernels = list(nova_smpi.KERNELS)
    return rows(*simulated(kernels, seeds_of(quick), quick, workers, lambda _: contextlib.nullcontext()))


def rows(times: Sequence[KernelTimes], absent: str = "") -> list[PaperRow]:
    """The paper's figures next to ours; `absent` says why there are no times."""
    return [
        *counted_rows(),
        *bt_rows(times, absent),
        *(unchanged_row(times, kernel, absent) for kernel in nova_smpi.KERNELS if kernel != "bt"),
        *(missing(f"{name} unchanged", "0", SERIAL, value=True) for name in ("DC", "UA")),
        most_row(times, absent),
    ]


def counted_rows() -> list[PaperRow]:
    """Hop-bytes, which need no run."""
    splits, pairs = nova.splits(), nova.VMS * (nova.VMS - 1) // 2
    ours = nova.hop_bytes(nova.counts(nova.placements(nova.CHOSEN, 1)["ours"]))
    falls = splits[nova.VMS // 2 :] == sorted(splits[nova.VMS // 2 :], reverse=True)
    shown = f"{max(splits)} at even parts, {splits[-1]} at the end"
    what = "hop-bytes of 16 VMs on two switches"
    return [
        figure(
            "hop-bytes of 16 VMs on one switch", pairs, ours, within_points(0.0), form=".0f", given=COUNTED
        ),
        direction(what, "fall towards one switch", falls, shown, given=COUNTED),
    ]


def chosen(times: Sequence[KernelTimes], kernel: str) -> KernelTimes | None:
    """The times of a kernel as the paper's figures are held against."""
    return next((each for each in times if (each.kernel, each.setting) == (kernel, nova.CHOSEN)), None)


def elsewhere(times: Sequence[KernelTimes], kernel: str, figure_of: Callable[[KernelTimes], float]) -> str:
    """The same figure of a kernel in the other settings."""
    others = (each for each in times if each.kernel == kernel and each.setting != nova.CHOSEN)
    return "; ".join(f"{each.setting.name}: {figure_of(each):.1f}" for each in others)


def change(times: KernelTimes) -> float:
    """Of the mean by ours against stock, per cent."""
    return 100 * times.change("ours")


def bt_rows(times: Sequence[KernelTimes], absent: str) -> list[PaperRow]:
    """What placement does to BT."""
    bt = chosen(times, "bt")
    mean, most, spread = "BT, mean time (%)", "BT, longest time (%)", "BT, spread by stock (%)"
    if bt is None:
        why = absent or "not run (--kernel)"
        return [
            missing(mean, f"{MEAN:.0f}", why, value=True, side=True),
            missing(most, f"{MOST:.0f}", why, value=True),
            missing(spread, f"{SPREAD:.0f}", why, value=True),
        ]

    def of_bt(
        what: str,
        paper: float,
        figure_of: Callable[[KernelTimes], float],
        neutral: float | None = None,
        given: str = "",
    ) -> PaperRow:
        why = elsewhere(times, "bt", figure_of)
        return figure(what, paper, figure_of(bt), OF_BT, neutral=neutral, form=".1f", why=why, given=given)

    ours, stock = 100 * bt.spread("ours"), 100 * bt.spread("stock")
    longest = 100 * bt.change_of_most("ours")
    return [
        of_bt(mean, MEAN, change, neutral=0.0),
        of_bt(most, MOST, lambda each: 100 * each.change_of_most("ours")),
        of_bt(spread, SPREAD, lambda each: 100 * each.spread("stock")),
        of_bt("BT, spread by ours (%)", SPREAD_OURS, lambda each: 100 * each.spread("ours"), given=STEADY),
        direction("BT, spread", "narrower", ours < stock, f"{ours:.1f}, by stock {stock:.1f}", given=STEADY),
        direction(
            "BT, longest time",
            "falls more than the mean",
            longest < change(bt),
            f"{longest:.1f}, mean {change(bt):.1f}",
            given=STEADY,
        ),
    ]


def unchanged_row(times: Sequence[KernelTimes], kernel: str, absent: str) -> PaperRow:
    """Another kernel than BT."""
    what, found = f"{kernel.upper()} unchanged: mean time (%)", chosen(times, kernel)
    if found is None:
        return missing(what, "0", absent or "not run (--kernel)", value=True)
    why, given = elsewhere(times, kernel, change), SILENT if kernel == "ep" else ""
    return figure(
        what, 0.0, change(found), UNCHANGED, shown=("0", f"{change(found):+.1f}"), why=why, given=given
    )


def most_row(times: Sequence[KernelTimes], absent: str) -> PaperRow:
    """BT among all kernels."""
    what, claim = "BT among the kernels", "gains most"
    changes = {each.kernel: change(each) for each in times if each.setting == nova.CHOSEN}
    bt = changes.pop("bt", None)
    if bt is None or not changes:
        return missing(what, claim, absent or "not run (--kernel)", side=True)
    most = min(changes, key=lambda kernel: changes[kernel])
    return direction(what, claim, bt < changes[most], f"{bt:+.1f}; {most.upper()} {changes[most]:+.1f}")
