"""Random states of small machines in which room is needed, and the least cost of making it by a mixed-integer
programme.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix
from topolane._engine import Machine, NoRoom, RoomPlan, State, make_room

if TYPE_CHECKING:
    from collections.abc import Sequence

Job = tuple[int, list[int], list[int], float | None, int | None]
"""Id, nodes, links, cost in node-seconds or None, and group of a job, in the form that `make_room` takes."""

MOST_NODES = 128
FULL = 0.97
"""The largest fraction of the machine that jobs hold."""


def racks(count: int, size: int) -> Machine:
    """A machine of `count` leaves with `size` nodes each."""
    names = [(["site", f"r{rack}"], [f"n{rack}.{node}" for node in range(size)]) for rack in range(count)]
    return Machine.of("racks", names)


@dataclasses.dataclass(frozen=True)
class Question:
    """A request for room on a machine of equal racks."""

    racks: int
    size: int
    policy: str
    wanted: int
    segment: int | None
    within: str | None
    jobs: list[Job]
    budgets: list[int]

    @property
    def parts(self) -> tuple[int, int] | None:
        """The slots of a part that must lie in one rack, and the number of parts; None if any nodes will do."""
        if self.policy == "first-fit":
            return None
        size = self.segment or self.wanted
        return size, self.wanted // size

    def plan(self) -> RoomPlan | NoRoom:
        """The engine's plan."""
        return make_room(
            State(racks(self.racks, self.size)),
            self.policy,
            self.wanted,
            self.jobs,
            budgets=self.budgets,
            segment=self.segment,
            within=self.within,
        )

    def makes_room(self, plan: RoomPlan) -> bool:
        """Whether the policy places the request in a new state without the jobs of the plan."""
        machine = racks(self.racks, self.size)
        return is_placed(machine, self.policy, self.wanted, self.jobs, plan, self.segment, self.within)

    def least(self) -> float | None:
        """The least cost by HiGHS; None if there is no plan.

        A variable is 1 if its job leaves. For racks, further variables count the parts in each rack. The last
        variable is always 0, because a programme needs at least one.
        """
        jobs = [job for job in self.jobs if job[3] is not None]
        held = {node for job in self.jobs for node in job[1]}
        free = [
            sum(rack * self.size + node not in held for node in range(self.size))
            for rack in range(self.racks)
        ]
        parts = self.parts
        homes = self.racks if parts else 0
        rows = lil_matrix((1 + homes + bool(parts) + len(self.budgets), len(jobs) + homes + 1))
        lower = np.full(rows.shape[0], -np.inf)
        upper = np.full(rows.shape[0], np.inf)
        for column, job in enumerate(jobs):
            rows[0, column] = len(job[1])
            if parts:
                for node in job[1]:
                    rows[1 + node // self.size, column] += 1
            if job[4] is not None:
                rows[rows.shape[0] - len(self.budgets) + job[4], column] = 1
        lower[0] = self.wanted - sum(free)
        if parts:
            size, count = parts
            for rack in range(homes):
                rows[1 + rack, len(jobs) + rack] = -size
                rows[1 + homes, len(jobs) + rack] = 1
                lower[1 + rack] = -free[rack]
            lower[1 + homes] = count
        if self.budgets:
            upper[-len(self.budgets) :] = self.budgets
        most = [1.0] * len(jobs) + [float(self.size)] * homes + [0.0]
        found = milp(
            [job[3] for job in jobs] + [0.0] * (homes + 1),
            constraints=LinearConstraint(rows.tocsr(), lower, upper),
            bounds=Bounds(np.zeros(len(most)), np.array(most)),
            integrality=np.ones(len(most)),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == 2:
            return None
        if found.x is None:
            raise RuntimeError(f"HiGHS: {found.message}")
        gone = np.round(found.x[: len(jobs)])
        return float(sum(job[3] for job, is_gone in zip(jobs, gone, strict=True) if is_gone))


def is_placed(
    machine: Machine,
    policy: str,
    wanted: int,
    jobs: Sequence[Job],
    plan: RoomPlan,
    segment: int | None = None,
    within: str | None = None,
) -> bool:
    """Whether the policy places a request where the plan says, in a new state without the jobs of the plan."""
    state = State(machine)
    gone = set(plan.requeued)
    for job, nodes, links, *_ in jobs:
        if job not in gone:
            state.hold(nodes, links=links)
    placed = state.place(policy, wanted, segment=segment, within=within)
    return getattr(placed, "nodes", None) == plan.decision.nodes


def question(seed: int) -> Question:
    """A random, more or less full state of up to 128 nodes, and a request."""
    chance = random.Random(seed)
    size = chance.randint(2, 18)
    count = chance.randint(1, MOST_NODES // size)
    nodes = size * count
    policy = chance.choice(("first-fit", "kueue-tas", "slurm-block", "segments"))
    budgets = [chance.randint(0, 6) for _ in range(chance.choice((0, 0, 1, 3)))]
    free = list(range(nodes))
    if chance.random() < 0.5:
        chance.shuffle(free)
    jobs: list[Job] = []
    mean = chance.uniform(1.5, nodes / 4 + 1.5)
    for job in itertools.count(1):
        wanted = min(int(chance.expovariate(1 / mean)) + 1, nodes)
        if len(free) - wanted < (1 - FULL) * nodes or job > nodes:
            break
        held, free = sorted(free[:wanted]), free[wanted:]
        cost = None if chance.random() < 0.1 else wanted * chance.uniform(0, 86_400)
        group = chance.randrange(len(budgets)) if budgets and chance.random() < 0.6 else None
        jobs.append((job, held, [], cost, group))
    segment = within = None
    wanted = chance.randint(1, nodes)
    if policy in ("kueue-tas", "slurm-block"):
        wanted = chance.randint(1, size)
        within = "required:leaf" if policy == "kueue-tas" else None
    elif policy == "segments":
        segment = chance.randint(1, size)
        wanted = segment * chance.randint(1, max(1, (size // segment) * count))
    return Question(count, size, policy, wanted, segment, within, jobs, budgets)
