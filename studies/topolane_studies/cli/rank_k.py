"""`topolane paper rank-k`: the paper's tables next to the predictions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click
from topolane.cli import common

from topolane_studies.cli.judged import print_rows

if TYPE_CHECKING:
    from topolane_studies.rank_k import RankKStudy
    from topolane_studies.rank_k_tables import RankKTable


@click.command("rank-k")
@common.json_option
def command(as_json: bool) -> None:
    """Cores per node under contention for the interface (NPB IS on two clusters)."""
    from topolane_studies import rank_k, rank_k_choices
    from topolane_studies.rank_k_tables import ETHERNET, TABLES

    study = rank_k.study()
    rows, sensitivity = rank_k_choices.rows(study), rank_k_choices.sensitivity()
    if as_json:
        cells = [cell for _, _, cells in rank_k.cells(study) for cell in cells]
        common.print_json(
            {
                "assumed": rank_k.ASSUMED,
                "calibrated": {name: dataclasses.asdict(node) for name, node in study.nodes.items()},
                "rows": [dataclasses.asdict(row) for row in (*cells, *rows)],
                "sensitivity": [
                    {"change": name, "right": right, "seconds": cost} for name, right, cost in sensitivity
                ],
            }
        )
        return
    for table in TABLES:
        print_rank_k_table(study, table)
    print_rows(rows)
    common.print_table(
        ("the choices with", "right", "their measured seconds"),
        [[name, str(right), f"{cost:,.2f}"] for name, right, cost in sensitivity],
    )
    for name, node in study.nodes.items():
        shapes = ", ".join(sorted(rank_k.CALIBRATED[name, "C"]))
        click.echo(
            f"calibrated on {shapes} of {name} class C: a message alone {node.flow / 1e6:,.1f} MB/s, a copy "
            f"{node.copy / 1e6:,.1f} MB/s, memory {node.memory / 1e9:,.2f} GB/s, penalty {node.penalty}"
            + (f", cable between switches {node.trunk / 1e6:,.1f} MB/s" if name == ETHERNET else "")
        )
    click.echo("core-seconds: of 4x1 of each table")
    for assumption in rank_k.ASSUMED:
        click.echo(f"assumed: {assumption}")


def print_rank_k_table(study: RankKStudy, table: RankKTable) -> None:
    """One table of the paper next to the predictions; < is chosen, * the truly best."""
    from topolane_studies import rank_k

    lines = []
    for of, predicted, cells in rank_k.cells(study):
        if of != table:
            continue
        row, total = predicted.row, cells[0]
        processes = row.processes
        marks = "<" if study.chosen(table, processes) == row else ""
        marks += "*" if table.best(processes) == row else ""
        ours = [cell.ours for cell in cells] if predicted.refusal is None else [total.ours, "", ""]
        pairs = [text for cell, our in zip(cells, ours) for text in (cell.paper, our)]
        verdicts = ["failed" if cell.verdict == "differs" else cell.verdict for cell in cells]
        why = next((cell.why for cell in cells if cell.why), "")
        lines.append([str(processes), row.shape, marks, *pairs, " / ".join(verdicts), why])
    click.echo(
        f"NPB IS class {table.name} on {table.cluster}: seconds, paper and ours; < chosen, * truly best"
    )
    common.print_table(
        ("P", "nodes x k", "", "total", "ours", "coll.", "ours", "p-p", "ours", "verdicts", "why"),
        lines,
        text_columns=("", "verdicts", "why"),
    )
