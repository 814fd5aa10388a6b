"""Compares Topolane with other simulators on the same jobs, in the same run."""

from __future__ import annotations

import csv
import io
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from figures import ATLAS, SHORT_TIMES, SQUEEZED, Setting, figure, rates, whole_rates
from measure import BenchError, Cost, Row, cost

if TYPE_CHECKING:
    from collections.abc import Sequence

ACCASIM = "accasim==1.1.3"
RUNNER = Path(__file__).resolve().parent / "accasim" / "runner.py"
CASES = {
    "Atlas, first 5,000, first-fit, easy": (*ATLAS, "--limit", "5000"),
    "Atlas squeezed, first 5,000, first-fit, easy": SQUEEZED,
}


def install(scratch: Path) -> Path:
    """Makes a virtual environment with AccaSim. Returns its interpreter."""
    place = scratch / "accasim-venv"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", ACCASIM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{ACCASIM} does not install:\n{done.stderr[-500:]}")
    return python


def write_log(text: str, path: Path) -> int:
    """Writes a CSV log as the SWF that AccaSim reads, in which a processor is a node. Returns the number of
    jobs.

    AccaSim takes whole seconds and needs a walltime: the run time if the log has none. It reads zero as no
    value, so the times are at least 1 s.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    with path.open("w") as log:
        for row in rows:
            run = int(float(row["run"]))
            walltime = max(1, int(float(row["walltime"] or run)))
            submit, nodes = round(float(row["submit"])), row["nodes"]
            fields = (row["id"], submit, -1, min(run, walltime), nodes, -1, -1, nodes, walltime, -1)
            log.write(" ".join(map(str, (*fields, 1, 1, 1, 1, 1, 1, -1, -1))) + "\n")
    return len(rows)


def accasim(python: Path, log: Path, scratch: Path) -> Cost:
    """The cost of one run of AccaSim."""
    return cost([python, RUNNER, log, scratch / "accasim-out"], directory=scratch)


def compare(setting: Setting, python: Path, what: str, shape: Sequence[str]) -> list[Row]:
    """The rates of both on the same jobs, and their ratio."""
    assert setting.trace is not None
    text = setting.topolane("workload", "convert", setting.trace, *shape, "--to", "csv").output
    log = setting.scratch / "accasim.swf"
    jobs = write_log(text, log)
    empty = setting.scratch / "one-job.swf"
    empty.write_text(log.read_text().splitlines(keepends=True)[0])
    start = accasim(python, empty, setting.scratch).cpu
    whole = accasim(python, log, setting.scratch).cpu
    note = (setting.scratch / "accasim-out" / "stats-accasim.swf").read_text()
    arguments = ("--trace", setting.trace, *shape, "--policy", "first-fit", "--out", "peer", "--no-report")
    runs = setting.simulations(*arguments, times=SHORT_TIMES)
    ours, theirs = statistics.median(rates(runs)), jobs / (whole - start)
    counted = statistics.median(whole_rates(runs)) * whole / jobs
    return [
        Row("peers", f"{what}: AccaSim 1.1.3", "jobs/s CPU", (theirs,), note=note),
        Row("peers", f"{what}: Topolane", "jobs/s CPU", rates(runs)),
        Row("peers", f"{what}: ratio", "times", (ours / theirs,)),
        Row("peers", f"{what}: ratio, start-up counted in both", "times", (counted,)),
    ]


@figure
def peers(setting: Setting) -> list[Row]:
    """The comparison with AccaSim, with the start-up of both subtracted."""
    if setting.trace is None:
        return [Row("peers", what, "jobs/s CPU", (), note="no trace") for what in CASES]
    print("installing AccaSim", file=sys.stderr)
    python = install(setting.scratch)
    return [row for what, shape in CASES.items() for row in compare(setting, python, what, shape)]
