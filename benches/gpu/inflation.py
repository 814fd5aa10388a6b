"""GPUs that no task can use: the inflation experiment of "Beware of Fragmentation" (USENIX ATC'23) under several policies.

`run.py gpu/inflation --nodes openb-2023-nodes.csv.gz --pods openb-2023-pods.csv.gz` draws tasks of the trace with
replacement until the GPUs asked for reach 130 % of those there are. Tasks stay; one that does not fit is dropped. The
table has the GPUs that no task has in the end, in per cent, for every variant of the paper: more tasks that share a GPU
(gpushareP: P % of the GPUs asked for), with several GPUs (multigpuP), with wanted GPU types (gpuspecP: P % of tasks with
GPUs) and without GPUs (cpuP: P % of tasks). Needs Rust. Exit code 1 if gpu-packing is not best in every variant.
"""

from __future__ import annotations

import bisect
import csv
import dataclasses
import gzip
import itertools
import os
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Options, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
OURS = "gpu-packing"
POLICIES = ("first-fit", "best-fit", "fgd", OURS)
VARIANTS = (
    "default",
    *(f"gpushare{share}" for share in (40, 60, 80, 100)),
    *(f"multigpu{share}" for share in (20, 30, 40, 50)),
    *(f"gpuspec{share}" for share in (10, 20, 25, 33)),
    *(f"cpu{share}" for share in (5, 10, 20, 25)),
)
MARKS = (0.9, 1.0, 1.1, 1.3)
"""The levels of GPU demand, relative to all GPUs, at which free GPUs are counted."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of the trace."""

    cores: int
    """In thousandths of a core."""
    memory: int
    """In MiB."""
    gpus: int
    thousandths: int
    """The part of each GPU, in thousandths."""
    types: str
    """The acceptable GPU types, joined by |; empty for any."""

    @property
    def asked(self) -> float:
        """The total GPUs that the task requests."""
        return self.gpus * self.thousandths / 1000

    @property
    def category(self) -> str:
        """The category of tasks that a variant can make more frequent."""
        if self.gpus == 0:
            return "cpu"
        if self.gpus > 1:
            return "multigpu"
        return "gpushare" if self.thousandths < 1000 else "one"

    def line(self, types: str) -> str:
        """The line for the placing program."""
        return f"{self.cores},{self.memory},{self.gpus},{self.thousandths},{types}\n"


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, which may be compressed."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return list(csv.DictReader(text.splitlines()))


def task_of(row: dict[str, str]) -> Task:
    """A task from its row. Tasks with several GPUs take whole ones."""
    gpus = int(row["num_gpu"])
    thousandths = int(row["gpu_milli"]) if gpus == 1 else 1000 if gpus else 0
    return Task(int(row["cpu_milli"]), int(row["memory_mib"]), gpus, thousandths, row["gpu_spec"])


def weights(tasks: Sequence[Task], variant: str) -> tuple[dict[str, float], float]:
    """The weight of each task category in draws, relative to the trace, and the fraction of tasks that keep
    their wanted GPU types.
    """
    kind = variant.rstrip("0123456789")
    part = int(variant.removeprefix(kind) or 0) / 100
    asked = dict.fromkeys(("cpu", "gpushare", "one", "multigpu"), 0.0)
    count = dict.fromkeys(asked, 0)
    for task in tasks:
        asked[task.category] += task.asked
        count[task.category] += 1
    found = dict.fromkeys(asked, 1.0)
    if kind in ("gpushare", "multigpu"):
        others = sum(asked.values()) - asked[kind]
        if part < 1:
            found[kind] = part / (1 - part) * others / asked[kind]
        else:
            found |= {name: 0.0 for name in ("one", "multigpu")}
    with_gpus = sum(found[name] * count[name] for name in count if name != "cpu")
    without = part / (1 - part) if kind == "cpu" else count["cpu"] / (len(tasks) - count["cpu"])
    found["cpu"] = without * with_gpus / count["cpu"]
    typed = sum(1 for task in tasks if task.types) / (len(tasks) - count["cpu"])
    return found, min(1.0, part / typed) if kind == "gpuspec" else 0.0


def arrivals(tasks: Sequence[Task], variant: str, gpus: int, seed: int) -> Iterator[str]:
    """Draws tasks with replacement until they request enough GPUs."""
    by_category, keeps_types = weights(tasks, variant)
    ends = list(itertools.accumulate(by_category[task.category] for task in tasks))
    draw = random.Random(seed)
    asked = 0.0
    while asked < gpus * MARKS[-1]:
        index = bisect.bisect_right(ends, draw.random() * ends[-1])
        task = tasks[min(index, len(tasks) - 1)]
        asked += task.asked
        yield task.line(task.types if draw.random() < keeps_types else "")


def program() -> Path:
    """Builds the program that places tasks."""
    built = ["cargo", "build", "--release", "-q", "-p", "topolane-placement", "--example", "inflation"]
    subprocess.run(built, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "inflation"


def left(run: Path, nodes: Path, policy: str, lines: str) -> list[float]:
    """The GPUs that no task has at each mark, in per cent of all."""
    command = [str(run), str(nodes), policy, *map(str, MARKS)]
    done = subprocess.run(command, input=lines, text=True, capture_output=True, check=True)
    return [100 * float(part) for part in done.stdout.split()[1:]]


def measure(options: Options) -> Result:
    """Runs every variant and prints the table. Raises ValueError for an unknown variant."""
    variants = VARIANTS if options.variants == "all" else options.variants.split(",")
    if unknown := set(variants) - set(VARIANTS):
        raise ValueError(f"there is no variant {min(unknown)}; there are {', '.join(VARIANTS)}")
    rows, tasks = read(options.nodes), [task_of(row) for row in read(options.pods)]
    gpus = sum(int(row["gpu"]) for row in rows)
    run = program()
    found: dict[str, dict[str, list[list[float]]]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        nodes = Path(folder) / "nodes.csv"
        nodes.write_text(
            "name,cores,memory,gpus,type\n"
            + "".join(
                f"{row['sn']},{row['cpu_milli']},{row['memory_mib']},{row['gpu']},{row['model']}\n"
                for row in rows
            )
        )
        for variant in variants:
            drawn = ["".join(arrivals(tasks, variant, gpus, seed)) for seed in range(options.seeds)]
            found[variant] = {
                policy: list(pool.map(lambda lines, name=policy: left(run, nodes, name, lines), drawn))
                for policy in POLICIES
            }
            print_row(variant, found[variant], is_first=len(found) == 1)
    facts = {"marks": MARKS, "unallocated_percent": found}
    return Result(facts=facts, failed=any(not is_best(one) for one in found.values()))


def at_end(draws: list[list[float]]) -> float:
    """The mean over all draws at the last mark."""
    return sum(draw[-1] for draw in draws) / len(draws)


def is_best(found: dict[str, list[list[float]]]) -> bool:
    """Whether gpu-packing leaves fewer GPUs free than every other policy."""
    return all(at_end(found[OURS]) < at_end(found[other]) for other in POLICIES if other != OURS)


def print_row(variant: str, found: dict[str, list[list[float]]], *, is_first: bool) -> None:
    """Prints a row of the table, with means over the draws."""
    if is_first:
        print("GPUs that no task has at 130 % asked for (% of all)")
        print(f"{'':14}" + "".join(f"{policy:>13}" for policy in POLICIES) + "   draws in which ours is best")
    wins = sum(
        all(found[OURS][draw][-1] < found[other][draw][-1] for other in POLICIES if other != OURS)
        for draw in range(len(found[OURS]))
    )
    means = "".join(f"{at_end(found[policy]):13.2f}" for policy in POLICIES)
    print(f"{variant:14}{means}   {wins} of {len(found[OURS])}", flush=True)
