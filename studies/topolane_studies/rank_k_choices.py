"""What choosing the cores per node costs in the rank-k paper's measured seconds, ours and fixed rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies import PaperRow
from topolane_studies.judging import rank
from topolane_studies.rank_k import CALIBRATED, GIGABIT, RankKStudy, study
from topolane_studies.rank_k_tables import TABLES

if TYPE_CHECKING:
    from topolane_studies.rank_k_tables import Measured, RankKTable


def fixed(found: RankKStudy, k: int, *, within_memory: bool) -> float:
    """Measured seconds in all where k is always taken: the next measured k where there is none."""
    total = 0.0
    for table in TABLES:
        for processes in table.sizes():
            rows = [row for row in table.rows if row.processes == processes]
            if within_memory:
                rows = [row for row in rows if found.fits(table, row)]
            wider = [row for row in rows if row.k >= k]
            pick = min(wider, key=lambda row: row.k) if wider else max(rows, key=lambda row: row.k)
            total += pick.total
    return total


def choices(found: RankKStudy) -> list[tuple[RankKTable, int, Measured, Measured]]:
    """For every table and P: the chosen and the truly best row."""
    return [
        (table, processes, found.chosen(table, processes), table.best(processes))
        for table in TABLES
        for processes in table.sizes()
    ]


def cost(found: RankKStudy) -> float:
    """Measured seconds of the rows that are chosen."""
    return sum(chosen.total for _, _, chosen, _ in choices(found))


def orders(found: RankKStudy) -> list[PaperRow]:
    """For every table, whether the rows of each P stand in the measured order, by the three figures."""
    lines = []
    for table in TABLES:
        for name in ("total", "collective", "point_to_point"):
            groups = []
            for processes in table.sizes():
                rows = [p for p in found.predicted[table] if p.row.processes == processes and not p.refusal]
                groups.append(
                    (
                        {p.row.shape: getattr(p.row, name) for p in rows},
                        {p.row.shape: getattr(p, name) for p in rows},
                    )
                )
            what = (
                f"order of the {name.replace('_', '-')} times of each P, {table.cluster} class {table.name}"
            )
            lines.append(rank(what, groups))
    return lines


def rows(found: RankKStudy) -> list[PaperRow]:
    """How good the choices are."""
    made = choices(found)
    right = [chosen == best for _, _, chosen, best in made]
    held_out = [
        chosen == best
        for table, processes, chosen, best in made
        if not any(
            row.shape in CALIBRATED[table.cluster, table.name]
            for row in table.rows
            if row.processes == processes
        )
    ]
    ours = cost(found)
    least = sum(best.total for _, _, _, best in made)
    lines = [
        PaperRow(
            "chosen k is the truly best",
            f"{len(made)}",
            f"{sum(right)}",
            "agrees" if all(right) else "differs",
            f"{sum(held_out)} of the {len(held_out)} of which no row gave a parameter",
            "all",
        ),
        PaperRow(
            "measured seconds of the choices",
            f"{least:,.2f} at best",
            f"{ours:,.2f}",
            "agrees" if ours <= least else "differs",
            f"{ours - least:,.2f} s more than the best k each time",
            "none",
        ),
    ]
    rivals = {"always 1": (1,), "always q = 8": (8,), "best fixed k": (1, 2, 4, 8)}
    for within in (False, True):
        for name, ks in rivals.items():
            k = min(ks, key=lambda k: fixed(found, k, within_memory=within))
            theirs = fixed(found, k, within_memory=within)
            lines.append(
                PaperRow(
                    f"against {name}, {'kept off full memory' if within else 'as it is'} (s)",
                    f"{theirs:,.2f} (k = {k})",
                    f"{ours:,.2f}",
                    "better" if ours < theirs else "differs",
                    "the next measured k where k does not fit the cluster",
                    "less",
                )
            )
    return lines + orders(found)


CHANGES: dict[str, dict[str, float | str]] = {
    "as calibrated": {},
    "the cable between switches as fast as a node's": {"trunk": GIGABIT},
    "no penalty at interfaces": {"penalty": '{ model = "fair" }'},
    "memory without end": {"memory": 1e15},
    "copies without cost": {"copy": 1e15, "memory": 1e15},
}


def sensitivity() -> list[tuple[str, int, float]]:
    """What the choices hang on: parameter changed, choices right, measured seconds of the choices."""
    found = []
    for name, change in CHANGES.items():
        changed = study(change)
        right = sum(chosen == best for _, _, chosen, best in choices(changed))
        found.append((name, right, cost(changed)))
    return found
