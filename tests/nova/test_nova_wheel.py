"""The wheel topolane-nova: all that runs inside Nova's services, and nothing that they do not have."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("nova", reason="the extra nova-test is not installed")

ROOT = Path(__file__).parents[2]
VERSION = importlib.metadata.version("topolane")
INSIDE = """
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("click", "matplotlib", "polars", "rich", "tomlkit"):
            raise ModuleNotFoundError(f"{name} is no requirement of topolane-nova")
sys.meta_path.insert(0, Absent())
import topolane.nova
assert topolane.nova.__file__.startswith(sys.argv[1]), topolane.nova.__file__
for module in sys.argv[2:]:
    importlib.import_module(module)
import numpy
from topolane.nova.group_placement import GroupPlacement
from topolane.nova.topology import Topology
machine = topolane.Machine.of("toy", [([f"leaf{leaf}"], [f"h{leaf}.{place}" for place in range(3)]) for leaf in range(2)])
print(GroupPlacement(Topology.of(machine), "isolated-hop-bytes", False, [], 3).plan(numpy.ones(6, numpy.uint32)))
"""
PLUGIN = ("filter", "weigher", "extra_specs", "config", "measured_sources")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """What `make wheel` makes of topolane and cuts out of it, from the modules of this tree."""
    whole = tmp_path / f"topolane-{VERSION}-cp310-abi3-manylinux_2_34_x86_64.whl"
    info = f"topolane-{VERSION}.dist-info"
    installed = importlib.metadata.distribution("topolane")
    with zipfile.ZipFile(whole, "w") as made:
        for file in (ROOT / "python" / "topolane").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                made.write(file, file.relative_to(ROOT / "python"))
        for name in ("entry_points.txt", "WHEEL"):
            made.writestr(f"{info}/{name}", installed.read_text(name) or "")
        made.write(ROOT / "LICENSE", f"{info}/licenses/LICENSE")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "nova_wheel.py", whole], check=True, capture_output=True, text=True
    )
    return Path(done.stdout.strip())


def test_the_plugin_runs_where_only_nova_and_numpy_are(wheel: Path, tmp_path: Path) -> None:
    """Filter, weigher, checks of extra specs, options and readers of measured traffic come from the wheel, and place a group."""
    there = tmp_path / "there"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", there]
    subprocess.run([*pip, wheel], check=True)
    modules = [f"topolane.nova.{name}" for name in PLUGIN]
    done = subprocess.run(
        [sys.executable, "-c", INSIDE, there, *modules],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(there)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] in ("[0, 1, 2]", "[3, 4, 5]")


def test_it_has_what_nova_finds_by_entry_points_and_no_command(wheel: Path) -> None:
    """And needs numpy alone, but for what Python 3.10 lacks."""
    with zipfile.ZipFile(wheel) as read:
        names = read.namelist()
        points = read.read(f"topolane_nova-{VERSION}.dist-info/entry_points.txt").decode()
        needs = [
            line
            for line in read.read(f"topolane_nova-{VERSION}.dist-info/METADATA").decode().splitlines()
            if line.startswith("Requires-Dist")
        ]
    assert "topolane.nova.extra_specs" in points and "topolane.nova.config:list_opts" in points
    assert "console_scripts" not in points
    assert [line for line in needs if "python_version" not in line] == ["Requires-Dist: numpy>=2.0,<3"]
    assert not [
        name for name in names if name.startswith(("topolane/cli/", "topolane/report/", "topolane/slurm/"))
    ]
