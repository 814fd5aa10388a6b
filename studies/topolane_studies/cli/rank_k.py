"""`topolane paper rank-k`: the paper's tables next to the predictions."""

from __future__ import annotations

import dataclasses

import click
from topolane.cli import common
from topolane.cli.explained import ExplainedCommand

from topolane_studies.cli import judged


@click.command(
    "rank-k",
    cls=ExplainedCommand,
    examples={
        "The figures of the paper and ours": "",
        "Draw them": "--out figures",
    },
)
@click.option(
    "--out", help="A directory for the figures of bandwidth by processes of a node, and their points."
)
@common.json_option
def command(out: str | None, as_json: bool) -> None:
    """Cores per node under contention for the interface (NPB IS on two clusters)."""
    from topolane_studies import rank_k, rank_k_choices, rank_k_figures
    from topolane_studies.rank_k_tables import ETHERNET

    with common.outputs(out, rank_k_figures.OWN) as folder:
        study = rank_k.study()
        if folder is not None:
            rank_k_figures.write(folder, study)
    rows, sensitivity = rank_k.rows(study), rank_k_choices.sensitivity()
    rules = rank_k_choices.compared(study)
    if as_json:
        common.print_json(
            {
                "assumed": rank_k.ASSUMED,
                "calibrated": {name: dataclasses.asdict(node) for name, node in study.nodes.items()},
                "rows": judged.rows_json(rows),
                "rules": [
                    {"rule": name, "right": right, "held_out": held_out, "seconds": cost}
                    for name, right, held_out, cost in rules
                ],
                "sensitivity": [
                    {"change": name, "right": right, "seconds": cost} for name, right, cost in sensitivity
                ],
            }
        )
        return
    judged.print_rows(rows)
    held_out = sum(not rank_k_choices.why_given(*of_size) for of_size in rank_k_choices.sizes(study))
    sizes = len(rank_k_choices.sizes(study))
    common.print_table(
        ("rule", f"right\nof {sizes}", f"held out\nof {held_out}", "their measured seconds"),
        [[name, str(right), str(held), f"{cost:,.2f}"] for name, right, held, cost in rules],
    )
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
