"""The plugin's time: in a call, in backfill's cycle over a long queue, and in starts per second; against stock topology/tree.

docs/explanation/benchmarks.md says what is measured and what makes the comparison fair.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence

from clusters import PATIENCE, PREFIX, STOCK, Shape, Site, System, say, site
from measure import Row
from options import common, finish, log_options
from workload import Job, jobs_of, workload_of

CONTROL = System("stock again")
"""How far two runs of the same system differ: the noise of all ratios."""
LIMITS = {"isolated": (5_000, 200_000), "dedicated": (50_000, 2_000_000)}
"""Nanoseconds of the plugin in a call: median, 99th percentile."""
CYCLE_LIMIT = 1.10
STARTS_LIMIT = 0.95
FILLERS = 1000
"""So many jobs of the log are tried for the jobs that hold all nodes."""
PARTITION = "pbatch"


def arguments(words: list[str]) -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(prog="run.py scale", description=__doc__)
    common(parser, nodes=1296)
    log_options(parser)
    parser.add_argument("--jobs", type=int, default=5000, help="jobs that wait [5000]")
    parser.add_argument("--policies", default="isolated,dedicated,slurm-tree", help="with commas")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each system [2]")
    parser.add_argument("--cycles", type=int, default=5, help="cycles of backfill in a turn [5]")
    parser.add_argument("--starts", type=int, default=1000, help="short jobs in a turn [1000]; 0: none")
    parser.add_argument(
        "--allocations", type=int, default=2000, help="jobs without a launch in a turn [2000]; 0: none"
    )
    return parser.parse_args(words)


@dataclasses.dataclass(frozen=True)
class Turn:
    """One run of one system."""

    system: str
    calls: dict[str, dict[str, int]]
    """What the plugin's counters grew by, in each phase."""
    longest: int
    """Nanoseconds of the longest call of the turn."""
    cycles: list[tuple[int, int, int]]
    """Microseconds, jobs tried and jobs in the queue of each cycle of backfill."""
    starts: float | None
    """Jobs per second."""
    allocations: float | None
    """The same of jobs that launch nothing."""


def fill(jobs: Sequence[Job], shape: Shape) -> Iterator[tuple[list[int], int]]:
    """Nodes and minutes of jobs that hold the whole machine: jobs of the log as far as they find a place in which they need no
    link of another job, then jobs inside leaves. Any policy lets them run on these nodes."""
    free = [list(range(leaf * shape.leaf, (leaf + 1) * shape.leaf)) for leaf in range(shape.leaves)]
    crossed: set[int] = set()
    for job in jobs:
        whole, rest = divmod(job.nodes, shape.leaf)
        if not whole or (whole == 1 and not rest):
            places = [leaf for leaf in range(shape.leaves) if len(free[leaf]) >= job.nodes][:1]
            parts = [(leaf, job.nodes) for leaf in places]
        else:
            parts = _in_pods(whole, rest, free, crossed, shape)
            crossed |= {leaf for leaf, _ in parts}
        if parts:
            nodes = [node for leaf, count in parts for node in _take(free[leaf], count)]
            yield nodes, job.minutes
    for leaf in free:
        if leaf:
            yield _take(leaf, len(leaf)), jobs[0].minutes


def _in_pods(
    whole: int, rest: int, free: list[list[int]], crossed: set[int], shape: Shape
) -> list[tuple[int, int]]:
    for pod in range(shape.pods):
        leaves = [leaf for leaf in range(pod * shape.pod, (pod + 1) * shape.pod) if leaf not in crossed]
        empty = [leaf for leaf in leaves if len(free[leaf]) == shape.leaf][:whole]
        last = [leaf for leaf in leaves if leaf not in empty and len(free[leaf]) >= rest][:1] if rest else []
        if len(empty) == whole and bool(last) == bool(rest):
            return [(leaf, shape.leaf) for leaf in empty] + [(leaf, rest) for leaf in last]
    return []


def _take(free: list[int], count: int) -> list[int]:
    taken = free[:count]
    del free[:count]
    return taken


def play(here: Site, system: System, jobs: Sequence[Job], options: argparse.Namespace) -> Turn:
    """One turn: a full machine and a long queue, then short jobs."""
    say(f"{system.name}: starting slurmctld")
    here.begin(system, {})
    calls: dict[str, dict[str, int]] = {}
    with here.client() as slurm:
        fillers = list(fill(jobs[:FILLERS], here.shape))
        for nodes, minutes in fillers:
            names = ",".join(f"{PREFIX}{node + 1}" for node in nodes)
            # They outlast the turn.
            slurm.submit(partition=PARTITION, nodes=len(nodes), w=names, minutes=minutes + 120, seconds=36000)
        _until(lambda: len(slurm.running()[0]) == len(fillers), f"{len(fillers)} jobs on all nodes")
        say(f"{system.name}: {len(fillers)} jobs hold all nodes; submitting {len(jobs):,} jobs")
        began = time.monotonic()
        for job in jobs:
            slurm.submit(partition=PARTITION, nodes=job.nodes, minutes=job.minutes, seconds=1)
        say(f"{system.name}: submitted in {time.monotonic() - began:.0f} s")
        before = here.counters()
        cycles = watch(here, slurm, len(jobs), options.cycles)
        calls["backfill"] = difference(here.counters(), before)
        here.clear()
        rates: list[float | None] = []
        small = [job for job in jobs if job.nodes <= here.shape.leaf]
        for count, launches in ((options.starts, True), (options.allocations, False)):
            before = here.counters()
            rates.append(
                starts(here, slurm, [small[number % len(small)] for number in range(count)], launches)
            )
            calls["starts" if launches else "allocations"] = difference(here.counters(), before)
    longest = here.counters().get("longest_nanoseconds", 0)
    return Turn(system.name, calls, longest, cycles, *rates)


def difference(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """By how much counters grew."""
    return {name: value - before.get(name, 0) for name, value in now.items()}


def watch(here: Site, slurm, queued: int, count: int) -> list[tuple[int, int, int]]:
    """The next cycles of backfill that have the whole queue; the one under way does not count."""
    found: list[tuple[int, int, int]] = []
    known = slurm.stats()["cycles"] + 1
    end = time.monotonic() + 2 * PATIENCE
    while len(found) < count:
        time.sleep(0.2)
        now = slurm.stats()
        if now["cycles"] > known and now["queue"] >= queued:
            found.append((now["last"], now["try"], now["queue"]))
            say(
                f"a cycle of backfill: {now['last'] / 1e6:.2f} s, {now['try']:,} of {now['queue']:,} jobs tried"
            )
        known = max(known, now["cycles"])
        if time.monotonic() > end:
            raise RuntimeError(f"{len(found)} of {count} cycles of backfill after {2 * PATIENCE:.0f} s")
    return found


def starts(here: Site, slurm, jobs: Sequence[Job], launches: bool) -> float | None:
    """Jobs per second between the first and the last tenth of the starts. Jobs sleep for a second, or end at the next look if
    they launch nothing."""
    if not jobs:
        return None
    here.partition(PARTITION, "DOWN")
    submit = slurm.submit if launches else slurm.allocate
    for job in jobs:
        submit(partition=PARTITION, nodes=job.nodes, minutes=job.minutes)
    slurm.tell("reset")
    begun, times = time.monotonic(), [(0.0, 0)]
    here.partition(PARTITION, "UP")
    seen: set[int] = set()
    started = 0
    while started < len(jobs):
        if not launches:
            now_running = set(slurm.running()[0])
            for job_id in now_running & seen:
                slurm.tell("complete", job_id)
            seen = now_running
        time.sleep(0.1)
        started = slurm.stats()["started"]
        times.append((time.monotonic() - begun, started))
        if times[-1][0] > PATIENCE:
            raise RuntimeError(f"{started} of {len(jobs)} jobs started in {PATIENCE:.0f} s")
    here.clear()
    low, high = (_when(times, share * len(jobs)) for share in (0.1, 0.9))
    rate = 0.8 * len(jobs) / (high - low)
    say(f"{rate:.1f} starts a second{'' if launches else ' of jobs without a launch'}")
    return rate


def _when(times: Sequence[tuple[float, int]], count: float) -> float:
    """When so many jobs had started, between two looks in proportion."""
    for (early, fewer), (late, more) in itertools.pairwise(times):
        if more >= count:
            return early + (late - early) * (count - fewer) / max(more - fewer, 1)
    raise ValueError("fewer jobs started")


def _until(holds, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.5)


def quantile(counted: dict[str, int], share: float) -> float:
    """Nanoseconds that this share of the calls did not exceed. The plugin counts by powers of two, between which the logarithm
    is taken to be uniform."""
    bounds = sorted(
        (int(name.split("_")[1]), count) for name, count in counted.items() if name.startswith("under_")
    )
    wanted = share * sum(count for _, count in bounds)
    if not wanted:
        return math.nan
    passed = 0
    for bound, count in bounds:
        if count and passed + count >= wanted:
            return float(bound / 2 * 2 ** ((wanted - passed) / count))
        passed += count
    return math.nan


def rows_of(turns: Sequence[Turn]) -> list[Row]:
    """The figures. A ratio compares a turn with the stock turn of its round."""
    rows = []
    names = list(dict.fromkeys(turn.system for turn in turns))
    of = {name: [turn for turn in turns if turn.system == name] for name in names}
    for name in names:
        if name not in (STOCK.name, CONTROL.name):
            rows += _calls(name, of[name])
    for name in names:
        rows.append(Row("backfill", f"{name}: a cycle", "s", tuple(_cycle(turn) for turn in of[name])))
        tried = tuple(float(cycle[1]) for turn in of[name] for cycle in turn.cycles)
        rows.append(Row("backfill", f"{name}: jobs tried in a cycle", "", tried))
        spread = tuple(cycle[0] / 1e6 / _cycle(turn) for turn in of[name] for cycle in turn.cycles)
        rows.append(Row("backfill", f"{name}: single cycles against their turn's median", "times", spread))
    for name in names[1:]:
        limit = None if name == CONTROL.name else CYCLE_LIMIT
        ratios = tuple(_cycle(turn) / _cycle(stock) for turn, stock in zip(of[name], of[STOCK.name]))
        rows.append(Row("backfill", f"{name}: a cycle against stock", "times", ratios, limit))
    for what, title in (("starts", "starts"), ("allocations", "starts without a launch")):
        if any(getattr(turn, what) is None for turn in turns):
            continue
        for name in names:
            rows.append(Row(what, f"{name}: {title}", "1/s", tuple(getattr(turn, what) for turn in of[name])))
        for name in names[1:]:
            limit = None if name == CONTROL.name else STARTS_LIMIT
            pairs = zip(of[name], of[STOCK.name])
            ratios = tuple(getattr(turn, what) / getattr(stock, what) for turn, stock in pairs)
            rows.append(Row(what, f"{name}: {title} against stock", "times", ratios, limit, True))
    return rows


def _cycle(turn: Turn) -> float:
    """Seconds of the median cycle."""
    lengths = sorted(cycle[0] for cycle in turn.cycles)
    middle = len(lengths) // 2
    return (lengths[middle] + lengths[-1 - middle]) / 2e6


def _calls(name: str, turns: Sequence[Turn]) -> list[Row]:
    rows = []
    limits = LIMITS.get(name, (None, None))
    for phase in turns[0].calls:
        counted = [turn.calls[phase] for turn in turns]
        calls = sum(each.get("calls", 0) for each in counted)
        if not calls:
            continue
        for share, title, limit in ((0.5, "median", limits[0]), (0.99, "p99", limits[1])):
            values = tuple(quantile(each, share) / 1000 for each in counted)
            what = f"{name}: the plugin in a call, {phase} ({calls:,} calls): {title}"
            rows.append(Row("call", what, "us", values, limit and limit / 1000))
    rows.append(Row("call", f"{name}: longest call", "us", tuple(turn.longest / 1000 for turn in turns)))
    share = tuple(
        100 * turn.calls["backfill"]["nanoseconds"] / 1000 / max(sum(c[0] for c in turn.cycles), 1)
        for turn in turns
    )
    rows.append(Row("call", f"{name}: the plugin's part of backfill's cycles", "%", share))
    for ending in ("placed", "in_area", "kept_off", "refused"):
        counts = tuple(float(turn.calls["backfill"].get(ending, 0)) for turn in turns)
        rows.append(Row("call", f"{name}: calls in backfill that ended as {ending}", "", counts))
    stock = tuple(
        float(sum(n for key, n in phase.items() if key.startswith("stock_")))
        for turn in turns
        for phase in turn.calls.values()
    )
    rows.append(Row("call", f"{name}: calls left to stock for a fault", "", stock))
    return rows


def measure(options: argparse.Namespace) -> int:
    """Runs the bench and prints what came of it; the exit code."""
    shape = Shape.of(options.nodes)
    load = workload_of(options.log, options.cores_per_node, shape.nodes, options.jobs, None)
    jobs = jobs_of(load)
    systems = [STOCK, *map(System.policy, options.policies.split(",")), CONTROL]
    turns: list[Turn] = []
    with site(options.nodes, options.engine, "--conf", "JobCompType=jobcomp/none") as here:
        for number in range(options.rounds):
            # What drifts, drifts both ways.
            for system in systems if number % 2 == 0 else reversed(systems):
                turns.append(play(here, system, jobs, options))
        turns.sort(key=lambda turn: [system.name for system in systems].index(turn.system))
    return finish(
        options, rows_of(turns), {"jobs": len(jobs), "turns": [dataclasses.asdict(turn) for turn in turns]}
    )
