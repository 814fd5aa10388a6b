"""The tests that the pages of exact rules name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
REFERENCE = TREE / "docs" / "reference"


@pytest.mark.parametrize(("page", "at_least"), [("semantics.md", 60), ("sites-semantics.md", 12)])
def test_every_rule_names_a_test_that_exists(page: str, at_least: int) -> None:
    """A reader who looks for the test of a rule finds it: `crate/file: test`, or `test` in the file named before."""
    text = (REFERENCE / page).read_text().partition("\n## ")[2]
    sources: list[str] = [""]
    found = 0
    for span in re.findall(r"`([^`]+)`", text):
        named = re.fullmatch(r"(?:(\w+)/(\w+))?(?:: )?(\w*)", " ".join(span.split()))
        if named is None or not (named[1] or re.fullmatch(r"[a-z]+(_[a-z0-9]+){2,}", named[3])):
            continue
        if named[1]:
            path = TREE / "crates" / named[1] / "tests" / named[2]
            sources = [
                file.read_text() for file in (path.with_suffix(".rs"), *path.rglob("*.rs")) if file.exists()
            ]
            assert sources, f"no tests {span}"
        assert any(re.search(rf"\b{named[3]}\b", source) for source in sources), span
        found += 1
    assert found > at_least
