"""Compares speed-ups of the SC'18 network study with messages packet by packet under ns-3."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

import numpy as np
from components import Programs, run
from packets import CABLE, network
from topolane._engine import Traffic
from topolane.sources import machine
from topolane_studies import sc18_network as sc18

# Cab with smaller switches: 4 pods of 8 leaves of 8 nodes instead of 18 of 18, and jobs of up to the same share of
# the machine. Cab itself takes ten times as long.
CAB = sc18.STUDIES[1]
STUDY = dataclasses.replace(CAB, machine="fat-tree(radix=16,pods=4)", largest=101)
# A message of the study, and the packets that stand for it. They are many enough that the few packet times which
# a longer route takes count little.
MESSAGE, PACKETS, PAYLOAD = 65536, 16, 1448


@dataclasses.dataclass(frozen=True)
class SpeedupRow:
    """The mean speed-up of isolation by packets and by the models."""

    oblivious: str
    pattern: str
    jobs: int
    packets_fair: float
    """Packets in queues by flow."""
    packets_shared: float
    """Packets in one queue a port."""
    max_min_flows: float
    max_min: float
    congestion: float
    paper: float


def packet_times(programs: Programs, queues: str, placed: Sequence[tuple[list[int], Traffic]]) -> np.ndarray:
    """Seconds per iteration of each job among the others."""
    fabric, flows = machine(STUDY.machine), []
    for job, (nodes, traffic) in enumerate(placed):
        froms, tos, sizes, _ = traffic.arrays()
        for a, b, size in zip(froms.tolist(), tos.tolist(), sizes.tolist()):
            flows.append((nodes[a], nodes[b], job, round(size / MESSAGE) * PACKETS * PAYLOAD))
    command = [programs.ns3_bulk(), "jobs", queues, str(len(placed)), "1"]
    described = network(fabric.routing("d-mod-k"), fabric.nodes, flows, bandwidth=CABLE)
    return np.array(run(command, described, timeout=3600).split(), dtype=float)


def packet_speedups(programs: Programs, case: sc18.StudyCase, queues: str) -> dict[str, np.ndarray]:
    """The speed-ups of the jobs of a workload by packets, by oblivious placement."""
    jobs = sc18.workload(case)
    traffic = sc18.traffic_of(case, jobs)
    best = packet_times(programs, queues, list(zip((nodes for *_, nodes in jobs), traffic)))
    placements = sc18.oblivious(case, [nodes for _, nodes, _ in jobs])
    return {
        name: packet_times(programs, queues, list(zip(placed, traffic))) / best
        for name, placed in placements.items()
    }


def speedup_rows(programs: Programs, workloads: int) -> list[SpeedupRow]:
    """The rows by oblivious placement and pattern."""
    cases = [sc18.StudyCase(STUDY, seed) for seed in range(1, workloads + 1)]
    found = []
    for case in cases:
        speedups = sc18.measure(case)
        for queues in ("fair", "shared"):
            for name, values in packet_speedups(programs, case, queues).items():
                speedups.of[name, "d-mod-k", queues] = values.tolist()
        found.append(speedups)
    rows = []
    for placed in sc18.OBLIVIOUS:
        for pattern, paper in STUDY.paper.items():
            by = [
                sc18.speedups_of(found, (placed, "d-mod-k", how), pattern)
                for how in ("fair", "shared", "max-min-flows", "max-min", "congestion")
            ]
            if by[0]:
                rows.append(SpeedupRow(placed, pattern, len(by[0]), *map(statistics.fmean, by), paper))
    return rows
