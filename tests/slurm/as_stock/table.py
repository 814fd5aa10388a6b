"""The table of what works as on stock Slurm: the same jobs and commands on topology/tree and on another setting.

    table.py                                        stock against stock: no row may differ
    table.py --conf SelectTypeParameters=CR_Socket  stock against another setting, or several
    table.py --policy isolated                      stock against topology/topolane with this policy for all jobs

Both clusters have 16 nodes on loopback and run at the same time. Slurm is that of --release (see other_version.sh) unless
--installed is given. The exit code is 1 if a row differs, and 2 for wrong options.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

import with_plugin
from live_cluster import RELEASE, Cluster, script
from live_cluster import Missing as MissingSlurm
from observed import NODES, Missing, Observed, differences, layout
from scenarios import SCENARIOS


@dataclass(frozen=True)
class Row:
    scenario: str
    title: str
    differences: list[str]
    missing: str
    """What did not come on stock Slurm: the scenario itself fails."""
    observations: int
    seconds: float

    @property
    def verdict(self) -> str:
        return "BROKEN" if self.missing else "differs" if self.differences else "same"


class Pair:
    """A stock cluster and another one."""

    def __init__(self, stock: Observed, other: Observed) -> None:
        self.both = (stock, other)
        self.pool = ThreadPoolExecutor(2)

    def row(self, name: str) -> Row:
        """Runs a scenario on both."""
        began = time.monotonic()
        absent = list(self.pool.map(lambda observed: _play(observed, name), self.both))
        stock, other = self.both
        found = list(differences(stock.seen, other.seen))
        if absent[1] and not absent[0]:
            found.insert(0, f"did not come on the second: {absent[1]}")
        title = (SCENARIOS[name].__doc__ or name).strip()
        return Row(name, title, found, absent[0], len(stock.seen), time.monotonic() - began)


def _play(slurm: Observed, name: str) -> str:
    """What did not come, if anything; the cluster is idle again afterwards."""
    slurm.seen, slurm.jobs = [], {}
    missing = ""
    for part in (lambda: SCENARIOS[name](slurm), slurm.clear, slurm.accounted):
        try:
            part()
        except Missing as error:
            missing = missing or str(error)
    return missing


@contextlib.contextmanager
def pair(directory: Path, settings: list[str], files: list[Path]) -> Iterator[Pair]:
    """Both clusters, up and idle."""
    options = [layout(), layout(*settings) + [word for file in files for word in ("--conf-file", file)]]
    directory.chmod(0o711)  # jobs of other users read their scripts in it
    places = [directory / "stock", directory / "other"]
    with contextlib.ExitStack() as ends, ThreadPoolExecutor(2) as pool:
        for place in places:
            ends.callback(lambda place=place: (place / "env").exists() and script("down", place))
        ups = [
            pool.submit(script, "up", NODES, place, *each)
            for place, each in zip(places, options, strict=True)
        ]
        for done in (up.result() for up in ups):
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
        both = [Observed(Cluster(place)) for place in places]
        for observed in both:
            observed.prepare()
        yield Pair(both[0], both[1])


def report(rows: list[Row]) -> str:
    width = max(len(row.title) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{row.title:{width}}  {row.verdict:8} {row.observations:3}  {row.seconds:5.1f} s")
        lines += [f"    {text}" for text in ([row.missing] if row.missing else []) + row.differences]
    same = sum(row.verdict == "same" for row in rows)
    return "\n".join([*lines, f"{same} of {len(rows)} rows are the same"])


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--conf", action="append", default=[], help="a line of slurm.conf of the other cluster"
    )
    parser.add_argument(
        "--policy", default="", help="compile the plugin, and use it with this policy in the other cluster"
    )
    parser.add_argument("--engine", type=Path, help="the plugin's libtopolane.so (by default it is compiled)")
    parser.add_argument(
        "--conf-file", action="append", default=[], type=Path, help="a file next to its slurm.conf"
    )
    parser.add_argument("--only", default="", help="scenarios, with commas")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--release", default=RELEASE, help="the release of Slurm, such as 26.05")
    parser.add_argument("--installed", action="store_true", help="the Slurm of this machine")
    parser.add_argument(
        "--keep", type=Path, help="an empty directory for both clusters, kept with their logs"
    )
    found = parser.parse_args(arguments)
    found.only = found.only.split(",") if found.only else list(SCENARIOS)
    for name in found.only:
        if name not in SCENARIOS:
            parser.error(f"there is no scenario '{name}': {', '.join(SCENARIOS)}")
    for file in (*found.conf_file, *([found.engine] if found.engine else [])):
        if not file.is_file():
            parser.error(f"{file} is not a file")
    return found


def main(arguments: list[str]) -> int:
    found = options(arguments)
    if not (found.installed or os.environ.get("SLURM_TREE")):
        entry = str(HERE.parent / "other_version.sh")
        os.environ["TOPOLANE_TEST_SLURM"] = found.release
        os.execv(entry, [entry, found.release, sys.executable, __file__, *arguments])
    rows: list[Row] = []
    with contextlib.ExitStack() as ends:
        directory = found.keep or Path(
            ends.enter_context(tempfile.TemporaryDirectory(prefix="stock-", dir="/tmp"))
        )
        directory.mkdir(parents=True, exist_ok=True)
        try:
            lines, files = (
                with_plugin.settings(found.policy, found.engine, directory) if found.policy else ([], [])
            )
            files += [file.resolve() for file in found.conf_file]
            both = ends.enter_context(pair(directory, [*lines, *found.conf], files))
        except (RuntimeError, MissingSlurm) as error:
            print(error, file=sys.stderr)
            return 2
        for name in found.only:
            rows.append(row := both.row(name))
            print(f"{row.verdict:8} {row.seconds:5.1f} s  {name} {row.missing}", file=sys.stderr, flush=True)
            for text in row.differences:
                print(f"    {text}", file=sys.stderr, flush=True)
    results: Any = [asdict(row) | {"verdict": row.verdict} for row in rows]
    print(json.dumps(results, indent=1) if found.json else report(rows))
    return 1 if any(row.verdict != "same" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
