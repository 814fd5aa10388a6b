"""Which part may import which: no driver imports what sits on top of it or another driver, and no package imports a wing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from suites import HOSTS

TREE = Path(__file__).parents[2]
PACKAGE = TREE / "python" / "topolane"
WINGS = {f"topolane_{wing}": TREE / wing for wing in ("gang", "sites", "studies")}
"""Packages of distributions of their own, and the folders that they and their tests lie in."""

READING = {
    "findings",
    "_engine",
    "texts",
    "parsing",
    "reading",
    "files",
    "locks",
    "units",
    "compiling",
    "extras",
    "wings",
    "untrusted",
}
"""What reads and writes files, and what knows words for numbers."""
RUNNING = READING | {
    "options",
    "sources",
    "policy",
    "traffic",
    "routes",
    "outages",
    "failures",
    "run",
    "sweep",
    "mapping",
    "networks",
    "moment",
    "panels",
    "baseline",
    "inference",
    "noise",
    "verdict",
}
"""What `import topolane` offers."""

MAY_IMPORT = {
    "cluster": RUNNING,
    "calibrate": RUNNING,
    # It measures programs and decides nothing, so drivers that need what it measures may import it.
    "mpi": RUNNING,
    **{host: RUNNING | {"cluster"} for host in HOSTS},
    "nova": RUNNING | {"cluster", "mpi"},
    # A bounded HTTP server, for those that serve more than metrics.
    "web": RUNNING | {"cluster", "mpi"},
    "report": RUNNING | {"cluster", "calibrate", "mpi"},
    # It shows what drivers read and decides nothing.
    "serve": RUNNING | {"cluster", "mpi", "web", "slurm", "kubernetes"},
    # It says what drivers understand, for `topolane --version`.
    "about": RUNNING | {"slurm"},
    "writing": RUNNING | {"report"},
    "cli": RUNNING | {"cluster", "calibrate", "mpi", "about", *HOSTS, "serve", "report", "writing"},
    "topolane_gang": RUNNING | {"cluster", "mpi", "report", "topolane_studies"},
    "topolane_gang.cli": RUNNING
    | {"cluster", "mpi", "report", "cli", "topolane_gang", "topolane_studies.cli"},
    "topolane_studies": RUNNING | {"cluster", "calibrate", "mpi", "report", "cli"},
    "topolane_studies.cli": RUNNING | {"cluster", "mpi", "report", "cli", "topolane_studies"},
    "topolane_sites": RUNNING | {"cluster", "mpi", "web"},
    "topolane_sites.cli": RUNNING | {"cluster", "mpi", "cli", "topolane_sites"},
}
"""The arrows. A part that is not named here is one of RUNNING and may import only RUNNING."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module by its full name."""
    for package in (PACKAGE, *(folder / name for name, folder in WINGS.items())):
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def part_of(name: str) -> str | None:
    """The part that a module belongs to: in a wing, its commands are one. None for what is not ours."""
    first, _, rest = name.partition(".")
    second = rest.partition(".")[0]
    if first in WINGS:
        return f"{first}.cli" if second == "cli" else first
    return second if first == "topolane" else None


def imported(name: str, path: Path) -> Iterator[str]:
    """Full names that a module imports anywhere, in functions and for types too."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def arrows() -> dict[tuple[str, str], set[str]]:
    """(part that imports, part that is imported), and the modules that do so."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, path in modules():
        for other in imported(name, path):
            part, target = part_of(name), part_of(other)
            if part and target is not None and part != target:
                found[part, target].add(name)
    return found


def test_every_import_is_an_allowed_arrow() -> None:
    """Imports between the parts of the package are those of the table, wherever they stand in a module."""
    found = arrows()
    assert ("topolane_sites", "mpi") in found and ("cli", "slurm") in found  # it sees them
    wrong = {
        f"{module} imports {target or 'topolane'}"
        for (part, target), names in found.items()
        for module in names
        # `import topolane` is for the command line and for wings: it is the package that users see.
        if not (target == "" and part.split(".")[0] in ("cli", *WINGS))
        and target not in MAY_IMPORT.get(part, RUNNING)
    }
    assert wrong == set()


def test_no_two_parts_import_each_other() -> None:
    """The packages have no circles: what a part imports never imports it, not through others either."""
    below: dict[str, set[str]] = defaultdict(set)
    for part, target in arrows():
        below[part].add(target)
    packages = {*WINGS, *(path.name for path in PACKAGE.iterdir() if path.is_dir())}
    for part in packages:
        seen, left = set[str](), list(below[part])
        while left:
            other = left.pop()
            if other not in seen:
                seen.add(other)
                left += below[other]
        assert part not in seen, f"{part} is imported by what it imports"


BELOW_PAPER = {"topolane_gang.cli.paper", "topolane_gang.cli.paper_xen", "topolane_gang.study.gang_judged"}
"""Modules that only `topolane paper` loads, a command of topolane_studies; they may import that."""


def test_no_part_imports_a_wing_from_outside() -> None:
    """Each wing can be left away: neither the core nor another wing imports it, except below a command of it."""
    found = arrows()
    assert ("topolane_sites.cli", "topolane_sites") in found  # it sees them
    outside = {
        f"{part} imports {target}"
        for (part, target), names in found.items()
        if target.split(".")[0] in WINGS
        and part.split(".")[0] != target.split(".")[0]
        and not (target.split(".")[0] == "topolane_studies" and names <= BELOW_PAPER)
    }
    assert outside == set()


def test_no_test_of_the_core_imports_a_wing() -> None:
    """The tests of the core run where no wing is installed."""
    wrong = {
        f"{path.relative_to(TREE)} imports {name}"
        for path in (TREE / "tests").rglob("*.py")
        for name in imported(path.stem, path)
        if name.split(".")[0] in WINGS
    }
    assert wrong == set()
