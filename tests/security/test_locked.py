"""What is installed for development is what was looked at: every package at one version, with its hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TREE = Path(__file__).resolve().parents[2]
WINGS = ("gang", "sites", "studies")
FILES = {
    "base": (),
    "test": ("dask", "kubernetes", "lint", "nova", "nova-test", "slurm", "test"),
    "libvirt": ("libvirt",),
    "docs": ("docs",),
}


def pinned(text: str) -> dict[str, set[str]]:
    """Versions by name, as PEP 503 writes names."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==([^\s;\\]+)", text, re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_package_that_was_changed_on_its_way_is_not_installed(name: str) -> None:
    """Whoever changes a package on its way to a developer's machine has it refused: every requirement of
    pyproject.toml, and what it requires in turn, is pinned with hashes (`make lock`)."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text())
    wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
    for extra in FILES[name]:
        wanted += project["project"]["optional-dependencies"][extra]
    for wing in WINGS if name == "test" else ():
        required = tomllib.loads((TREE / wing / "pyproject.toml").read_text())["project"]["dependencies"]
        wanted += [one for one in required if not one.startswith("topolane")]
    # Every environment begins with base.txt, which the other files do not repeat.
    text = "".join((TREE / "requirements" / f"{one}.txt").read_text() for one in sorted({"base", name}))
    locked = pinned(text)
    for requirement in map(Requirement, wanted):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions and all(map(requirement.specifier.contains, versions)), (
            f"{requirement}: run 'make lock'"
        )
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= len(locked)
    assert all("--hash=sha256:" in entry for entry in entries)


def test_make_installs_by_hash_only() -> None:
    """The Makefile installs nothing from a package index without hashes, but the tools that make and judge them."""
    lines = (TREE / "Makefile").read_text().replace("\\\n", " ").splitlines()
    installs = [line for line in lines if "pip install" in line or "$(PIP)" in line]
    loose = [line for line in installs if "$(PIP)" not in line and "--require-hashes" not in line]
    allowed = ("--no-deps --editable", "$(UV)", "$(PIP_AUDIT)", "$(COSMIC_RAY)")
    assert len(installs) > 4
    assert [line for line in loose if not line.rstrip().endswith(allowed)] == []
