"""Every row of a study is given with a reason, or tested, and made by `judging`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import topolane_studies
from topolane_studies import PaperRow, jigsaw, nova, nova_smpi, nova_study, rank_k, sites_study

FOLDER = Path(topolane_studies.__file__).parent


def hop_bytes_rows() -> list[PaperRow]:
    seconds = {"stock": [8.0, 10.0], "ours": [7.0, 7.0]}
    return nova_study.rows(
        [nova_study.KernelTimes(kernel, 1, nova.CHOSEN, seconds) for kernel in nova_smpi.KERNELS]
    )


def jigsaw_rows() -> list[PaperRow]:
    run = dict.fromkeys(jigsaw.KEYS, 1.0)
    rules = (jigsaw.FIRST_FIT, jigsaw.JIGSAW, jigsaw.GAINING)
    alone = {(load.name, rule.label): [run] for load in jigsaw.SYNTHETIC for rule in rules}
    return jigsaw.rows(jigsaw.JigsawResults(list(jigsaw.SYNTHETIC), list(rules), alone, {}, {}))


def sites_rows() -> list[PaperRow]:
    return sites_study.missing("nothing runs", quick=False)


@pytest.mark.parametrize(
    "rows_of", [hop_bytes_rows, jigsaw_rows, sites_rows, lambda: rank_k.rows(rank_k.study())]
)
def test_every_row_is_given_with_a_reason_or_tested(rows_of) -> None:
    """A row claims a value or a direction; if it is given, it says why; no two rows claim the same."""
    rows = rows_of()
    assert len({row.what for row in rows}) == len(rows)
    for row in rows:
        assert row.value is not None or row.side is not None, row.what
        assert row.given.strip() == row.given and (row.verdict == "given") == bool(row.given)
        assert "better" not in row.verdict
    assert any(row.given for row in rows) or rows_of in (jigsaw_rows, sites_rows)
    assert any(not row.given for row in rows)


def test_only_judging_makes_rows() -> None:
    made = [
        f"{module.name}:{node.lineno}"
        for module in FOLDER.glob("**/*.py")
        if module.name != "judging.py"
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "PaperRow"
    ]
    assert not made
