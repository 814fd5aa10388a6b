"""The runs of `topolane paper nova`, and the paper's figures next to them."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import PaperRow, nova, nova_smpi
from topolane_studies.judging import direction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from topolane_studies import Verdict
    from topolane_studies.nova import NovaSetting

PAPER_MEAN, PAPER_MOST, PAPER_SPREAD, PAPER_SPREAD_OURS = -0.14, -0.40, 0.42, 0.03
UNCHANGED = 0.05
"""A kernel is unchanged if its mean time changes by less; the paper does not say what it calls so."""
POINTS = 0.10
"""A figure agrees if it lies within ten points. Fixed before the first run, as was UNCHANGED."""
QUICK = 10
"""--quick runs a tenth of the iterations."""


STEADY = "BT computes most of its time here: with faster VMs or fewer cables it hangs on the network more"
OWN = "nothing but the network varies here, and all links that the group uses are its own"
SEND_MORE = "they send more bytes or messages than BT for what they compute, so what slows BT slows them more"


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
    """The runs of every (setting, kernel) by who places: all kernels as chosen, BT under every change."""
    wanted = [(nova.CHOSEN, kernel) for kernel in kernels]
    if "bt" in kernels and not quick:
        wanted += [(change, "bt") for change in nova.CHANGES]
    planned = []
    for setting, kernel in wanted:
        iterations, _ = nova_smpi.KERNELS[kernel]
        count = max(1, iterations // QUICK) if quick else iterations
        runs: dict[str, list[nova_smpi.KernelRun]] = {}
        for seed in seeds:
            for who, hosts in nova.placements(setting, seed).items():
                runs.setdefault(who, []).append(
                    nova_smpi.KernelRun(programs, kernel, count, setting, seed, hosts)
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


def rows(times: Sequence[KernelTimes], missing: str | None) -> list[PaperRow]:
    """The paper's figures next to ours; `missing` says why there are no times."""
    chosen = {each.kernel: each for each in times if each.setting == nova.CHOSEN}
    why = missing or "BT is not among the kernels asked for"
    found = [hop_bytes_row(), *bt_rows(chosen.get("bt"), why), unchanged_row(chosen, missing), serial_row()]
    if "bt" in chosen:
        found += direction_rows(chosen["bt"], [of for kernel, of in chosen.items() if kernel != "bt"])
    return found


def direction_rows(bt: KernelTimes, others: Sequence[KernelTimes]) -> list[PaperRow]:
    """What the paper says of BT, without the figures."""
    mean, most = bt.change("ours"), bt.change_of_most("ours")
    stock, ours = bt.spread("stock"), bt.spread("ours")
    found = [
        direction("BT, mean time", "shorter", mean < 0, f"{mean:+.1%}"),
        direction(
            "BT, longest time", "falls more than the mean", most < mean, f"{most:+.1%}, mean {mean:+.1%}"
        ),
        direction("BT, spread", "narrower", ours < stock, f"{ours:.1%}, by stock {stock:.1%}"),
    ]
    if others:
        next_most = min(others, key=lambda each: each.change("ours"))
        change = next_most.change("ours")
        shown = f"{mean:+.1%}; {next_most.kernel} {change:+.1%}"
        found.append(direction("BT among the kernels", "gains most", mean < change, shown, SEND_MORE))
    return found


def serial_row() -> PaperRow:
    """DC and UA."""
    why = "NPB has them for one process only (serial, OpenMP): in one VM they send nothing, wherever it is"
    return PaperRow("DC and UA unchanged", "2 of the 10", "-", "not measured", why, "none")


def hop_bytes_row() -> PaperRow:
    """All VMs on one switch: pairs, each one switch apart."""
    paper = nova.VMS * (nova.VMS - 1) // 2
    ours = nova.hop_bytes(nova.counts(nova.placements(nova.CHOSEN, 1)["ours"]))
    verdict: Verdict = "agrees" if ours == paper else "differs"
    return PaperRow("hop-bytes of 16 VMs on one switch", f"{paper}", f"{ours}", verdict, "", "none")


def bt_rows(bt: KernelTimes | None, missing: str) -> list[PaperRow]:
    """What placement does to BT."""
    papers = {
        "BT, mean time by ours against stock": PAPER_MEAN,
        "BT, longest time by ours against stock": PAPER_MOST,
        "BT, spread by stock": PAPER_SPREAD,
        "BT, spread by ours": PAPER_SPREAD_OURS,
    }
    within = f"{POINTS * 100:.0f} points"
    if bt is None:
        return [
            PaperRow(what, f"{paper:.0%}", "", "not measured", missing, within)
            for what, paper in papers.items()
        ]
    ours = (bt.change("ours"), bt.change_of_most("ours"), bt.spread("stock"), bt.spread("ours"))
    found = []
    for (what, paper), value, why in zip(papers.items(), ours, ("", STEADY, STEADY, OWN)):
        verdict: Verdict = "agrees" if abs(value - paper) <= POINTS else "differs"
        reason = why if verdict == "differs" or why == OWN else ""
        found.append(PaperRow(what, f"{paper:.0%}", f"{value:.1%}", verdict, reason, within))
    return found


def unchanged_row(chosen: dict[str, KernelTimes], missing: str | None) -> PaperRow:
    """The other kernels."""
    what, paper, tolerance = "kernels other than BT unchanged", "10 of 10", f"mean within {UNCHANGED:.0%}"
    others = [each for kernel, each in chosen.items() if kernel != "bt"]
    if not others:
        return PaperRow(
            what, paper, "", "not measured", missing or "no other kernel was asked for", tolerance
        )
    changed = [each for each in others if abs(each.change("ours")) > UNCHANGED]
    ours = f"{len(others) - len(changed)} of {len(others)}"
    if not changed:
        return PaperRow(what, paper, ours, "agrees", "", tolerance)
    named = ", ".join(f"{each.kernel} {each.change('ours'):+.0%}" for each in changed)
    return PaperRow(what, paper, ours, "differs", f"{named}: {SEND_MORE}", tolerance)
