"""The order in which a plan is carried out, whatever Nova says to it. Nova itself is in test_nova_commands.py."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane._engine import InputError, Machine
from topolane.cluster import room_files
from topolane.cluster.clients.nova import NovaServers, ServerState
from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError, RoomJournal
from topolane.nova.cloud import Cloud as NovaCloud
from topolane.nova.cloud import Server, ServerGroup
from topolane.nova.hints import PlacementHint
from topolane.nova.migration_plan import Migration, MigrationPlan, read
from topolane.nova.plan import make
from topolane.nova.plan_apply import FAILED, MIGRATE, MIGRATED, RETRIES, MigrationApplying, NovaHost
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

    def look(self, server: str) -> ServerState | None:
        if server not in self.where:
            return None
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

    def members(self, group: str) -> dict[str, str] | None:
        if group not in self.groups:
            return None
        return {server: self.where[server] for server in self.groups[group]}

    def migrate(self, server: str, host: str, forced: bool = False) -> str | None:
        if self.refuses.get(server, 0) > 0:
            self.refuses[server] -= 1
            return "No valid host was found."
        assert host not in self.where.values() and all(host != to for to, _ in self.moving.values())
        self.moving[server] = (host, self.slow)
        self.most = max(self.most, len(self.moving))
        return None


class Journal(RoomJournal):
    """A journal in memory."""

    def __init__(self) -> None:
        self.path, self.steps = Path("plan.json.journal"), []

    def write(self, step: str, job: str | None = None, why: str = "") -> None:
        if not self.has(step, job):
            self.steps.append({"step": step, "job": job, "why": why})

    def ends(self, server: str) -> list[str]:
        """The steps of a server."""
        return [str(one["step"]) for one in self.steps if one["job"] == server]


class Applying(MigrationApplying):
    PAUSE = 0.0


def planned() -> tuple[dict[str, str], dict[str, list[str]], MigrationPlan]:
    """Three groups of four, each with two on another leaf, that a plan brings home: hosts, members and the plan."""
    where: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    migrations: list[Migration] = []
    start: dict[str, float] = {}
    for index in range(3):
        name = f"g{index}"
        groups[name] = [f"{name}.{i}" for i in range(4)]
        hosts = [f"h{index}.0", f"h{index}.1", f"h3.{2 * index}", f"h3.{2 * index + 1}"]
        where |= dict(zip(groups[name], hosts))
        for (i, to), (before, after) in zip(((2, 2), (3, 3)), ((8.0, 6.0), (6.0, 0.0))):
            server = f"{name}.{i}"
            migrations.append(Migration(server, server, name, where[server], f"h{index}.{to}", before, after))
        start[name] = 8.0
    return where, groups, MigrationPlan(migrations, start)


def carried_out(
    refuses: dict[str, int], slow: int, at_once: int, stop_after: int
) -> tuple[Cloud, MigrationPlan, Journal, str | None]:
    """The plan carried out until this number of steps are in the journal, and why it was not done."""
    where, groups, plan = planned()
    cloud, journal = Cloud(where, groups, refuses, slow), Journal()
    host = NovaHost(cloud, TOPOLOGY, at_once, 60.0, lambda: len(journal.steps) > stop_after, retry=0.0)
    try:
        Applying(plan, journal, host, math.inf, lambda _: None).run()
    except NotAppliedError as error:
        return cloud, plan, journal, str(error)
    return cloud, plan, journal, None


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
    cloud, plan, journal, why = carried_out(refuses, slow, at_once, stop_after)
    assert cloud.most <= at_once and not cloud.moving
    for sums in cloud.sums.values():
        assert max(sums) == sums[0]
    ends = {migration.server: journal.ends(migration.server)[-1:] for migration in plan.migrations}
    for migration in plan.migrations:
        server = migration.server
        assert (cloud.where[server] == migration.target) == (ends[server] == [MIGRATED])
        if ends[server] == [FAILED]:
            assert refuses[server] > RETRIES
    if stop_after == 40 and max(refuses.values(), default=0) <= RETRIES:
        assert all(end == [MIGRATED] for end in ends.values()) and why is None
    assert (why is None) == all(end == [MIGRATED] for end in ends.values())
    assert journal.has(DONE) or (why or "").startswith("stopped: ")


def test_groups_move_at_the_same_time() -> None:
    """Three groups, three at once: one of each, since those of one group wait for each other."""
    cloud, _, journal, why = carried_out({}, slow=3, at_once=5, stop_after=1000)
    assert cloud.most == 3 and why is None
    assert sum(one["step"] == MIGRATED for one in journal.steps) == 6
    assert all(cloud.hops(group) == 0 for group in cloud.groups)


def applied(path: Path, cloud: Cloud, **named: Any) -> list[str]:
    """What is said of a plan in a file that is carried out."""
    said: list[str] = []
    Applying.apply(path, NovaHost(cloud, TOPOLOGY, 1, 60.0), seconds=math.inf, tell=said.append, **named)
    return said


def test_a_call_that_ended_goes_on_by_the_journal(tmp_path: Path) -> None:
    """Of three migrations that were begun, one has ended meanwhile, one runs, and Nova was not asked for the third, which is made."""
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    room_files.write(path, plan)
    assert read(path) == plan
    journal = RoomJournal(room_files.journal_of(path), room_files.sum_of(path), MigrationApplying.STEPS)
    journal.write(BEGIN)
    ended, runs, unasked = (plan.migrations[at] for at in (0, 2, 4))
    for migration in (ended, runs, unasked):
        journal.write(MIGRATE, migration.server)
    cloud = Cloud(where | {ended.server: ended.target}, groups, {}, slow=1)
    cloud.migrate(runs.server, runs.target)
    said = applied(path, cloud)
    assert said[0] == f"Going on with {path}.journal." and said[-1] == "6 migrations made."
    assert f"Server {runs.name} goes from {runs.source} to {runs.target}." not in said
    assert f"Server {unasked.name} goes from {unasked.source} to {unasked.target}." in said
    assert applied(path, cloud) == ["The plan has been carried out already, or given up: nothing is changed."]


@pytest.mark.parametrize("state", ["done", "started"])
def test_a_plan_of_an_earlier_release_goes_on_where_it_was(tmp_path: Path, state: str) -> None:
    """Its file says what has become of each migration; from then on the journal does."""
    where, groups, plan = planned()
    rows = [{**dataclasses.asdict(migration), "state": "planned", "why": ""} for migration in plan.migrations]
    rows[0]["state"], rows[4] = state, {**rows[4], "state": "failed", "why": "No valid host was found."}
    del rows[1]["forced"]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "migrations": rows, "start": plan.start}))
    content = path.read_bytes()
    first = plan.migrations[0]
    cloud = Cloud(where | {first.server: first.target}, groups, {}, slow=0)
    with pytest.raises(NotAppliedError, match=r"1 of 6 migrations were not made \(g2.2: No valid host was"):
        applied(path, cloud)
    assert cloud.where[plan.migrations[4].server] == plan.migrations[4].source
    assert sum(cloud.where[each.server] == each.target for each in plan.migrations) == 5
    assert path.read_bytes() == content


def of_an_earlier_release(plan: MigrationPlan, states: list[str]) -> str:
    """The file in which an earlier release kept a plan, and the states of its migrations."""
    rows = [
        {**dataclasses.asdict(migration), "state": state, "why": ""}
        for migration, state in zip(plan.migrations, states, strict=True)
    ]
    return json.dumps({"version": 1, "migrations": rows, "start": plan.start})


def test_a_call_that_ended_while_it_took_over_an_earlier_plan_loses_no_state(tmp_path: Path) -> None:
    """The first call wrote that the plan has begun, and ended before it wrote what had been done."""
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    path.write_text(of_an_earlier_release(plan, ["done"] * 6))
    RoomJournal(room_files.journal_of(path), room_files.sum_of(path), MigrationApplying.STEPS).write(BEGIN)
    there = where | {migration.server: migration.target for migration in plan.migrations}
    cloud = Cloud(there, groups, {}, slow=0)
    assert applied(path, cloud)[-1] == "6 migrations made."
    assert cloud.where == there


def test_the_servers_of_a_group_that_was_deleted_stay_and_the_others_move(tmp_path: Path) -> None:
    """Nova keeps the servers of a deleted group. Nothing says any more that they belong together."""
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    room_files.write(path, plan)
    cloud = Cloud(where, groups, {}, slow=0)
    del cloud.groups["g1"]
    with pytest.raises(NotAppliedError, match=r"2 of 6 .*g1\.2: its group is gone; g1\.3: its group is gone"):
        applied(path, cloud)
    moved = {each.server for each in plan.migrations if cloud.where[each.server] == each.target}
    assert moved == {each.server for each in plan.migrations if each.group != "g1"}


def test_a_plan_that_is_given_up_names_what_nova_still_moves(tmp_path: Path) -> None:
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    room_files.write(path, plan)
    cloud, first = Cloud(where, groups, {}, slow=9), plan.migrations[0]
    journal = RoomJournal(room_files.journal_of(path), room_files.sum_of(path), MigrationApplying.STEPS)
    for step, server in ((BEGIN, None), (MIGRATE, first.server), (MIGRATE, plan.migrations[2].server)):
        journal.write(step, server)
    cloud.migrate(first.server, first.target)
    assert applied(path, cloud, undo=True) == [
        f"Server {first.name} still goes to {first.target}: nothing stops that.",
        "The plan is given up.",
    ]


def test_no_plan_replaces_one_that_a_call_is_about_to_carry_out(tmp_path: Path) -> None:
    """The call has no journal yet. A second call is refused as well."""
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    room_files.write(path, plan)
    content = path.read_bytes()
    with room_files.alone(path, "topolane nova apply"):
        with pytest.raises(InputError, match="carries it out now"):
            room_files.write(path, dataclasses.replace(plan, migrations=[]))
        with pytest.raises(InputError, match="another `topolane nova apply` carries it out now"):
            applied(path, Cloud(where, groups, {}, slow=0))
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_a_plan_that_was_replaced_before_its_lock_is_not_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock would be on a file that has no name any more."""
    where, groups, plan = planned()
    path, real = tmp_path / "plan.json", fcntl.flock
    room_files.write(path, plan)

    def late(file: Any, how: int) -> None:
        path.unlink()
        path.write_text(of_an_earlier_release(plan, ["planned"] * 6))
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    cloud = Cloud(where, groups, {}, slow=0)
    with pytest.raises(InputError, match="a new plan has replaced it just now: call again"):
        applied(path, cloud)
    assert cloud.where == where


def test_what_nova_says_of_a_refusal_is_one_line_and_a_deleted_group_is_known() -> None:
    """A proxy in front of Nova may answer with a page."""
    exceptions = pytest.importorskip("openstack.exceptions", reason="openstacksdk is not installed")

    def refuse(*_: object, **__: object) -> None:
        raise exceptions.HttpException("Server Error", details="<html>\x1b\n" + "page" * 9999)

    def missing(_: str) -> None:
        raise exceptions.NotFoundException("No such group")

    compute = SimpleNamespace(live_migrate_server=refuse, get_server_group=missing)
    servers = NovaServers(SimpleNamespace(compute=compute))
    said = servers.migrate("server", "host")
    assert said is not None and said.startswith("<html>\\x1b\\npage") and len(said) < 1100
    assert servers.members("group") is None


def test_a_plan_in_order_that_is_no_longer_true_changes_nothing(tmp_path: Path) -> None:
    """Its migrations need each other. Of other plans the rest is made."""
    where, groups, plan = planned()
    last = plan.migrations[-1]
    there = where | {last.server: "h3.7"}
    path = tmp_path / "plan.json"
    room_files.write(path, dataclasses.replace(plan, in_order=True))
    cloud = Cloud(there, groups, {}, slow=0)
    with pytest.raises(
        NotAppliedError, match=r"no longer true: server g2\.3: it is on h3\.7, not on h3\.5\. Nothing"
    ):
        applied(path, cloud)
    assert cloud.where == there and not room_files.journal_of(path).exists()
    room_files.write(path, plan)
    with pytest.raises(NotAppliedError, match="1 of 6 migrations were not made"):
        applied(path, cloud)


def test_a_plan_that_is_given_up_makes_no_further_migration(tmp_path: Path) -> None:
    where, groups, plan = planned()
    path = tmp_path / "plan.json"
    room_files.write(path, plan)
    cloud = Cloud(where, groups, {}, slow=0)
    assert applied(path, cloud, undo=True) == ["The plan is not being carried out: nothing is changed."]
    RoomJournal(room_files.journal_of(path), room_files.sum_of(path), MigrationApplying.STEPS).write(BEGIN)
    with pytest.raises(InputError, match="the plan there is being carried out"):
        room_files.write(path, plan)
    assert applied(path, cloud, undo=True) == ["The plan is given up."]
    assert applied(path, cloud)[0].startswith("The plan has been carried out already")
    assert cloud.where == where
    room_files.write(path, plan)
    assert not room_files.journal_of(path).exists(), "a new plan may have the name of one that has ended"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "plan.json: version 2 of plans is not known; known is 1"),
        ({"format": "topolane-room-plan"}, "it is no plan of `topolane nova plan --out`"),
        ({"format": None, "version": 7}, "it is no plan of `topolane nova plan --out`"),
        ({"start": {}}, "migrations[0]: group 'g0' is not in start"),
        ({"in_order": 1}, "in_order is no bool"),
        ({"migrations": "none"}, "migrations is no list"),
    ],
)
def test_a_damaged_plan_is_one_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "plan.json"
    room_files.write(path, planned()[2])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as refused:
        read(path)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_no_plan_moves_a_server_twice(tmp_path: Path) -> None:
    """`apply` knows a migration by its server. The engine keeps to that, so the plan stops at no move."""
    members, free = (18, 1, 5, 12, 16, 14, 13, 19), (0, 2, 3, 4, 6, 7, 8, 11, 15, 17)
    pods = (("p0", 0), ("p0", 3), ("p1", 1), ("p2", 2))
    leaves = [(["site", pod, f"l{leaf}"], [f"h{leaf}.{i}" for i in range(5)]) for pod, leaf in pods]
    topology = Topology.of(Machine.of("small", leaves))
    hosts = [topology.machine.node_name(node) for node in members]
    servers = [Server(f"s{at}", "", host, "ACTIVE", {}, {}, None, False) for at, host in enumerate(hosts)]
    group = ServerGroup("g", "g", "", 1, servers, PlacementHint("compact"))
    cloud = NovaCloud(topology, [], [group], {}, frozenset())
    slots = [int(node in free) for node in range(20)]
    plan = make(cloud, lambda _: list(slots), groups=[group], least_gain=4)
    moved = [migration.server for migration in plan.migrations]
    assert len(moved) == len(set(moved)) > 1
    room_files.write(tmp_path / "plan.json", plan)
    assert read(tmp_path / "plan.json") == plan


def test_a_server_that_moves_twice_is_refused(tmp_path: Path) -> None:
    """The journal knows a migration by its server."""
    plan = planned()[2]
    room_files.write(tmp_path / "plan.json", dataclasses.replace(plan, migrations=plan.migrations[:1] * 2))
    with pytest.raises(InputError, match=r"migrations\[1\]: server 'g0.2' moves twice"):
        read(tmp_path / "plan.json")
