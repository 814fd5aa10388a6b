"""Runs studies again: the page of all rows has what they print. Studies of SMPI's are compared in their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane_studies import rows_page
from topolane_studies.cli.every import studies

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "paper-rows.md"


@pytest.mark.parametrize("name", ["sc18", "sc18-network", "jigsaw", "gang"])
def test_the_rows_of_the_page_are_those_of_a_run(name: str) -> None:
    found = [rows_page.cells(row) for row in studies()[name](False, None)]
    assert rows_page.read(rows_page.page({name: found}))[name] == rows_page.read(PAGE.read_text())[name]
