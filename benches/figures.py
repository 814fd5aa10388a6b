"""The performance figures that Topolane promises, and how each is measured."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import BenchError, Cost, Options, Result, Row, cost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5
POLICIES = ("first-fit", "random", "scattered", "slurm-tree", "hop-bytes", "hop-bytes-exact", "isolated")
AUGUST_LIMIT = 1.0
SEPTEMBER_LIMIT = 10.0
CONSERVATIVE_LIMITS = {"cab-aug": 2.0, "cab-sep": 60.0}
START_LIMIT = 0.1
REPORT_LIMIT = 2.0
PAGE_LIMIT = 1000.0
DECISION_LIMITS = {"median_us": 20.0, "p99_us": 200.0}
SHORTEST = 1e-3
SHORT_TIMES = 3
LIGHT_JOBS = 100_000
LIGHT_SEED = 1
LIGHT_LOAD = 0.5
LIGHT_RATE = 100_000.0
LIGHT_MEMORY = 200e6
MILLION = 1_000_000
MILLION_MEMORY = 1e9
CAB_NODES = 1_296
WIDE_JOBS = 5_000
WIDE_SEED = 24
WIDE_LOAD = 0.9
WIDE_MACHINE = "fat-tree(radix=36)"
WIDE_NODES = 36**3 // 4
WIDE_LIMIT = 5.0
ALL_TO_ALL_JOBS = 500
ALL_TO_ALL_NODES = 1_024
ALL_TO_ALL_GAP = 40.0
ALL_TO_ALL_MACHINE = "fat-tree(radix=64)"
ALL_TO_ALL_LIMIT = 2.5
ALL_TO_ALL_MEMORY = 190e6
EVALUATION_LIMITS = {"congestion": 0.3, "max-min": 5.0}
COUPLED_LIMIT = 10.0
ATLAS = ("--cores-per-node", "8")
SQUEEZED = (*ATLAS, "--squeeze", "0.6", "--limit", "5000")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a command."""

    whole: Cost
    net: float
    """CPU seconds without start-up."""

    @property
    def jobs(self) -> int:
        """The number of jobs in the JSON output of a simulation."""
        jobs = json.loads(self.whole.output)["jobs"]
        assert isinstance(jobs, int)
        return jobs


@dataclasses.dataclass
class Setting:
    """The setting in which figures are measured."""

    repeats: int
    trace: Path | None
    scratch: Path
    python: str = sys.executable

    def topolane(self, *arguments: str | Path, most: int | None = None) -> Cost:
        """The cost of one command, which may use `most` seconds of CPU time."""
        call = "import sys; from topolane.cli import main; sys.exit(main())"
        return cost([self.python, "-c", call, *arguments], directory=self.scratch, most=most)

    def start(self) -> float:
        """CPU seconds of the command line when it does nothing else."""
        return self.topolane("policies").cpu

    def runs(self, *arguments: str | Path, times: int = 1, most: int | None = None) -> list[Run]:
        """Runs one command `times` times as often as usual, each time with at most `most` seconds of CPU
        time.

        From each run, the mean start-up just before and after it is subtracted: the speed of a shared machine
        changes by half within seconds, and short runs are mostly start-up.
        """
        runs = []
        before = self.start()
        for _ in range(self.repeats * times):
            whole = self.topolane(*arguments, most=most)
            after = self.start()
            runs.append(Run(whole, max(whole.cpu - (before + after) / 2, SHORTEST)))
            before = after
        return runs

    def simulations(self, *arguments: str | Path, times: int = 1, most: int | None = None) -> list[Run]:
        """Runs one simulation repeatedly that prints JSON."""
        return self.runs("simulate", "--json", *arguments, times=times, most=most)


def figure(measure: Callable[[Setting], list[Row]]) -> Callable[[Options], Result]:
    """Wraps a figure so that it takes the options of `run.py`. If it cannot be measured, one row says so."""

    @functools.wraps(measure)
    def measured(options: Options) -> Result:
        with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
            setting = Setting(1 if options.quick else REPEATS, options.trace, Path(scratch))
            try:
                return Result(measure(setting))
            except BenchError as error:
                print(error, file=sys.stderr)
                name = options.case.partition("/")[2]
                return Result([Row(name, "failed", "", (), note="see above")], failed=True)

    return measured


def rates(runs: Sequence[Run]) -> tuple[float, ...]:
    """Jobs per CPU second, without start-up."""
    return tuple(run.jobs / run.net for run in runs)


def whole_rates(runs: Sequence[Run]) -> tuple[float, ...]:
    """Jobs per CPU second, including start-up."""
    return tuple(run.jobs / run.whole.cpu for run in runs)


@figure
def start(setting: Setting) -> list[Row]:
    """The cost of every command before it does anything."""
    rows = []
    for word in ("--version", "--help", "policies"):
        setting.topolane(word)  # this run writes the bytecode
        values = tuple(setting.topolane(word).cpu for _ in range(2 * setting.repeats + 1))
        rows.append(Row("start", f"topolane {word}", "s CPU", values, START_LIMIT))
    return rows


@figure
def report(setting: Setting) -> list[Row]:
    """A month under three policies, compared with and without the report, including start-up; and the size of
    the largest page.
    """
    rows = []
    for what, more, limit in (
        ("with the report", (), REPORT_LIMIT),
        ("with --no-report", ("--no-report",), None),
    ):
        runs = [setting.topolane("compare", "--out", "report", *more) for _ in range(setting.repeats)]
        rows.append(
            Row("report", f"compare of cab-aug, {what}", "s CPU", tuple(run.cpu for run in runs), limit)
        )
    centre = ("--machine", "nvl72-5000", "--workload", "gpu-month", "--scenarios", "none")
    setting.topolane("compare", *centre, "--policies", "first-fit,slurm-block,segments", "--out", "gpus")
    size = (setting.scratch / "gpus" / "report.html").stat().st_size
    rows.append(Row("report", "page of gpu-month, three policies", "kB", (size / 1000,), PAGE_LIMIT))
    return rows


def month(setting: Setting, name: str, workload: str, limit: float) -> list[Row]:
    """One month under every policy."""
    runs = {policy: setting.simulations("--workload", workload, "--policy", policy) for policy in POLICIES}
    return [
        Row(name, f"{workload}, easy, {policy}", "s CPU", tuple(run.net for run in repeats), limit)
        for policy, repeats in runs.items()
    ]


@figure
def august(setting: Setting) -> list[Row]:
    """August of Cab under every policy."""
    return month(setting, "august", "cab-aug", AUGUST_LIMIT)


@figure
def september(setting: Setting) -> list[Row]:
    """September of Cab, with long queues."""
    return month(setting, "september", "cab-sep", SEPTEMBER_LIMIT)


@figure
def conservative(setting: Setting) -> list[Row]:
    """Two months under conservative backfilling; in the second, thousands of jobs wait."""
    rows = []
    for workload, limit in CONSERVATIVE_LIMITS.items():
        for policy in ("first-fit", "isolated"):
            runs = setting.simulations("--workload", workload, "--queue", "conservative", "--policy", policy)
            values = tuple(run.net for run in runs)
            rows.append(Row("conservative", f"{workload}, conservative, {policy}", "s CPU", values, limit))
    return rows


def write_light(path: Path, count: int = LIGHT_JOBS) -> None:
    """Writes an SWF log with many jobs that hardly ever wait.

    Sizes are exponential with mean 16, rounded up; run times uniform over 20-3,000 s; walltimes equal to run
    times; interarrival times exponential, with the mean that gives the load.
    """
    draw = random.Random(LIGHT_SEED)
    jobs = [(int(draw.expovariate(1 / 16)) + 1, draw.randint(20, 3_000)) for _ in range(count)]
    jobs = [(min(nodes, CAB_NODES), run) for nodes, run in jobs]
    distance = sum(nodes * run for nodes, run in jobs) / (LIGHT_LOAD * CAB_NODES * count)
    now = 0.0
    with path.open("w") as log:
        log.write(f"; Version: 2.2\n; MaxNodes: {CAB_NODES}\n; MaxProcs: {CAB_NODES}\n")
        for index, (nodes, run) in enumerate(jobs, start=1):
            log.write(f"{index} {int(now)} -1 {run} {nodes} -1 -1 {nodes} {run} -1 1{' -1' * 7}\n")
            now += draw.expovariate(1 / distance)


@figure
def light(setting: Setting) -> list[Row]:
    """A log with so low a load that the queue stays short: the cost of a single job."""
    log = setting.scratch / "light.swf"
    write_light(log)
    what = f"{LIGHT_JOBS:,} jobs at load {LIGHT_LOAD}, first-fit"
    run = ("--trace", log, "--policy", "first-fit")
    runs = setting.simulations(*run)
    memory = tuple(each.whole.memory / 1e6 for each in runs)
    written = setting.simulations(*run, "--out", "light", "--no-report")
    return [
        Row("light", what, "jobs/s CPU", rates(runs), LIGHT_RATE, more_is_better=True),
        Row("light", f"{what}: peak memory", "MB", memory, LIGHT_MEMORY / 1e6),
        Row("light", f"{what}, --out", "jobs/s CPU", rates(written)),
    ]


@figure
def million(setting: Setting) -> list[Row]:
    """A low-load log of a million jobs, with its files and its report."""
    log = setting.scratch / "million.swf"
    write_light(log, MILLION)
    runs = [
        setting.topolane("simulate", "--json", "--trace", log, "--policy", "first-fit", "--out", "million")
        for _ in range(setting.repeats)
    ]
    what = f"{MILLION:,} jobs at load {LIGHT_LOAD}, first-fit, with the report"
    memory = tuple(run.memory / 1e6 for run in runs)
    return [
        Row("million", what, "s CPU", tuple(run.cpu for run in runs)),
        Row("million", f"{what}: peak memory", "MB", memory, MILLION_MEMORY / 1e6),
    ]


def write_wide(path: Path) -> None:
    """Writes an SWF log of wide jobs for a tree of radix 36.

    Sizes are uniform over 256-4,096, run times over 60-36,000 s, walltimes one to three times the run times;
    interarrival times exponential, with the mean that gives the load.
    """
    draw = random.Random(WIDE_SEED)
    distance = (256 + 4_096) / 2 * (60 + 36_000) / 2 / (WIDE_LOAD * WIDE_NODES)
    now = 0.0
    with path.open("w") as log:
        log.write(f"; Version: 2.2\n; MaxNodes: {WIDE_NODES}\n; MaxProcs: {WIDE_NODES}\n")
        for index in range(1, WIDE_JOBS + 1):
            now += draw.expovariate(1 / distance)
            nodes, run = draw.randint(256, 4_096), draw.randint(60, 36_000)
            walltime = int(run * draw.uniform(1, 3))
            log.write(f"{index} {int(now)} -1 {run} {nodes} -1 -1 {nodes} {walltime} -1 1{' -1' * 7}\n")


@figure
def dedicated(setting: Setting) -> list[Row]:
    """Jobs on links of their own: a month, and wide jobs on a large tree."""
    log = setting.scratch / "wide.swf"
    write_wide(log)
    wide = ("--trace", log, "--machine", WIDE_MACHINE, "--cores-per-node", "1")
    cases: dict[str, tuple[float, tuple[str | Path, ...]]] = {
        "cab-aug": (AUGUST_LIMIT, ("--workload", "cab-aug")),
        f"{WIDE_JOBS:,} wide jobs at load {WIDE_LOAD}, radix 36": (WIDE_LIMIT, wide),
    }
    rows = []
    for what, (limit, log_of) in cases.items():
        runs = setting.simulations(*log_of, "--policy", "dedicated")
        values = tuple(run.net for run in runs)
        rows.append(Row("dedicated", f"{what}, easy, dedicated", "s CPU", values, limit))
    return rows


@figure
def decision(setting: Setting) -> list[Row]:
    """Single decisions of `isolated` on 10,648 nodes, 95 % of them in use."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return [Row("decision", "one isolated placement", "us", (), note="no cargo")]
    command = [cargo, "bench", "-q", "-p", "topolane-placement", "--bench", "isolated"]
    cost(command, directory=ROOT)  # builds the program
    runs = [json.loads(cost(command, directory=ROOT).output) for _ in range(setting.repeats)]
    rows = []
    for kind in ("placed", "refused"):
        seen = runs[0][kind]
        what = f"isolated, sc18-network at 95 %, {kind} (of {seen['count']:,}; widest {seen['widest']})"
        for statistic, limit in DECISION_LIMITS.items():
            values = tuple(run[kind][statistic] for run in runs)
            rows.append(Row("decision", f"{what}: {statistic.removesuffix('_us')}", "us", values, limit))
    return rows


@figure
def atlas(setting: Setting) -> list[Row]:
    """A long log of a real machine: reading, replay and writing."""
    cases = {
        "Atlas, first-fit": (55_700.0, "first-fit", ATLAS),
        "Atlas squeezed, first 5,000, first-fit": (33_100.0, "first-fit", SQUEEZED),
        "Atlas squeezed, first 5,000, isolated": (5_000.0, "isolated", SQUEEZED),
        "Atlas squeezed, all, isolated": (None, "isolated", SQUEEZED[:-2]),
    }
    rows = []
    for what, (target, policy, shape) in cases.items():
        if setting.trace is None:
            rows.append(Row("atlas", what, "jobs/s CPU", (), target, True, "no trace"))
            continue
        arguments = ("--trace", setting.trace, *shape, "--policy", policy, "--out", "atlas", "--no-report")
        runs = setting.simulations(*arguments, times=SHORT_TIMES)
        rows.append(Row("atlas", what, "jobs/s CPU", rates(runs), target, more_is_better=True))
        rows.append(Row("atlas", f"{what}, start-up counted", "jobs/s CPU", whole_rates(runs)))
        if shape is SQUEEZED and policy == "first-fit":
            printed = setting.runs("simulate", *arguments, times=SHORT_TIMES)
            values = tuple(runs[0].jobs / each.net for each in printed)
            rows.append(
                Row("atlas", f"{what}, tables printed", "jobs/s CPU", values, target, more_is_better=True)
            )
    return rows


@figure
def contention(setting: Setting) -> list[Row]:
    """One evaluation of all jobs on a large machine, and a month in which jobs slow each other down."""
    script = ROOT / "benches" / "contention.py"
    seen = [json.loads(cost([setting.python, script]).output) for _ in range(setting.repeats)]
    rows = []
    for model in seen[0]:
        values, limit = tuple(each[model] for each in seen), EVALUATION_LIMITS.get(model)
        what = f"sc18-network, 4 jobs on 10,648 nodes, {model}"
        rows.append(Row("contention", what, "s CPU", values, limit))
    for model, limit, policy in (
        ("congestion", COUPLED_LIMIT, "first-fit"),
        ("congestion", COUPLED_LIMIT, "random"),
        ("congestion", COUPLED_LIMIT, "isolated"),
        ("max-min", None, "first-fit"),
    ):
        runs = setting.simulations("--workload", "cab-aug", "--network", model, "--policy", policy)
        what = f"cab-aug, easy, {policy}, {model}"
        rows.append(Row("contention", what, "s CPU", tuple(run.net for run in runs), limit))
    return rows


def write_all_to_all(path: Path) -> None:
    """Writes an SWF log of jobs of one size for a tree of radix 64; run times are uniform over 600-4,000 s,
    interarrival times exponential.
    """
    draw = random.Random(WIDE_SEED)
    now = 0.0
    with path.open("w") as log:
        log.write(f"; Version: 2.2\n; MaxNodes: {64**3 // 4}\n; MaxProcs: {64**3 // 4}\n")
        for index in range(1, ALL_TO_ALL_JOBS + 1):
            now += draw.expovariate(1 / ALL_TO_ALL_GAP)
            run, nodes = draw.randint(600, 4_000), ALL_TO_ALL_NODES
            log.write(f"{index} {int(now)} -1 {run} {nodes} -1 -1 {nodes} {run} -1 1{' -1' * 7}\n")


@figure
def all_to_all(setting: Setting) -> list[Row]:
    """Jobs with a million flows each, 50 at a time on a large tree."""
    log = setting.scratch / "all-to-all.swf"
    write_all_to_all(log)
    network = ("--network", "congestion", "--patterns", "alltoall")
    runs = setting.simulations("--trace", log, "--machine", ALL_TO_ALL_MACHINE, *network)
    what = f"{ALL_TO_ALL_JOBS} jobs of {ALL_TO_ALL_NODES:,} nodes on {64**3 // 4:,}, all to all, congestion"
    memory = tuple(run.whole.memory / 1e6 for run in runs)
    return [
        Row("all-to-all", what, "s CPU", tuple(run.net for run in runs), ALL_TO_ALL_LIMIT),
        Row("all-to-all", f"{what}: peak memory", "MB", memory, ALL_TO_ALL_MEMORY / 1e6),
        by_leaf(setting),
    ]


def by_leaf(setting: Setting) -> Row:
    """The time of one of these jobs computed pair by pair, divided by its time computed leaf by leaf."""
    what = "one such job, pair by pair over leaf by leaf"
    cargo = shutil.which("cargo")
    if cargo is None:
        return Row("all-to-all", what, "times", (), note="no cargo")
    command = [cargo, "bench", "-q", "-p", "topolane-traffic", "--bench", "exchange"]
    cost(command, directory=ROOT)  # builds the program
    runs = [json.loads(cost(command, directory=ROOT).output) for _ in range(setting.repeats)]
    return Row("all-to-all", what, "times", tuple(run["ratio"] for run in runs))
