"""Which number of cores per node the model chooses for the rank-k paper's programs, and what simple rules choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane_studies.judging import direction, rank
from topolane_studies.rank_k import CALIBRATED, FIGURES, GIGABIT, RankKStudy, gave, study
from topolane_studies.rank_k_tables import ETHERNET, INFINIBAND, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from topolane_studies import PaperRow
    from topolane_studies.rank_k import Predicted
    from topolane_studies.rank_k_tables import Measured, RankKTable

    Rule = Callable[[RankKTable, Sequence[Predicted]], Measured]
    """Chooses among the rows of one P that fit a node's memory."""

SWITCH = {ETHERNET: 8, INFINIBAND: 4}
"""Nodes of a switch, as assumed."""


def shortest(_: RankKTable, rows: Sequence[Predicted]) -> Measured:
    """Ours: the row that is predicted to be the shortest."""
    return min(rows, key=lambda p: p.total).row


def one_switch(table: RankKTable, rows: Sequence[Predicted]) -> Measured:
    """As many nodes as there are, on one switch: what a rule without a model would take."""
    inside = (p.row for p in rows if p.row.nodes <= SWITCH[table.cluster])
    return max(inside, key=lambda row: row.nodes)


def fixed(k: int) -> Rule:
    """Always k cores of a node: the next measured number where k is none, else the greatest."""

    def choose(_: RankKTable, rows: Sequence[Predicted]) -> Measured:
        wider = [p.row for p in rows if p.row.k >= k]
        return (
            min(wider, key=lambda row: row.k) if wider else max((p.row for p in rows), key=lambda row: row.k)
        )

    return choose


RULES = {
    "ours": shortest,
    "all nodes of one switch": one_switch,
    **{f"always {k}": fixed(k) for k in (1, 2, 4, 8)},
}


def sizes(found: RankKStudy) -> list[tuple[RankKTable, list[Predicted]]]:
    """For every table and P, the rows."""
    return [
        (table, [p for p in found.predicted[table] if p.row.processes == processes])
        for table in TABLES
        for processes in table.sizes()
    ]


def choices(found: RankKStudy, rule: Rule = shortest) -> list[tuple[Measured, Measured]]:
    """For every table and P: the row that a rule chooses, and the truly best."""
    return [
        (rule(table, [p for p in rows if p.refusal is None]), table.best(rows[0].row.processes))
        for table, rows in sizes(found)
    ]


def cost(found: RankKStudy, rule: Rule = shortest) -> float:
    """Measured seconds of the rows that are chosen."""
    return sum(chosen.total for chosen, _ in choices(found, rule))


def why_given(table: RankKTable, rows: Sequence[Predicted]) -> str:
    """Why the choice of a P does not count; empty if it is held out."""
    if any(p.row.shape in CALIBRATED[table.cluster, table.name] for p in rows):
        return "a parameter was taken from a row of this P"
    if any(p.refusal for p in rows):
        return "the memory of a node, which refuses a row of this P, is assumed"
    return ""


def compared(found: RankKStudy) -> list[tuple[str, int, int, float]]:
    """Every rule: choices right, those of them that are held out, measured seconds."""
    tested = [not why_given(table, rows) for table, rows in sizes(found)]
    lines = []
    for name, rule in RULES.items():
        right = [chosen == best for chosen, best in choices(found, rule)]
        lines.append((name, sum(right), sum(map(min, right, tested)), cost(found, rule)))
    return lines


def orders(found: RankKStudy) -> list[PaperRow]:
    """For every table, whether the rows of each P stand in the measured order, by the three figures.

    A refused row is in no order. Two rows that gave a parameter are not compared.
    """
    lines = []
    for table in TABLES:
        for name in FIGURES:
            groups = []
            for rows in (rows for of, rows in sizes(found) if of == table):
                fitted = [p for p in rows if gave(table, p.row, name)]
                others = [p for p in rows if p not in fitted]
                # No table has two other rows next to two fitted ones, so no pair comes twice.
                for group in [[*others, p] for p in fitted] or [others]:
                    paper = {p.row.shape: getattr(p.row, name) for p in group}
                    groups.append((paper, {p.row.shape: getattr(p, name) for p in group if not p.refusal}))
            what = f"{table.cluster} {table.name}: order of the {name.replace('_', '-')} times of each P"
            refused = sum(p.refusal is not None for p in found.predicted[table])
            lines.append(rank(what, groups, why=f"{refused} refused rows are in no order" if refused else ""))
    return lines


def rows(found: RankKStudy) -> list[PaperRow]:
    """The choices, next to those of the rule without a model, and the orders."""
    made = zip(sizes(found), choices(found), choices(found, one_switch))
    return [
        *(
            direction(
                f"{table.cluster} {table.name}, P = {best.processes}: best nodes x k",
                best.shape,
                chosen == best,
                chosen.shape,
                f"all nodes of one switch: {rival.shape}",
                given=why_given(table, of_size),
            )
            for (table, of_size), (chosen, best), (rival, _) in made
        ),
        *orders(found),
    ]


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
        right = sum(chosen == best for chosen, best in choices(changed))
        found.append((name, right, cost(changed)))
    return found
