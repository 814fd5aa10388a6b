"""Finds live migrations that allow larger isolated groups: plans of `room_plan`, compared by servers gained
per migration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from topolane.nova import room_plan
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.migration_plan import MigrationPlan
from topolane.nova.room_plan import NovaRoomPlan


@dataclasses.dataclass(frozen=True)
class Gain:
    """The gain of a plan."""

    servers: int
    """Servers of the largest isolated group that fits after the plan."""
    migrations: int
    per_migration: float
    """Servers gained compared with now, per migration."""
    room: NovaRoomPlan


@dataclasses.dataclass(frozen=True)
class Defragmentation:
    """The plans for a cloud."""

    now: int
    """Servers of the largest isolated group that fits without migrations."""
    gains: list[Gain]
    """The plans found, highest gain per migration first; of equal ones, the plan for the larger group first.
    """

    @property
    def best(self) -> MigrationPlan | None:
        """The plan that gains most per migration."""
        return self.gains[0].room.plan if self.gains else None


def find(
    cloud: Cloud,
    wanted: ServerGroup,
    free: list[int],
    room_for: Callable[[int], NovaRoomPlan],
    done: Callable[[float], None] = lambda part: None,
) -> Defragmentation:
    """Searches a plan for each group size in turn, from the smallest size that Nova refuses now.

    wanted, free: as for `room_plan.find`, which `room_for` calls for a group of the given size. done: called
    with the fraction of sizes searched so far. After a size without a plan, the next size is a sixteenth
    larger, so that a large cloud does not need a search for every size.
    """
    where = room_plan.hosts_of(cloud)
    now = room_plan.largest(cloud, where, free)
    most = sum(slots > 0 for slots in free)
    gains: list[Gain] = []
    servers = now + 1
    while servers <= most:
        done((servers - now - 1) / (most - now))
        room = room_for(servers)
        if room.plan is None:
            servers += max(1, servers // 16)
            continue
        migrations = room.plan.migrations
        fits = room_plan.largest(cloud, *room_plan.after(cloud, wanted, where, free, migrations))
        gains.append(Gain(fits, len(migrations), (fits - now) / len(migrations), room))
        servers = fits + 1
    return Defragmentation(now, sorted(gains, key=lambda gain: (-gain.per_migration, -gain.servers)))
