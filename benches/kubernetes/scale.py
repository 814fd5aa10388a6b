"""Measures 5,000 nodes and 15,000 pods, in groups as in Kueue's own performance set of topology-aware
scheduling: pods placed per second by topolane-scheduler, and by Kueue with the default scheduler, on one API
server; the time of decisions; memory.

All groups are submitted at once, as Jobs. Nothing ends, and every pod finds a node.
"""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Iterator, Sequence

import groups
from cluster import Cluster, Shape, cluster, load_text, say, start_kueue
from groups import Group, Record
from kueue_controller import missing_kueue
from measure import Options, Result, Row

ROOM = {"cpu": "96", "memory": "256Gi"}
RACK, BLOCK = 64, 10
CLASSES = (
    (350, 2, "500m", (120, 120, 110), 1),
    (100, 4, "1250m", (34, 33, 33), 2),
    (50, 8, "2500m", (17, 17, 16), 4),
)
"""The classes in Kueue's set of 500 groups: number of groups, pods of each, cores of each pod; how many
groups require one rack, prefer one, or require one for each slice of pods; and pods of a slice.
"""
PER_SET = 500
PATIENCE = 300.0
"""A run is given up after this many seconds without a new pod on a node."""
PLACED = re.compile(r'"Decision".*policyMicroseconds=(\d+) planMicroseconds=(\d+)')


def kueues_set(pods: int, seed: int, name: str) -> list[Group]:
    """The groups of Kueue's set in random order, repeated as whole sets until there are at least `pods` pods."""

    def endless() -> Iterator[Group]:
        while True:
            for _, size, cores, kinds, part in CLASSES:
                for kind, count in enumerate(kinds):
                    for _ in range(count):
                        yield Group(
                            "", size, {"cpu": cores}, required=kind == 0, slice_size=part if kind == 2 else 0
                        )

    made: list[Group] = []
    total = 0
    for group in endless():
        if total >= pods and len(made) % PER_SET == 0:
            break
        made.append(group)
        total += group.size
    random.Random(seed).shuffle(made)
    return [dataclasses.replace(group, name=f"{name}-{number}") for number, group in enumerate(made)]


@dataclasses.dataclass(frozen=True)
class Run:
    """One system's run."""

    system: str
    pods: int
    placed: int
    seconds: float
    """Seconds from the first Job to the last pod on a node."""
    rate: float
    """Pods per second between the first and the last tenth."""
    broken: int
    """Groups that required one rack but are in several."""
    memory: float
    cores: float
    """The cores that the system's own processes used."""
    policy_times: tuple[float, ...]
    plan_times: tuple[float, ...]


def play(plane: Cluster, wanted: Sequence[Group], system: str, policy: str) -> Run:
    """Submits all groups at once and waits until all pods have nodes."""
    name = f"{system} {policy}".strip()
    processes = ["topolane-scheduler"] if system == "topolane" else ["default-scheduler"]
    processes += ["kueue"] if system == "kueue" else []
    pods = sum(group.size for group in wanted)
    say(f"{name}: {len(wanted):,} groups of {pods:,} pods")
    record = Record(plane.api, wanted)
    used = sum(map(plane.processor_time, processes))
    begin = time.monotonic()
    plane.api.each(lambda group: groups.submit(plane.api, group, system, policy), wanted)
    say(f"{name}: submitted in {time.monotonic() - begin:.0f} s")
    last, seen, said = time.monotonic(), 0, 0.0
    while (now := record.count()) < pods and time.monotonic() - last < PATIENCE:
        if now > seen:
            last, seen = time.monotonic(), now
        if time.monotonic() - said > 30:
            said = time.monotonic()
            say(f"{name}: {now:,} pods have nodes")
        time.sleep(0.2)
    record.stop()
    bound = sorted(record.bound)
    seconds = bound[-1] - begin if bound else 0.0
    low, high = len(bound) // 10, len(bound) * 9 // 10
    rate = (high - low) / max(bound[high] - bound[low], 1e-9) if high > low else 0.0
    broken = sum(
        len({plane.shape.rack_of(node) for node in record.lives[group.name].nodes.values()}) > 1
        for group in wanted
        if group.required
    )
    log = plane.log("topolane-scheduler") if system == "topolane" else ""
    times = [tuple(int(part) / 1e6 for part in row) for row in PLACED.findall(log)]
    result = Run(
        name, pods, len(bound), seconds, rate, broken, sum(map(plane.memory, processes)),
        (sum(map(plane.processor_time, processes)) - used) / max(seconds, 1e-9),
        tuple(row[0] for row in times),
        tuple(row[1] for row in times),
    )  # fmt: skip
    say(
        f"{name}: {result.placed:,} pods in {seconds:.0f} s, {rate:.0f} a second, {result.memory / 1e6:.0f} MB"
    )
    return result


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


LIMITS = {"isolated": 1.0, "dedicated": 5.0}
"""By policy: the most milliseconds that 99 % of its decisions may take."""


def rows(results: Sequence[Run]) -> list[Row]:
    """The figures with their targets."""
    made = []
    kueue = next((result for result in results if result.system == "kueue"), None)
    for result in results:
        policy = result.system.partition(" ")[2]
        limit = 2 * kueue.rate if kueue and policy else None
        made += [
            Row(f"{result.system}: pods placed", f"of {result.pods:,}", "pods", (float(result.placed),), result.pods, True),
            Row(f"{result.system}: pods per second", "twice Kueue's" if limit else "", "/s", (result.rate,), limit, True),
            Row(f"{result.system}: all of it", "first Job to last pod", "s", (result.seconds,)),
            Row(f"{result.system}: split groups", "one rack was wanted", "", (float(result.broken),), 1 if policy else None),
            Row(f"{result.system}: memory", "its processes", "MB", (result.memory / 1e6,), 500 if policy else None),
            Row(f"{result.system}: cores", "of its processes", "", (result.cores,)),
        ]  # fmt: skip
        if not policy:
            continue
        for what, times, limit in (
            ("decision", result.policy_times, LIMITS.get(policy)),
            ("decision with all filters", result.plan_times, None),
        ):
            for share in (0.5, 0.99):
                values = (1000 * percentile(times, share),) if times else ()
                made.append(Row(
                    f"{result.system}: {what}", f"p{share * 100:.0f}", "ms", values, limit if share > 0.9 else None
                ))  # fmt: skip
    return made


def measure(options: Options) -> Result:
    """Runs all systems and prints their figures."""
    results: list[Run] = []
    shape = Shape(options.nodes, RACK, BLOCK, ROOM)
    systems = options.systems.split(",")
    if "kueue" in systems and (why := missing_kueue()):
        say(f"{why}; it is skipped")
        systems.remove("kueue")
    with cluster(shape) as plane:
        for system in systems:
            for policy in options.policies.split(",") if system == "topolane" else [""]:
                plane.start(
                    *(("topolane-scheduler", {"policy": policy}) if policy else ("default-scheduler", None))
                )
                if system == "kueue":
                    start_kueue(plane)
                wanted = kueues_set(options.pods, options.seed, f"{system}-{policy}".strip("-"))
                results.append(play(plane, wanted, system, policy))
                plane.clear()
                plane.kill("topolane-scheduler" if policy else "default-scheduler")
                if policy:
                    (plane.home / "topolane-scheduler.log").unlink()
    return Result(rows(results), notes=[load_text()])
