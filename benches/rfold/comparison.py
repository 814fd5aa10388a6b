"""Compares `isolated` on a pod of 4,096 chips with RFold (arXiv 2510.03891) on a trace of RFold's own generator.

RFold's code runs from a checkout of github.com/shuoshuc/RFold, with a Python that has what it needs. Both simulate a pod of 64 cubes
of 4 x 4 x 4 joined by optical switches, first come first served: no job overtakes the head of the queue.
Utilisation is the mean part of the chips in use while jobs wait.
RFold asks for shapes, which it folds; here a job asks for a number of chips, and has links of its own.
"""

from __future__ import annotations

import csv
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import BenchError, Result, Row

if TYPE_CHECKING:
    from measure import Options

CHIPS = 4096
PEER = Path(__file__).resolve().parent / "peer.py"
Times = list[tuple[int, float, float, float]]
"""Chips, and when it arrived, started and ended, of each job."""


def call(options: Options, *words: str | Path) -> None:
    """Runs RFold's code. Raises BenchError if it fails."""
    command = [str(word) for word in (options.peer_python, PEER, options.peer.resolve(), *words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"RFold's code fails:\n{done.stderr[-500:]}")


def theirs(options: Options, policy: str, trace: Path, scratch: Path) -> Times:
    """The jobs under a policy of RFold's simulator."""
    starts = scratch / f"{policy}.csv"
    call(options, "replay", policy, trace, starts)
    with starts.open() as file:
        rows = list(csv.DictReader(file))
    return [(int(row["size"]), float(row["arrival"]), float(row["start"]), float(row["end"])) for row in rows]


def ours(trace: Path, policy: str, queue: str) -> Times:
    """The jobs under a policy here."""
    from topolane import Shape, machine, simulate, workload

    jobs = workload(trace, shape=Shape(gpus_per_node=1))
    run = simulate(jobs, machine("tpu-v4"), policy=policy, queue=queue)
    frame = run.jobs.select(
        "requested_number_of_resources", "submission_time", "starting_time", "finish_time"
    )
    return [tuple(row) for row in frame.iter_rows()]


def measures(times: Times) -> dict[str, float]:
    """Utilisation while jobs wait, mean hours from arrival to end, hours until all have ended."""
    events = []
    for chips, arrival, start, end in times:
        events += [(start, chips, 0), (end, -chips, 0), (arrival, 0, 1), (start, 0, -1)]
    events.sort()
    used = waiting = 0
    before = events[0][0]
    area = waited = 0.0
    for at, chips, more in events:
        if waiting > 0:
            area += used * (at - before)
            waited += at - before
        used, waiting, before = used + chips, waiting + more, at
    return {
        "utilisation": area / waited / CHIPS if waited else 0.0,
        "hours": statistics.mean(end - arrival for _, arrival, _, end in times) / 3600,
        "median hours": statistics.median(end - arrival for _, arrival, _, end in times) / 3600,
        "all ended": (max(time[3] for time in times) - min(time[1] for time in times)) / 3600,
    }


def measure(options: Options) -> Result:
    """Both simulators on one trace."""
    if not (options.peer / "ClusterManager").is_dir():
        raise BenchError(f"{options.peer} is no checkout of RFold: it has no folder ClusterManager")
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as folder:
        scratch = Path(folder)
        trace = options.rfold_trace
        if trace is None:
            trace = scratch / "trace.csv"
            call(options, "trace", str(options.jobs), str(options.seed), trace)
        runs = {}
        for policy in options.theirs.split(","):
            runs[f"RFold's simulator, {policy}"] = theirs(options, policy, trace, scratch)
        for queue in ("fcfs", "easy"):
            for policy in ("isolated", "first-fit"):
                runs[f"topolane, {policy}, {queue}"] = ours(trace, policy, queue)
    found = {name: measures(times) for name, times in runs.items()}
    width = max(map(len, found))
    lines = [f"{'':{width}}  jobs  utilisation  mean hours  median hours  all ended, hours"]
    for name, row in found.items():
        cells = (row["utilisation"], row["hours"], row["median hours"], row["all ended"])
        numbers = "{:>11.3f}  {:>10.1f}  {:>12.1f}  {:>16.1f}".format(*cells)
        lines.append(f"{name:{width}}  {len(runs[name]):>4}  {numbers}")
    limit = found.get("RFold's simulator, rfold", {}).get("utilisation")
    row = Row(
        "rfold",
        "utilisation of isolated, fcfs, while jobs wait; target: RFold's",
        "of the chips",
        (found["topolane, isolated, fcfs"]["utilisation"],),
        limit,
        more_is_better=True,
    )
    return Result([row], facts=found, notes=lines)
