"""A live driver never knows what a fat tree is: levels, groups and who crosses them are the engine's to know."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from suites import HOSTS

TREE = Path(__file__).parents[2]
DRIVERS = {name: TREE / "python" / "topolane" / name for name in (*HOSTS, "mpi")}
DRIVERS |= {wing: TREE / wing / f"topolane_{wing}" for wing in ("sites", "gang")}
OF_THE_TREE = {"depth", "levels", "crossing", "link_names"}
"""Attributes with which the rule of crossed groups, or a search of the tree, could be written a second time."""

OF_PICTURES = ("topolane.report", "topolane._engine")


def uses_of_the_tree(text: str) -> list[str]:
    """Where a module reads the levels and groups of a machine: line and name."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in OF_THE_TREE:
            found.append(f"{node.lineno}: .{node.attr}")
        called = node.func if isinstance(node, ast.Call) else None
        # A match of a regular expression has groups too, without a level.
        if isinstance(called, ast.Attribute) and called.attr == "groups" and (node.args or node.keywords):
            found.append(f"{node.lineno}: .groups()")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OF_PICTURES):
            names = {alias.name for alias in node.names} & {"crossings", "Subtree"}
            found += [f"{node.lineno}: {name}" for name in names]
    return found


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_reads_no_levels_and_groups(driver: str) -> None:
    modules = sorted(DRIVERS[driver].rglob("*.py"))
    found = {module.name: uses_of_the_tree(module.read_text(encoding="utf-8")) for module in modules}
    assert modules and {name: uses for name, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    "text",
    [
        "for start, end, name in machine.groups(1): pass",
        "levels = range(1, machine.depth + 1)",
        "picture.levels[0]",
        "state.crossing[0]",
        "from topolane.report.holders import crossings",
    ],
)
def test_what_is_looked_for_is_found(text: str) -> None:
    assert uses_of_the_tree(text)
    assert not uses_of_the_tree("found.groups(); machine.home(nodes); refusal.obstacles")
