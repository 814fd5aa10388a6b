"""Figures of README that another page prints."""

from __future__ import annotations

import re
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def test_the_table_of_options_has_the_figures_that_the_tutorial_prints() -> None:
    """Each row of README's table has the mean wait, the weighted wait and the utilisation while jobs wait of the tutorial's command with
    the same options, whose output `test_guide_commands.py` checks."""
    table = (TREE / "README.md").read_text().partition("| same month, no speed-up |")[2].partition("\n\n")[0]
    rows = [tuple(re.findall(r"\d+\.\d+", line.partition(" | ")[2])) for line in table.splitlines()[2:]]
    tutorial = (TREE / "docs/tutorials/first-comparison.md").read_text()
    printed = [
        (wait, by_work, use)
        for line in tutorial.splitlines()
        if (found := re.match(r" (?:first-fit|dedicated +easy) +(\S+) +(\S+) +\S+(?: +\S+%)? +(\S+)% ", line))
        for wait, by_work, use in [found.groups()]
    ]
    assert len(rows) == 4
    for row in rows:
        assert row in printed


def test_no_page_installs_topolane_from_an_index() -> None:
    """Topolane is in no package index: pages install from the clone or from a file."""
    for page in [TREE / "README.md", TREE / "CONTRIBUTING.md", *(TREE / "docs").rglob("*.md")]:
        found = re.search(r"pip install (?:-\S+ )*['\"]?topolane(?![\w-]*[-_]\*)\S*", page.read_text())
        assert found is None, f"{page.relative_to(TREE)}: {found[0] if found else ''}"
