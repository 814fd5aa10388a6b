"""The page of all rows: what it says is what was run, and other pages count as it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import InputError
from topolane.cli import cli
from topolane_studies import judging, rank_k, rows_page
from topolane_studies.cli import every

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "paper-rows.md"
EXACT = judging.within_points(0.0)
ROWS = [
    judging.figure("given", 1.0, 1.0, EXACT, given="an input"),
    judging.figure("value | and side", 1.5, 1.2, EXACT, neutral=1.0),
    judging.direction("side", "longer", True, "2 h"),
    judging.missing("refused", "2", "no program", value=True),
]


def test_a_page_reads_back_and_counts_as_the_rows_do() -> None:
    """Given rows do not count, and what was not measured has failed."""
    text = rows_page.joined("", {"one": ROWS}, ["one"])
    read = rows_page.read(text)["one"]
    assert rows_page.counted("one", read) == judging.tally("one", ROWS)
    assert [row[:5] for row in read[1:]] == [
        ["value / and side", "1.50", "1.20", "failed", "agrees"],
        ["side", "longer", "2 h", "", "agrees"],
        ["refused", "2", "-", "not measured", ""],
    ]


def test_studies_that_are_not_run_keep_their_rows() -> None:
    first = rows_page.joined("", {"one": ROWS, "two": ROWS[:1]}, ["one", "two"])
    second = rows_page.joined(first, {"two": ROWS[2:]}, ["one", "two"])
    assert rows_page.read(second)["one"] == rows_page.read(first)["one"]
    assert len(rows_page.read(second)["two"]) == 2 and list(rows_page.read(second)) == ["one", "two"]


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "rows.md"
    for _ in range(2):
        done = CliRunner().invoke(cli, ["paper", "all", "--only", "rank-k", "--page", str(file)])
        assert done.exit_code == 0, done.output
    rows = rows_page.read(file.read_text())
    assert rows["rank-k"] == rows_page.read(PAGE.read_text())["rank-k"]


def test_a_page_that_cannot_be_written_is_refused_before_any_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[bool] = []
    monkeypatch.setattr(every, "studies", lambda: {"one": lambda quick, _: ran.append(quick) or ROWS})
    file = tmp_path / "missing" / "rows.md"
    done = CliRunner().invoke(cli, ["paper", "all", "--page", str(file)])
    assert isinstance(done.exception, InputError) and str(file) in str(done.exception)
    assert ran == []


def test_the_rows_of_rank_k_are_those_of_a_run() -> None:
    found = [rows_page.cells(row) for row in rank_k.rows(rank_k.study())]
    assert rows_page.read(rows_page.page({"rank-k": found})) == {
        "rank-k": rows_page.read(PAGE.read_text())["rank-k"]
    }


def test_the_summary_is_that_of_the_rows() -> None:
    """The page is not edited by hand: what it sums up follows from its rows, and the page on judging says the same."""
    text = PAGE.read_text()
    assert rows_page.page(rows_page.read(text)) == text
    table = (
        (DOCS / "explanation" / "paper-figures.md")
        .read_text()
        .partition("| study | ")[2]
        .partition("\n\n")[0]
    )
    now = {
        line[0].strip(): line[-2:]
        for line in (row.strip("| ").split(" | ") for row in table.splitlines()[2:])
    }
    summary = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    for study, _, _, *counts in summary[: len(now)]:
        assert now[study] == counts, study


def test_pages_of_studies_count_as_the_rows_do() -> None:
    """The counts that the pages give in words."""
    rows = rows_page.read(PAGE.read_text())
    tallies = {name: rows_page.counted(name, of) for name, of in rows.items()}

    def page(name: str) -> str:
        return " ".join((DOCS / "explanation" / f"{name}.md").read_text().split())

    sites, network, sc18, nova = (tallies[name] for name in ("sites", "sc18-network", "sc18", "nova"))
    assert (
        f"{sites.tested} rows are tested: {sites.values_agree} of {sites.values} values agree, and "
        f"{sites.sides_agree} of {sites.sides} directions"
    ) in page("sites-paper")
    isolation = page("sc18-paper")
    assert (
        f"{network.values_agree} of {network.values} tested values agree, and {network.sides_agree} of "
        f"{network.sides} directions"
    ) in isolation
    assert f"{sc18.given} of the {sc18.given + sc18.tested} rows are given" in isolation
    assert f"| in value, of {sc18.values} | {sc18.values_agree} |" in isolation
    assert f"| in direction, of {sc18.sides} | {sc18.sides_agree} |" in isolation
    assert f"{nova.values_agree} of {nova.values} tested values agree" in page("hop-bytes-paper")
