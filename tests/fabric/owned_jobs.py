"""Jobs with dedicated links on a machine of 216 hosts, laid out by hand.

They meet the condition of docs/explanation/dedicated-links.md.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tables_text import Text
from topolane._engine import Machine, Scheduler

MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [6, 6, 6]
parents = [1, 6, 6]
cables = [1, 1, 1]
"""
LEAF, LEAVES, LANES = 6, 6, 6
"""Nodes of a leaf, leaves of a pod, uplinks of every switch."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """A job: how many nodes it has on which leaves, and which lanes it owns there."""

    id: int
    nodes: Mapping[int, int]
    planes: Sequence[int] = ()
    cores: Sequence[int] = ()
    """Lanes of the second-level switches of its pods in each of its planes."""
    fewer: Mapping[int, Sequence[int]] = dataclasses.field(default_factory=dict)
    """Planes of a leaf that owns a part of them."""
    fewer_cores: Mapping[int, Sequence[int]] = dataclasses.field(default_factory=dict)
    """Core lanes of a pod that owns a part of them."""


def on(leaves: Iterable[int], nodes: int) -> dict[int, int]:
    """As many nodes on each of some leaves."""
    return dict.fromkeys(leaves, nodes)


JOBS = (
    # Two jobs on the same four leaves; the second has a remainder of one node.
    Layout(1, on(range(4), 3), (0, 1, 2)),
    Layout(2, {**on(range(3), 3), 3: 1}, (3, 4, 5), fewer={3: (3,)}),
    # Two jobs across pods on the same leaves; the first has a smaller pod.
    Layout(3, on((4, 5, 6, 7, 8, 12), 2), (0, 1), (0, 1, 2), fewer_cores={2: (0,)}),
    Layout(4, on((4, 5, 6, 7), 4), (2, 3, 4, 5), (0, 1)),
    Layout(5, on((8, 9), 4), (2, 3, 4, 5)),
    Layout(6, {3: 2}),
    # 17 whole leaves of three pods, one of which shares its second-level switches with job 3.
    Layout(7, on(range(13, 30), 6), range(6), range(6), fewer_cores={2: range(1, 6)}),
    Layout(8, on(range(30, 36), 3), (0, 1, 2)),
    Layout(9, on(range(30, 33), 3), (3, 4, 5)),
    Layout(10, on(range(33, 36), 3), (3, 4, 5)),
)
LATER = Layout(11, on((4, 5), 4), (2, 3, 4, 5))
"""Takes nodes and links of job 4 when that has ended."""
STORAGE = "toy[61-62]"
"""Hosts of a leaf that no job is on."""


def state(layouts: Iterable[Layout], *, lanes: int = LANES) -> dict[str, Any]:
    """The jobs as `topolane routes` reads them, with only the first `lanes` lanes of every switch."""
    taken: dict[int, int] = defaultdict(int)
    running = []
    # Nodes are named in leaf order, and so are cables numbered: nodes', leaves', second-level switches'.
    of_leaves = LEAF * LEAVES * LEAVES
    of_pods = of_leaves + LEAVES * LEAVES * LANES
    for job in layouts:
        nodes, links = [], []
        for leaf, count in job.nodes.items():
            # Not in order: a job whose nodes are the first of every leaf would suit d-mod-k by chance.
            slots = [(5 * slot + leaf) % LEAF for slot in range(taken[leaf], taken[leaf] + count)]
            taken[leaf] += count
            nodes += [leaf * LEAF + slot for slot in slots]
            links += [of_leaves + leaf * LANES + plane for plane in job.fewer.get(leaf, job.planes)]
        if job.cores:
            links += [
                of_pods + (pod * LANES + plane) * LANES + core
                for pod in sorted({leaf // LEAVES for leaf in job.nodes})
                for plane in job.planes
                if plane < lanes
                for core in job.fewer_cores.get(pod, job.cores)
            ]
        kept = [link for link in links if link % LANES < lanes]
        running.append({"id": job.id, "nodes": nodes, "links": kept})
    return {"running": running}


def placed_by(policy: str, machine: Machine, *, seed: int, comes: int = 60) -> dict[str, Any]:
    """The jobs that run when a policy has placed `comes` jobs, and most have ended again: what is left is scattered."""
    scheduler, drawn = Scheduler(machine, policy, "fcfs", seed=seed), random.Random(seed)
    for job in range(1, comes + 1):
        scheduler.submit(job, drawn.choice([2, 3, 5, 8, 13, 21, 34]), 1000.0)
        for _ in scheduler.waiting:
            if scheduler.start(float(job)):
                break
            scheduler.complete(drawn.choice([running.id for running, *_ in scheduler.running]))
    return {
        "running": [
            {"id": given.id, "nodes": given.nodes, "links": given.links}
            for given, _, _ in sorted(scheduler.running, key=lambda row: row[0].id)
        ]
    }


@dataclasses.dataclass
class Traced:
    """What was seen of a job's traffic."""

    pairs: int = 0
    outside: int = 0
    """Pairs whose way uses a link between switches that the job does not own."""
    others: int = 0
    """Pairs whose way uses a link of another job."""
    used: set[int] = dataclasses.field(default_factory=set)
    """Cables between switches on the ways."""
    most: int = 0
    """Flows on the busiest link, over all shifts. In shift k every node sends to the node k places on."""


def trace(machine: Machine, running: Sequence[Mapping[str, Any]], text: Text) -> dict[int, Traced]:
    """Follows every ordered pair of nodes of every job through the texts of a subnet."""
    cable = {(low, high): i for i, (low, _, high, _, _) in enumerate(machine.link_names())}
    owner = {link: job["id"] for job in running for link in job["links"]}
    host = {name: device for device, name in text.name.items() if device.startswith("H-")}
    found = {}
    for job in running:
        seen = found[job["id"]] = Traced()
        hosts = [host[machine.node_name(node)] for node in sorted(job["nodes"])]
        for shift in range(1, len(hosts)):
            flows: Counter[tuple[str, str]] = Counter()
            for source, target in zip(hosts, hosts[shift:] + hosts[:shift]):
                # Leave out the links of the two nodes, which have one each.
                way = text.walk(source, target)[1:-1]
                ends = [(text.name[device], text.name[text.far[device, port]]) for device, port in way]
                flows.update(ends)
                links = {cable.get((a, b), cable.get((b, a), -1)) for a, b in ends}
                owners = {owner.get(link) for link in links}
                seen.pairs += 1
                seen.outside += bool(owners - {job["id"]})
                seen.others += bool(owners - {job["id"], None})
                seen.used |= links
            seen.most = max(seen.most, *flows.values(), 0)
    return found
