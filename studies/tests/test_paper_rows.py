"""Runs studies again: the pages have what they print. The rows of sites are compared in the tests of that study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from topolane.compiling import Missing
from topolane_studies import nova, nova_smpi, nova_study, rows_page, sc18
from topolane_studies.cli.every import studies
from topolane_studies.sc18 import AWARE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "paper-rows.md"


@pytest.mark.parametrize("name", ["sc18", "sc18-network", "jigsaw", "gang"])
def test_the_rows_of_the_page_are_those_of_a_run(name: str) -> None:
    found = [rows_page.cells(row) for row in studies()[name](False, None)]
    assert rows_page.read(rows_page.page({name: found}))[name] == rows_page.read(PAGE.read_text())[name]


def cells(line: str) -> list[str]:
    """Of a line of a table of Markdown."""
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_the_rows_and_tables_of_vms_are_those_of_a_run(tmp_path: Path) -> None:
    """All kernels with all seeds on InfiniBand, where alone rows are judged, and where it is asked whether BT gains most."""
    try:
        programs = nova_smpi.build(tmp_path)
    except Missing as missing:
        pytest.skip(f"SimGrid: {missing}")
    planned = nova_study.plan(programs, list(nova_smpi.KERNELS), nova_study.seeds_of(False), quick=False)
    settings = [nova.CHOSEN, *nova.COMPARED]
    found = nova_study.study([one for one in planned if one[0] in settings])
    times = {setting: [each for each in found if each.setting == setting] for setting in settings}
    rows = [rows_page.cells(row) for row in nova_study.rows(times[nova.CHOSEN])]
    assert rows_page.read(rows_page.page({"nova": rows}))["nova"] == rows_page.read(PAGE.read_text())["nova"]

    def changes(of: list[nova_study.KernelTimes]) -> list[str]:
        return [re.sub("^-0.0$", "0.0", f"{nova_study.change(each):.1f}") for each in of]

    tables = (DOCS / "explanation" / "hop-bytes-paper.md").read_text().split("| | bt |")[1:]
    lines = [[cells(line) for line in table.partition("\n\n")[0].splitlines()[2:]] for table in tables]
    assert [line[1:] for line in lines[0]] == [
        [f"{each.mean('ours'):.2f}" for each in times[nova.CHOSEN]],
        [f"{100 * each.spread('stock'):.1f}" for each in times[nova.CHOSEN]],
        changes(times[nova.CHOSEN]),
    ]
    assert lines[2] == [[setting.name, *changes(times[setting])] for setting in nova.COMPARED]


@pytest.mark.parametrize(("queue", "column"), [("easy-strict", 3), ("easy-pinned", 4), ("fcfs", 5)])
def test_the_other_queues_are_those_of_a_run(
    queue: str, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What isolation costs under overload. The rows have `easy`."""
    monkeypatch.setattr(sc18, "PAIRS", [pair for pair in sc18.PAIRS if pair.overloaded])
    monkeypatch.setattr(sc18, "COLUMNS", {name: sc18.COLUMNS[name] for name in (sc18.OBLIVIOUS, AWARE)})
    found = sc18.study(range(1, 6), queue=queue)

    def means(key: str) -> list[float]:
        ratios = [found.against_oblivious(pair, AWARE, key) for pair in sc18.PAIRS]
        return [sum(each) / len(each) for each in ratios]

    def ratio(key: str) -> str:
        return ", ".join(f"{mean:.2f}".removeprefix("0") for mean in means(key))

    def change(key: str) -> str:
        return ", ".join(f"{100 * (mean - 1):.1f}" for mean in means(key))

    text = (DOCS / "explanation" / "sc18-paper.md").read_text()
    table = text.partition("| isolated over oblivious, overloaded |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [cells(line)[column] for line in table[:4]] == [
        ratio("mean_wait"),
        ratio("mean_wait_by_work"),
        change("makespan"),
        change("utilization_while_waiting"),
    ]
