"""The studies of papers are a part of their own: `topolane paper` works with them and says what is missing without."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("words", [[], ["sc18"], ["jigsaw", "--seeds", "1"], ["--no-such-option"]])
def test_without_the_studies_the_command_says_how_to_get_them(words: list[str]) -> None:
    """Without the package, every call of `topolane paper` ends in one sentence that names what to install."""
    code = (
        "import sys\n"
        "sys.modules['topolane.studies'] = None\n"
        "from topolane.cli import main\n"
        f"sys.argv = ['topolane', 'paper', *{words!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("topolane: the studies of papers are not installed: install the wheel")
    assert "topolane-studies" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_two_distributions_have_one_version() -> None:
    """topolane-studies belongs to the topolane of the same version."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    assert (project["version"], project["dependencies"]) == (version, [f"topolane=={version}"])


def test_the_wheel_of_the_studies_has_all_of_them_and_nothing_else(tmp_path: Path) -> None:
    """The wheel topolane-studies holds every file of the package, C sources too, and no other module."""
    pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is not installed")
    tree = tmp_path / "python"
    package = Path("topolane") / "studies"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python" / package, tree / package, ignore=ignored)
    for file in ("pyproject.toml", "topolane/__init__.py", "topolane/run.py"):
        shutil.copy(ROOT / "python" / file, tree / file)
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*words, "--wheel-dir", tmp_path, tree], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("topolane_studies-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for path in (tree / package).rglob("*") if path.is_file())
    assert names == {path.relative_to(tree).as_posix() for path in files}
