"""A machine survives a real InfiniBand subnet: ibsim runs it, opensm sweeps it, ibnetdiscover sees it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from subnet import ask, needs_a_subnet, running, sweep, topolane

# Three levels, less bandwidth with every one, parallel switches and parallel cables.
MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [4, 3, 3]
parents = [1, 2, 1]
cables = [1, 1, 2]
missing = [[1, 4, 0, 1, 0], [2, 1, 0, 0, 1]]
"""


def shape(machine: str | Path) -> tuple[int, str, list[list[dict[str, str | int]]]]:
    """Nodes, their names, and name and node range of every group of every level."""
    shown = json.loads(topolane("machine", "show", machine, "--json"))
    return shown["nodes"], shown["node_names"], shown["levels"]


def cabling(machine: Path) -> list[str]:
    """The lines of the machine's TOML that give its shape, its cables and which are missing."""
    keys = ("children", "parents", "cables", "missing", "  [")
    lines = topolane("machine", "convert", machine, "--to", "toml").splitlines()
    return [line for line in lines if line.startswith(keys)]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(MACHINE)
    return path


@pytest.fixture
def subnet(toy: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which the InfiniBand tools see the machine."""
    with running(toy, tmp_path) as environment:
        yield environment


@needs_a_subnet
def test_a_subnet_manager_sees_the_machine(toy: Path, subnet: dict[str, str], tmp_path: Path) -> None:
    sweep(subnet, "ftree")
    found = ask(subnet, "ibnetdiscover")
    assert found.returncode == 0, found.stderr
    seen = tmp_path / "seen.ibnetdiscover"
    seen.write_text(found.stdout)

    nodes, _, levels = shape(seen)
    assert (nodes, len(levels)) == (36, 3)
    assert shape(seen) == shape(toy)
    # Slurm's format holds the names and the tree: the same ones must have come back.
    tree = topolane("machine", "convert", seen, "--to", "slurm")
    assert tree == topolane("machine", "convert", toy, "--to", "slurm")
    # The subnet runs at its own speed; parents, parallel and missing cables are the machine's.
    assert cabling(seen) == cabling(toy)
    assert any(line.startswith("  [1, 4, 0, 1, 0]") for line in cabling(seen))


@pytest.mark.parametrize("machine", ["cab", "fat-tree(radix=8)"])
def test_every_format_keeps_nodes_and_groups(machine: str, tmp_path: Path) -> None:
    for form, ending in [("toml", "toml"), ("slurm", "conf"), ("ibnetdiscover", "ibnetdiscover")]:
        path = tmp_path / f"machine.{ending}"
        path.write_text(topolane("machine", "convert", machine, "--to", form))
        assert shape(path) == shape(machine), form
