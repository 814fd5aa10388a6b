"""Imports and replays a synthetic year of jobs in sacct's format, and measures processor time and memory."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import Cost, Row
from topolane import Workload
from topolane.slurm import accounting
from twin_command import topolane

MONTH = "cab-aug"
MACHINE = "cab"
YEAR = 365 * 86400
BEGIN = 1_764_547_200
"""2025-12-01, in seconds since 1970."""
SECONDS, MEMORY = 60.0, 2.0
"""Targets for import and replay together: seconds of CPU time, and GB of the larger of the two."""
CORES = 16
QUEUES = ("easy", "slurm")
"""Queues under which the year is replayed, with first fit."""


def rows(jobs: int, seed: int = 1) -> Iterator[str]:
    """`jobs` lines of `jobs.txt` for one year on Cab: months with different seeds one after another, with all
    times scaled so that they fill the year.
    """
    draw = random.Random(seed)
    first = Workload.generate(MONTH, seed)
    months = -(-jobs // len(first))
    length = YEAR / months
    yield ";".join(accounting.FIELDS)
    number = 0
    for month in range(months):
        workload = first if month == 0 else Workload.generate(MONTH, seed + month)
        squeeze = length / (31 * 86400)
        columns = workload.columns()
        taken = (columns[name].tolist() for name in ("submit", "run", "walltime", "nodes"))
        for submit, run, walltime, nodes in zip(*taken):
            number += 1
            if number > jobs:
                return
            submitted = BEGIN + round(month * length + submit * squeeze)
            ran = max(round(run * squeeze), 1)
            start = submitted + draw.randrange(0, 600)
            minutes = max(-(-round(walltime * squeeze) // 60), -(-ran // 60))
            node = draw.randrange(1, 1297 - nodes)
            tres = f"billing={nodes * CORES},cpu={nodes * CORES},mem={nodes * 32}G,node={nodes}"
            user = draw.randrange(300)
            values = {
                "JobIDRaw": number,
                "JobID": number,
                "Cluster": "cab",
                "Submit": submitted,
                "Eligible": submitted,
                "Start": start,
                "End": start + ran,
                "ElapsedRaw": ran,
                "Suspended": "00:00:00",
                "State": "COMPLETED",
                "TimelimitRaw": minutes,
                "NNodes": nodes,
                "NCPUS": nodes * CORES,
                "ReqTRES": tres,
                "AllocTRES": tres,
                "Partition": "pbatch",
                "QOS": "normal",
                "Account": f"account{user % 40}",
                "User": f"user{user}",
                "Priority": draw.randrange(1 << 20),
                "Flags": draw.choice(("SchedMain", "SchedBackfill")),
                "Reason": "None",
                "Planned": "00:00:00",
                "Restarts": 0,
                "NodeList": f"cab{node}" if nodes == 1 else f"cab[{node}-{node + nodes - 1}]",
            }
            yield ";".join(str(values.get(name, "")) for name in accounting.FIELDS)


def measured(jobs: int) -> list[Row]:
    """The figures. Raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        directory = Path(scratch)
        records = directory / "records"
        records.mkdir()
        with open(records / accounting.JOBS, "w") as file:
            file.writelines(f"{row}\n" for row in rows(jobs))
        log = directory / "year.csv"
        steps: dict[str, tuple[str | Path, ...]] = {"import": ("workload", "import", records, "--out", log)}
        for queue in QUEUES:
            steps[queue] = (
                *("simulate", "--machine", MACHINE, "--trace", log, "--policy", "first-fit"),
                *("--queue", queue, "--no-report", "--out", directory / queue),
            )
        costs: dict[str, Cost] = {name: topolane(*words) for name, words in steps.items()}
    what = f"{jobs:,} jobs"
    made = []
    for name, each in costs.items():
        made.append(Row(name, what, "s CPU", (each.cpu,)))
        made.append(Row(name, what, "GB at most", (each.memory / 1e9,)))
    for queue in QUEUES:
        both = (costs["import"], costs[queue])
        figure = f"import and {queue}"
        made.append(Row(figure, what, "s CPU", (sum(each.cpu for each in both),), SECONDS))
        made.append(Row(figure, what, "GB at most", (max(each.memory for each in both) / 1e9,), MEMORY))
    return made
