"""`topolane nova plan --defragment`: what its plans gain, on small clouds of any kind. A whole Nova is in test_nova_room.py."""

from __future__ import annotations

import functools

from hypothesis import event, given, settings
from hypothesis import strategies as st
from test_nova_room_order import FLAVOR, TREE, cloud_of, clouds, fits
from topolane.nova import defragmentation, room_plan
from topolane.nova.cloud import Cloud


def found(
    cloud: Cloud, slots: list[int], most_groups: int
) -> tuple[defragmentation.Defragmentation, functools.partial[room_plan.NovaRoomPlan]]:
    """The plans for a cloud, and what makes room for one size."""
    wanted = room_plan.wanted_group(FLAVOR, None)

    def room_for(servers: int) -> room_plan.NovaRoomPlan:
        return room_plan.find(cloud, wanted, servers, slots, most_groups=most_groups)

    return defragmentation.find(cloud, wanted, slots, room_for), functools.partial(room_for)


@settings(max_examples=300, deadline=None)
@given(made=clouds(), most_groups=st.integers(1, 3))
def test_a_gain_is_the_size_of_group_that_fits_afterwards(
    made: tuple[Cloud, set[str]], most_groups: int
) -> None:
    """Looking at all places says which is the largest group that fits now and after each plan. The plans are in order of servers gained per
    migration, and every size for which there is a plan is reached by one."""
    cloud, free = made
    plans, room_for = found(cloud, [int(host in free) for host in TREE], most_groups)
    now = [[server.host or "" for server in group.servers] for group in cloud.groups]
    sizes = range(1, len(free) + 1)
    assert plans.now == max((size for size in sizes if fits(size, free, now)), default=0)
    event(f"{len(plans.gains)} plans")
    for gain in plans.gains:
        assert gain.room.plan is not None and gain.migrations == len(gain.room.plan.migrations)
        where = {server.id: server.host or "" for group in cloud.groups for server in group.servers}
        left = set(free)
        for move in gain.room.plan.migrations:
            where[move.server] = move.target
            left = (left - {move.target}) | {move.source}
        then = [[where[server.id] for server in group.servers] for group in cloud.groups]
        assert gain.servers == max(size for size in sizes if fits(size, left, then)) > plans.now
        assert gain.per_migration == (gain.servers - plans.now) / gain.migrations
    worth = [gain.per_migration for gain in plans.gains]
    assert worth == sorted(worth, reverse=True)
    planned = [size for size in range(plans.now + 1, len(free) + 1) if room_for(size).plan is not None]
    reached = max((gain.servers for gain in plans.gains), default=plans.now)
    assert reached >= max(planned, default=plans.now), "a plan may fit more than was asked for"


def test_one_migration_opens_a_pod() -> None:
    """Of two servers on two leaves of a pod one joins the other. They cross no links then, so the four hosts that are left may be one
    group."""
    cloud = cloud_of({"scattered": (["a2", "b2"], "isolated", FLAVOR)})
    slots = [int(host[0] in "ab" and host not in ("a2", "b2")) for host in TREE]
    plans, _ = found(cloud, slots, 3)
    assert plans.now == 2
    assert [(gain.servers, gain.migrations, gain.per_migration) for gain in plans.gains] == [(4, 1, 2.0)]
