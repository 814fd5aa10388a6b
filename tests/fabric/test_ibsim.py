"""A machine survives a real InfiniBand subnet: ibsim runs it, opensm sweeps it, ibnetdiscover sees it."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOLS = ("ibsim", "opensm", "ibnetdiscover", "timeout")
PLACES = ("lib*/umad2sim", "lib/*/umad2sim")
SHIMS = [shim for place in PLACES for shim in Path("/usr").glob(f"{place}/libumad2sim.so")]

needs_a_subnet = pytest.mark.skipif(
    not SHIMS or not all(map(shutil.which, TOOLS)),
    reason="needs ibsim, opensm and ibnetdiscover: packages ibsim-utils, opensm, infiniband-diags",
)

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


def topolane(*arguments: str | Path) -> str:
    command = [Path(sys.executable).parent / "topolane", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def shape(machine: str | Path) -> tuple[int, str, list[list[dict[str, str | int]]]]:
    """Nodes, their names, and name and node range of every group of every level."""
    shown = json.loads(topolane("machine", "show", machine, "--json"))
    return shown["nodes"], shown["node_names"], shown["levels"]


def cabling(machine: Path) -> list[str]:
    """The lines of the machine's TOML that give its shape, its cables and which are missing."""
    keys = ("children", "parents", "cables", "missing", "  [")
    lines = topolane("machine", "convert", machine, "--to", "toml").splitlines()
    return [line for line in lines if line.startswith(keys)]


def discover(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # Clients wait for a simulator that does not answer, and then ignore SIGTERM.
    command = ["timeout", "-k", "2", "30", "ibnetdiscover"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(MACHINE)
    return path


@pytest.fixture
def subnet(toy: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which the InfiniBand tools see the machine."""
    net = tmp_path / "toy.net"
    net.write_text(topolane("machine", "convert", toy, "--to", "ibsim-net"))
    environment = {
        **os.environ,
        "IBSIM_SOCKNAME": f"topolane-{os.getpid()}",
        "OSM_TMP_DIR": str(tmp_path),
        "OSM_CACHE_DIR": str(tmp_path),
    }
    # -N counts hosts and switches.
    command = ["ibsim", "-s", "-n", "-N", "80", "-S", "40", "-P", "800", str(net)]
    with (tmp_path / "ibsim.log").open("w") as log:
        simulator = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        client = {**environment, "LD_PRELOAD": str(SHIMS[0])}
        for _ in range(50):
            assert simulator.poll() is None, (tmp_path / "ibsim.log").read_text()
            if discover(client).returncode == 0:
                break
            time.sleep(0.2)
        yield client
    finally:
        simulator.kill()
        simulator.wait()


@needs_a_subnet
def test_a_subnet_manager_sees_the_machine(toy: Path, subnet: dict[str, str], tmp_path: Path) -> None:
    sweep = ["timeout", "-k", "2", "30", "opensm", "-o", "-R", "ftree", "-f", str(tmp_path / "log")]
    subprocess.run(sweep, env=subnet, check=True, stdout=subprocess.DEVNULL)
    found = discover(subnet)
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
