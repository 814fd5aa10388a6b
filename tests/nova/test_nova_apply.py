"""The order in which a plan is carried out, whatever Nova says to it. Nova itself is in test_nova_commands.py."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from topolane._engine import Machine
from topolane.nova.execution import RETRIES, PlanExecution, ServerState
from topolane.nova.plan import Migration, MigrationPlan
from topolane.nova.topology import Topology

LEAVES = [(["site", f"leaf{leaf}"], [f"h{leaf}.{i}" for i in range(8)]) for leaf in range(4)]
TOPOLOGY = Topology.of(Machine.of("toy", LEAVES))


class Cloud:
    """Servers that need a look or two to arrive, some of which Nova refuses to move a number of times."""

    def __init__(
        self, where: dict[str, str], groups: dict[str, list[str]], refuses: dict[str, int], slow: int
    ) -> None:
        self.where, self.groups, self.refuses, self.slow = where, groups, dict(refuses), slow
        self.moving: dict[str, tuple[str, int]] = {}
        self.most = 0
        self.sums: dict[str, list[float]] = {group: [self.hops(group)] for group in groups}

    def hops(self, group: str) -> float:
        nodes = sorted(TOPOLOGY.node_of[self.where[server]] for server in self.groups[group])
        return TOPOLOGY.machine.quality(nodes)[1]

    def look(self, server: str) -> ServerState:
        if server in self.moving:
            host, looks = self.moving[server]
            if looks == 0:
                del self.moving[server]
                self.where[server] = host
                for group in self.groups:
                    self.sums[group].append(self.hops(group))
            else:
                self.moving[server] = (host, looks - 1)
        return ServerState(self.where[server], "ACTIVE", server in self.moving)

    def members(self, group: str) -> dict[str, str]:
        return {server: self.where[server] for server in self.groups[group]}

    def migrate(self, server: str, host: str, forced: bool = False) -> str | None:
        if self.refuses.get(server, 0) > 0:
            self.refuses[server] -= 1
            return "No valid host was found."
        assert host not in self.where.values() and all(host != to for to, _ in self.moving.values())
        self.moving[server] = (host, self.slow)
        self.most = max(self.most, len(self.moving))
        return None


def carried_out(
    refuses: dict[str, int], slow: int, at_once: int, stop_after: int
) -> tuple[Cloud, MigrationPlan]:
    """Three groups of four, each with two on another leaf, that a plan brings home."""
    where, groups, migrations, start = {}, {}, [], {}
    for index in range(3):
        name = f"g{index}"
        groups[name] = [f"{name}.{i}" for i in range(4)]
        hosts = [f"h{index}.0", f"h{index}.1", f"h3.{2 * index}", f"h3.{2 * index + 1}"]
        where |= dict(zip(groups[name], hosts))
        for (i, to), (before, after) in zip(((2, 2), (3, 3)), ((8.0, 6.0), (6.0, 0.0))):
            server = f"{name}.{i}"
            migrations.append(Migration(server, server, name, where[server], f"h{index}.{to}", before, after))
        start[name] = 8.0
    cloud, plan = Cloud(where, groups, refuses, slow), MigrationPlan(migrations, start)
    saves = itertools.count()
    saved = [0]
    applying = PlanExecution(
        plan,
        cloud,
        TOPOLOGY,
        at_once,
        timeout=60.0,
        save=lambda: saved.__setitem__(0, next(saves) + 1),
        stopped=lambda: saved[0] >= stop_after,
        retry=0.0,
    )
    applying.run(lambda _: None, pause=0.0)
    return cloud, plan


@settings(max_examples=150, deadline=None)
@given(
    refuses=st.dictionaries(
        st.sampled_from([f"g{g}.{i}" for g in range(3) for i in (2, 3)]), st.integers(0, RETRIES + 2)
    ),
    slow=st.integers(0, 3),
    at_once=st.integers(1, 5),
    stop_after=st.integers(0, 40),
)
def test_no_group_is_ever_worse_off_and_no_more_move_at_once_than_said(
    refuses: dict[str, int], slow: int, at_once: int, stop_after: int
) -> None:
    """What Nova refuses up to RETRIES times is made in the end, unless stopped; nothing is left half done."""
    cloud, plan = carried_out(refuses, slow, at_once, stop_after)
    assert cloud.most <= at_once and not cloud.moving
    for sums in cloud.sums.values():
        assert max(sums) == sums[0]
    for migration in plan.migrations:
        assert migration.state != "started"
        if migration.state == "done":
            assert cloud.where[migration.server] == migration.target
        elif migration.state == "failed":
            assert refuses[migration.server] > RETRIES
    if stop_after == 40 and max(refuses.values(), default=0) <= RETRIES:
        assert {migration.state for migration in plan.migrations} <= {"done", "planned"}


def test_groups_move_at_the_same_time() -> None:
    """Three groups, three at once: one of each, since those of one group wait for each other."""
    cloud, plan = carried_out({}, slow=3, at_once=5, stop_after=1000)
    assert cloud.most == 3
    assert {migration.state for migration in plan.migrations} == {"done"}
    assert all(cloud.hops(group) == 0 for group in cloud.groups)
