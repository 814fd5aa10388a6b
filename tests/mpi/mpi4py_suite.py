"""mpi4py's own tests, from its source package, with and without the library: the same must pass.

    python tests/mpi/mpi4py_suite.py [--mpi mpich] [--only REGEX] [--ranks 4] [--folder DIR] [--json]

The first time, pip builds mpi4py for each MPI into a folder, which is kept (--folder) or removed in the end. Two
levels are forced (`always`) over several site maps, for what is chosen by size otherwise would seldom be tried.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mpis import AROUND, EVERY, Mpi
from topolane.mpi import build, launch

VERSION = "mpi4py==4.1.2"
NUMPY = "numpy==2.4.6"
LIMIT = 1800.0
"""Seconds of one run."""
# What starts processes needs slots that a launcher on one machine may not have; in util_sync, whose ranks wait for
# each other by one-sided calls, MPICH 4.0.2 hangs without the library.
SKIPPED = "spawn|dynproc|util_pool|util_sync"
RESULT = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
BAD = re.compile(r"^(?:FAIL|ERROR): (\S+) \(([\w.]+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Outcome:
    mpi: str
    library: str
    sites: str
    ran: int
    """Tests of one rank; all have the same."""
    skipped: int
    failed: tuple[str, ...]
    """On any rank."""
    finished: bool


def prepared(mpi: Mpi, folder: Path) -> tuple[Path, Path]:
    """A Python that has mpi4py of this MPI, and the package's sources."""
    environment = folder / mpi.name
    python = environment / "bin" / "python"
    if not (environment / "built").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        # pip would take what it has built for one MPI for the other.
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        around = os.environ | {"MPICC": f"mpicc.{mpi.name}"}
        subprocess.run([*pip, "install", "--no-binary", "mpi4py", NUMPY, VERSION], check=True, env=around)
        (environment / "built").touch()
    sources = folder / "mpi4py"
    if not sources.exists():
        with tempfile.TemporaryDirectory(dir=folder) as draft:
            # The build is not needed again, only the tests that are packed with it.
            fetch = [
                python,
                "-m",
                "pip",
                "--quiet",
                "download",
                "--no-deps",
                "--no-binary",
                "mpi4py",
                VERSION,
            ]
            subprocess.run([*fetch, "--dest", draft], check=True)
            # Of tarfile, Python 3.11.2 knows no filters yet.
            subprocess.run(["tar", "-xzf", next(Path(draft).glob("*.tar.gz")), "-C", draft], check=True)
            next(path for path in Path(draft).iterdir() if path.is_dir()).rename(sources)
    return python, sources


def command_of(mpi: Mpi, python: Path, said: Path, ranks: int, only: str | None) -> list[str]:
    """Every rank says what it finds in a file of its own: through the launcher, lines of ranks get mixed."""
    words = [python, "-W", "ignore", "test/main.py", "-q", "-e", SKIPPED, *(["-i", only] if only else [])]
    return mpi.launch(Path("sh"), "-c", f'exec "$0" "$@" > "{said}/$$" 2>&1', *words, ranks=ranks)


def outcome(mpi: Mpi, sites: str | None, folder: Path, ranks: int, only: str | None) -> Outcome:
    """One run of the suite: plain, or in two levels over those sites."""
    python, sources = prepared(mpi, folder)
    with tempfile.TemporaryDirectory(prefix="said-", dir=folder) as said:
        command = command_of(mpi, python, Path(said).absolute(), ranks, only)
        return run(mpi, command, sites, sources, Path(said))


def run(mpi: Mpi, command: list[str], sites: str | None, sources: Path, said: Path) -> Outcome:
    around = dict(os.environ)
    if sites is not None:
        library = build.library(build.mpicc_for(command))
        settings = {"TOPOLANE_MPI_SITES": sites, "TOPOLANE_MPI_TWO_LEVEL": "always"}
        command, around = launch.with_library(command, library, settings)
    process = subprocess.Popen(command, cwd=sources, env=around | AROUND)
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        print(f"{mpi.name} {sites or 'plain'}: not done within {LIMIT:.0f} s", file=sys.stderr)
    finally:
        process.terminate()
        process.wait()
    texts = [path.read_text(errors="replace") for path in said.iterdir()]
    results = [RESULT.search(text) for text in texts]
    found = [result.groups() for result in results if result]
    bad = {f"{where.split('.')[0]}.{test}" for text in texts for test, where in BAD.findall(text)}
    figures = [dict(pair.split("=") for pair in (note or "").split(", ") if "=" in pair) for _, note in found]
    return Outcome(
        mpi.name,
        "no" if sites is None else "two levels",
        sites or "",
        max((int(ran) for ran, _ in found), default=0),
        max((int(each.get("skipped", 0)) for each in figures), default=0),
        tuple(sorted(bad)),
        bool(found) and len(found) == len(texts),
    )


def nap(folder: Path) -> None:
    """Has whatever is started from here on sleep where it would spin: ranks are more than cores."""
    made = folder.absolute() / "nap.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, "-o", made, Path(__file__).with_name("nap.c"), "-ldl"], check=True)
    os.environ["LD_PRELOAD"] = str(made)


def table(outcomes: list[Outcome]) -> str:
    lines = [
        "| MPI | library | sites of ranks | ran | passed | skipped | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        failed = len(one.failed) if one.finished else "did not finish"
        passed = one.ran - one.skipped - len(one.failed)
        lines.append(
            f"| {one.mpi} | {one.library} | {one.sites} | {one.ran} | {passed} | {one.skipped} | {failed} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", choices=[one.name for one in EVERY], help="this one only")
    parser.add_argument("--only", metavar="REGEX", help="test modules whose names match")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where builds are kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ranks = range(options.ranks)
    maps = [
        None,
        ",".join(str(2 * rank // options.ranks) for rank in ranks),
        ",".join(str(rank % 2) for rank in ranks),
    ]
    maps.append(",".join(str((rank + 1) % 3) for rank in ranks))
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="topolane-") as draft:
        folder = options.folder or Path(draft)
        folder.mkdir(parents=True, exist_ok=True)
        nap(folder)
        for mpi in EVERY:
            if not mpi.missing and options.mpi in (None, mpi.name):
                for sites in maps:
                    outcomes.append(outcome(mpi, sites, folder, options.ranks, options.only))
                    failed = outcomes[-1].failed if outcomes[-1].finished else "did not finish"
                    print(f"{mpi.name} {sites or 'plain'}: {failed or 'nothing fails'}", file=sys.stderr)
    print(json.dumps([dataclasses.asdict(one) for one in outcomes]) if options.json else table(outcomes))
    plain = {one.mpi: one for one in outcomes if one.library == "no"}
    same = all(dataclasses.replace(one, library="no", sites="") == plain[one.mpi] for one in outcomes)
    sys.exit(not same)


if __name__ == "__main__":
    main()
