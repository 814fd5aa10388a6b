"""How long the documentation of the core is, and which of its pages matter most."""

from __future__ import annotations

import re
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
DOCS = TREE / "docs"
MOST_WORDS = 70_000
WINGS = ("Several sites", "Gangs", "Studies of papers")
"""Sections of mkdocs.yml whose pages only a wing needs."""


def pages_of_wings() -> set[Path]:
    """The pages in the sections of the wings."""
    nav = (TREE / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    sections = re.findall(r"^  - ([^\n]+):\n((?:      - .*\n)+)", nav, re.MULTILINE)
    assert set(WINGS) <= {name for name, _ in sections}
    return {
        DOCS / page for name, pages in sections if name in WINGS for page in re.findall(r"- (\S+\.md)", pages)
    }


def test_pages_of_the_core_have_at_most_70000_words() -> None:
    """The core can be read: what is new replaces what it repeats."""
    core = set(DOCS.rglob("*.md")) - pages_of_wings()
    assert sum(len(page.read_text().split()) for page in core) <= MOST_WORDS


def test_the_name_of_a_page_says_whether_a_wing_needs_it() -> None:
    """So `ls` and `grep` find the pages of the core without mkdocs.yml."""
    named = {page for page in DOCS.rglob("*.md") if re.search(r"sites|gang|xen|paper", page.stem)}
    assert named == pages_of_wings()


def test_the_index_marks_ten_pages() -> None:
    """A reader with one hour knows where to begin: ten numbered pages, each of them there."""
    marked = re.findall(r"^\d+\. \[[^]]+\]\(([^)#]+)\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert len(set(marked)) == 10
    assert [page for page in marked if not (DOCS / page).is_file()] == []
