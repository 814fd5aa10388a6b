"""Distributions with commands of their own: what `topolane` says of them where they are installed, and where not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from topolane import extras, wings

ROOT = Path(__file__).parents[2]
FOLDERS = ("sites", "gang", "studies")
PROJECTS = {wing: tomllib.loads((ROOT / wing / "pyproject.toml").read_text()) for wing in FOLDERS}
WITHOUT_WINGS = """
import sys
from topolane import wings
from topolane.cli import main
wings.added = lambda group: {}
sys.argv[0] = "topolane"
main()
"""


def alone(*words: str) -> subprocess.CompletedProcess[str]:
    """`topolane` where no wing is installed."""
    return subprocess.run([sys.executable, "-c", WITHOUT_WINGS, *words], capture_output=True, text=True)


@pytest.mark.parametrize("words", [(), ("run",), ("--no-such-option",), ("--help",)])
@pytest.mark.parametrize("name", wings.DISTRIBUTIONS[wings.COMMANDS])
def test_without_a_wing_its_command_says_how_to_get_it(name: str, words: tuple[str, ...]) -> None:
    """Every call ends in one sentence that names what to install."""
    done = alone(name, *words)
    assert (done.returncode, done.stdout) == (2, "")
    distribution = wings.DISTRIBUTIONS[wings.COMMANDS][name]
    assert done.stderr.startswith(
        f"topolane: 'topolane {name}' is part of {distribution}, which is not installed: "
    )
    assert done.stderr.count("\n") == 1


def test_without_wings_no_list_names_their_commands() -> None:
    """The list of commands has those that can be run, and a wrong name is refused as always."""
    listed = {line.split()[0] for line in alone("--help").stdout.splitlines() if line.startswith("  ")}
    assert "compare" in listed and not listed & set(wings.DISTRIBUTIONS[wings.COMMANDS])
    assert "No such command 'site'" in alone("site").stderr


@pytest.mark.parametrize("wing", FOLDERS)
def test_a_list_of_commands_imports_no_wing_and_says_what_the_command_says_itself(wing: str) -> None:
    """The sentence is the description of the distribution, so that no module of the wing has to be loaded for it."""
    names = PROJECTS[wing]["project"]["entry-points"][wings.COMMANDS]
    if not set(names) <= set(wings.added(wings.COMMANDS)):
        pytest.skip(f"topolane-{wing} is not installed")
    for name in names:
        listed = wings.added(wings.COMMANDS)[name]
        assert listed.load().get_short_help_str(1000) == listed.sentence
    code = (
        "import sys; from topolane.cli import cli; cli(['--help'], standalone_mode=False); "
        f"print('topolane_{wing}' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *shown, loaded = done.stdout.splitlines()
    assert loaded == "False" and any(line.startswith(f"  {name} ") for line in shown for name in names)


@pytest.mark.parametrize("group", wings.DISTRIBUTIONS)
def test_what_is_found_are_the_entry_points_of_installed_distributions(group: str) -> None:
    """The short way to them finds what importlib.metadata finds."""
    points = metadata.entry_points(group=group)
    assert {name: (one.module, one.attribute) for name, one in wings.added(group).items()} == {
        point.name: (point.module, point.attr) for point in points
    }


@pytest.mark.parametrize("wing", FOLDERS)
def test_a_wing_and_topolane_have_one_version(wing: str) -> None:
    """A wing belongs to the topolane of the same version, and the core knows what to install for its commands."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = PROJECTS[wing]["project"]
    assert (project["version"], project["dependencies"][0]) == (version, f"topolane=={version}")
    for group, points in project["entry-points"].items():
        for name in points:
            assert wings.DISTRIBUTIONS[group][name] == project["name"] == f"topolane-{wing}"


def test_the_command_that_is_printed_installs_what_a_wing_requires() -> None:
    """A clone has the wings without the packages that they require."""
    required = metadata.requires("topolane-sites") or []
    said = str(extras.missing("this command", "topolane-sites", ImportError("No module named 'x'")))
    assert said.startswith("this command needs the Python packages of topolane-sites: No module named 'x'; ")
    command = said.partition("install them with: ")[2].replace("'", "").split(" ")
    assert command[4:] == [one for one in required if not one.startswith("topolane")] != []


@pytest.mark.parametrize("wing", FOLDERS)
def test_the_wheel_of_a_wing_has_all_of_it_and_nothing_else(wing: str, tmp_path: Path) -> None:
    """The wheel holds every file of the package, C sources too, and no test."""
    pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is not installed")
    tree, package = tmp_path / wing, f"topolane_{wing}"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / wing, tree, ignore=ignored)
    words = ["wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", tmp_path]
    subprocess.run([sys.executable, "-m", "pip", *words, tree], check=True, capture_output=True)
    (wheel,) = tmp_path.glob(f"{package}-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for path in (tree / package).rglob("*") if path.is_file())
    assert names == {path.relative_to(tree).as_posix() for path in files}
