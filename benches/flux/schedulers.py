"""Runs the same jobs under the schedulers of a real Flux instance with simulated nodes.

It compares sched-simple and sched-backfill of flux-core, Fluxion if it is installed (its match policies
`high` and `low`, whole nodes), and Topolane's module under some policies. All are judged by the code of the
Slurm benches, which shares nothing with Topolane. Jobs are Flux's mock executions: they hold nodes and run
nothing. Needs `flux` on PATH. The exit code is 1 if a node or, under a policy that isolates, a link was given
twice, and 2 for a missing component.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import links_in_tree as tree
from cab import Measures, Ran, measures
from flux_instance import Instance, instance, missing, resources
from measure import Options, Result, asked, table
from slurm_sites import PREFIX, Shape
from topolane import InputError, Machine
from topolane.policy import isolates
from workload import Job, jobs_of, workload_of

Load = Callable[[Instance], contextlib.AbstractContextManager[None]]
FLUXION = ("sched-fluxion-resource", "sched-fluxion-feasibility", "sched-fluxion-qmanager")
SUBMIT = """\
import json, sys, time
from flux import Flux
from flux.job import JobspecV1, submit

handle = Flux()
jobs = json.load(sys.stdin)
origin = time.time()
late = 0.0
for nodes, at, seconds, limit in jobs:
    time.sleep(max(origin + at - time.time(), 0))
    late = max(late, time.time() - origin - at)
    job = JobspecV1.from_command(["true"], num_nodes=nodes, num_tasks=nodes, exclusive=True, duration=limit)
    job.setattr("system.exec.test.run_duration", f"{seconds}s")
    print(int(submit(handle, job)), flush=True)
print(late)
"""
LIST = """\
import json
from flux import Flux
from flux.job.list import JobList

keys = ["nodelist", "t_submit", "t_run", "t_cleanup", "result"]
jobs = JobList(Flux(), max_entries=0, filters=["inactive"], attrs=keys).jobs()
print(json.dumps([[int(job.id), job.nodelist, job.t_submit, job.t_run, job.t_cleanup, job.result] for job in jobs]))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of one scheduler."""

    scheduler: str
    measures: Measures
    nodes_twice: int
    """Pairs of jobs that held a node at the same time."""
    starts: float
    """Starts per second: jobs divided by the time from the first start to the last."""
    late: float
    """Seconds by which the most delayed submission was late."""
    longest_pass: float | None
    """In seconds; only Topolane's module reports it."""

    def cells(self) -> list[str]:
        found = self.measures
        passes = "-" if self.longest_pass is None else f"{1000 * self.longest_pass:.1f} ms"
        return [
            self.scheduler,
            f"{found.jobs:,}",
            str(self.nodes_twice),
            f"{found.sharing:,}",
            f"{found.hops:.2f}",
            f"{found.wait:.1f} s",
            f"{found.makespan:.0f} s",
            f"{found.utilisation:.3f}",
            f"{self.starts:.1f}",
            passes,
        ]


HEADINGS = [
    "scheduler",
    "jobs",
    "nodes twice",
    "jobs that share links",
    "hops",
    "mean wait",
    "makespan",
    "use",
    "starts/s",
    "longest pass",
]


def modules(options: Options, machine: Path) -> dict[str, Load]:
    """The way to load each scheduler."""

    def stock(name: str) -> Load:
        @contextlib.contextmanager
        def load(flux: Instance) -> Iterator[None]:
            flux.run("module", "load", name)
            yield

        return load

    def ours(policy: str) -> Load:
        words = (f"machine={machine}", f"policy={policy}", f"queue={options.queue}")
        return lambda flux: topolane(flux, words, options)

    def fluxion(match: str) -> Load:
        @contextlib.contextmanager
        def load(flux: Instance) -> Iterator[None]:
            flux.run("module", "load", FLUXION[0], f"match-policy={match}", "load-allowlist=node,core")
            flux.run("module", "load", FLUXION[1])
            flux.run("module", "load", FLUXION[2], "queue-policy=easy")
            yield

        return load

    found = {name: stock(name) for name in ("sched-simple", "sched-backfill")}
    if has_fluxion():
        found |= {f"fluxion/{match}": fluxion(match) for match in ("high", "low")}
    found |= {f"topolane/{policy}": ours(policy) for policy in options.policies.split(",")}
    wanted = options.schedulers.split(",") if options.schedulers else list(found)
    if unknown := [name for name in wanted if name not in found]:
        raise ValueError(f"--schedulers {unknown[0]}: there are {', '.join(found)}")
    return {name: found[name] for name in wanted}


@contextlib.contextmanager
def topolane(flux: Instance, words: Sequence[str], options: Options) -> Iterator[None]:
    """Loads Topolane as the scheduler. While jobs come, it is loaded again or killed as often as the options
    say.
    """
    times = options.reloads or options.kills
    pause, over = 60 * options.minutes / (times + 1), threading.Event()

    def reloaded() -> None:
        for _ in range(options.reloads):
            over.wait(pause)
            flux.run("module", "remove", "sched-topolane")
            flux.load(*words)

    def killed() -> None:
        for _ in range(options.kills):
            with flux.process(*words):
                over.wait(pause)
        with flux.process(*words):
            over.wait()

    if not options.kills:
        flux.load(*words)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        interrupting = pool.submit(killed if options.kills else reloaded)
        try:
            yield
        finally:
            over.set()
        interrupting.result()


def has_fluxion() -> bool:
    """Whether Fluxion's modules are installed next to Flux's own."""
    found = subprocess.run(["flux", "env", "printenv", "FLUX_MODULE_PATH"], capture_output=True, text=True)
    return any((Path(folder) / f"{FLUXION[0]}.so").exists() for folder in found.stdout.strip().split(":"))


def play(flux: Instance, jobs: Sequence[Job]) -> tuple[list[Ran], float]:
    """Submits the jobs at their times. Returns the jobs as they ran, and the seconds by which the most
    delayed submission was late.
    """
    rows = [(job.nodes, job.submit, job.run, 60 * job.minutes) for job in jobs]
    said = flux.run("python", "-c", SUBMIT, text=json.dumps(rows), seconds=3600).split()
    numbers, late = [int(line) for line in said[:-1]], float(said[-1])
    flux.run("queue", "idle", "--timeout=3600s", seconds=3700)
    listed = json.loads(flux.run("python", "-c", LIST))
    place = {number: job.number for number, job in zip(numbers, jobs)}
    if failed := [row[0] for row in listed if row[5] != "COMPLETED"]:
        raise RuntimeError(f"{len(failed)} jobs did not complete, such as {failed[0]}")
    if len(listed) != len(jobs):
        raise RuntimeError(f"{len(jobs)} jobs were submitted, Flux knows {len(listed)}")
    return [Ran(place[row[0]], frozenset(tree.expanded(row[1])), *row[2:5]) for row in listed], late


def row_of(
    name: str,
    flux: Instance,
    ran: Sequence[Ran],
    late: float,
    switches: Mapping[str, frozenset[str]],
    nodes: int,
) -> Row:
    starts = sorted(each.start for each in ran)
    slowest = flux.stats()["longest_pass_seconds"] if name.startswith("topolane/") else None
    rate = len(starts) / max(starts[-1] - starts[0], 1e-9)
    return Row(name, measures(ran, switches, nodes), nodes_twice(ran), rate, late, slowest)


def nodes_twice(ran: Sequence[Ran]) -> int:
    """The number of pairs of jobs that held a node at the same time."""
    twice = 0
    held: dict[str, Ran] = {}
    for each in sorted(ran, key=lambda each: each.start):
        before = {held[node].job for node in each.nodes if node in held and held[node].end > each.start}
        twice += len(before)
        held |= dict.fromkeys(each.nodes, each)
    return twice


def measure(options: Options) -> Result:
    """Plays the jobs under each scheduler, and prints the table. Raises RuntimeError if Flux is missing."""
    if why := missing():
        raise RuntimeError(why)
    shape = Shape.of(options.nodes)
    load = workload_of(options.trace, options.cores_per_node, shape.nodes, options.jobs, options.load)
    compress = max(jobs_of(load)[-1].submit / (60 * options.minutes), 1.0)
    jobs = jobs_of(load, compress)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        machine = Path(folder) / "cab.toml"
        machine.write_text(shape.machine())
        topology = Path(folder) / "topology.conf"
        topology.write_text(Machine.parse(shape.machine(), "cab.toml").to("slurm"))
        switches = tree.switches(topology)
        version = subprocess.run(["flux", "version"], capture_output=True, text=True).stdout
        print(version.strip())
        for place, (name, load_module) in enumerate(modules(options, machine).items()):
            below = Path(folder) / str(place)
            below.mkdir()
            with instance(below, resources(shape.nodes, cores=16, name=PREFIX, first=1)) as flux:
                with load_module(flux):
                    started = time.monotonic()
                    ran, late = play(flux, jobs)
                    rows.append(row_of(name, flux, ran, late, switches, shape.nodes))
                print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    print(
        f"times are {compress:.0f} times shorter than in the log; the latest submission was {max(row.late for row in rows):.1f} s late"
    )
    facts = {
        "options": asked(options),
        "flux": version,
        "compress": compress,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    broken = [row for row in rows if row.nodes_twice or (_isolates(row.scheduler) and row.measures.sharing)]
    for row in broken:
        print(f"{row.scheduler}: a node or a link was given twice", file=sys.stderr)
    return Result(facts=facts, failed=bool(broken))


def _isolates(scheduler: str) -> bool:
    """Whether jobs of a scheduler may cross no group together. `dedicated` lets them, on cables of their own."""
    kind, _, policy = scheduler.partition("/")
    with contextlib.suppress(InputError):
        return kind == "topolane" and policy == "isolated" and isolates(policy)
    return False
