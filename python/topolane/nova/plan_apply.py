"""Carries out a plan with Nova's live migrations, a few at once, with a journal next to the plan.

Nova keeps no hosts for a plan. A migration that is no longer as planned is skipped, and the others go on unless they need it.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from topolane.cluster.applying import Applying
from topolane.cluster.clients.nova import ServerState
from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError, RoomJournal
from topolane.nova import migration_plan
from topolane.nova.cloud import MOVABLE
from topolane.nova.migration_plan import EarlierPlan, Migration, MigrationPlan
from topolane.nova.topology import Topology
from topolane.units import plural

MIGRATE, MIGRATED, FAILED, SKIPPED = "migrate", "migrated", "failed", "skipped"
PLANNED = ""
"""The state of a migration without a step in the journal."""
ENDS = (MIGRATED, FAILED, SKIPPED)
STEP_OF = {"started": MIGRATE, "done": MIGRATED, "failed": FAILED, "skipped": SKIPPED}
"""The steps for what files of an earlier release say of migrations."""
RETRY_SECONDS = 30.0
RETRIES = 5
"""How often to retry a refused migration. Nova's scheduler may learn only two minutes later that a server
left a host (`scheduler_instance_sync_interval`).
"""
NAMED = 5
"""Migrations that a sentence names."""


class Servers(Protocol):
    """The calls to a cloud that carrying out a plan needs."""

    def look(self, server: str) -> ServerState | None:
        """The state of the server now; None if it no longer exists."""

    def members(self, group: str) -> dict[str, str] | None:
        """The host of every server of the group that has one; None if the group no longer exists."""

    def migrate(self, server: str, host: str, forced: bool = False) -> str | None:
        """Starts a live migration; if `forced`, Nova does not apply its filters. Returns None, or why Nova
        refuses it.
        """


@dataclasses.dataclass(frozen=True)
class NovaHost:
    """The cloud of a plan, and how to migrate in it."""

    servers: Servers
    topology: Topology
    at_once: int
    timeout: float
    """Seconds after which a running migration is no longer watched."""
    stopped: Callable[[], bool] = lambda: False
    """Returns whether to start no further migration."""
    retry: float = RETRY_SECONDS
    """Seconds until a refused migration is tried again."""


class MigrationApplying(Applying[MigrationPlan, NovaHost, None, MigrationPlan]):
    """Carries out a plan of migrations. Each that runs is watched until it ends."""

    COMMAND = "topolane nova apply"
    STEPS = (BEGIN, MIGRATE, *ENDS, DONE)
    read = staticmethod(migration_plan.read)

    def __init__(
        self,
        plan: MigrationPlan,
        journal: RoomJournal,
        host: NovaHost,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(plan, journal, host, seconds, tell)
        self.servers, self.topology = host.servers, host.topology
        self.why: dict[str, str] = {}
        """Why migrations failed or were skipped, by server."""
        self._deadline: dict[str, float] = {}
        self._refused: dict[str, int] = {}
        self._is_unsure: set[str] = set()
        """Servers of which it is not known whether Nova was asked to migrate them: an earlier call may have ended before that."""
        self._not_before: dict[str, float] = {}
        if isinstance(plan, EarlierPlan):
            self._take_over(plan)
        self._state = {migration.server: self._recorded(migration) for migration in plan.migrations}

    def _take_over(self, plan: EarlierPlan) -> None:
        """Writes what a file of an earlier release says of its migrations into the journal, as far as it is not there."""
        if all(state == "planned" for state, _ in plan.states):
            return
        self.journal.write(BEGIN)
        for migration, (state, why) in zip(plan.migrations, plan.states, strict=True):
            if state in STEP_OF:
                self.journal.write(STEP_OF[state], migration.server, why)

    def _recorded(self, migration: Migration) -> str:
        """The state of a migration that the journal has."""
        steps = [one for one in self.journal.steps if one.get("job") == migration.server]
        if not steps:
            return PLANNED
        self.why[migration.server] = str(steps[-1].get("why", ""))
        self._deadline[migration.server] = time.monotonic() + self.host.timeout
        self._is_unsure.add(migration.server)
        return str(steps[-1]["step"])

    def look(self) -> None:
        """Nothing: each server is looked at when its turn comes."""

    def changed(self, look: None) -> Iterator[str]:
        """What is no longer as planned, where the migrations need each other."""
        for migration in self.plan.migrations if self.plan.in_order else ():
            if problem := self._moved(migration):
                yield f"server {migration.name}: {problem}"

    def found(self, look: None) -> MigrationPlan:
        """The plan is for its own migrations."""
        return self.plan

    def waits(self, look: None, found: MigrationPlan) -> bool:
        """Whether a migration has not ended."""
        return bool(self._in(PLANNED) or self._in(MIGRATE))

    def hold(self, look: None, found: MigrationPlan) -> None:
        """Nova keeps nothing."""

    def disturb(self, look: None, found: MigrationPlan) -> bool:
        """Follows the migrations that run, and starts more."""
        for migration in self._in(MIGRATE):
            self._follow(migration)
        if not self.host.stopped():
            self._start_some()
        elif not self._in(MIGRATE) and (left := len(self._in(PLANNED))):
            raise NotAppliedError(f"stopped: {plural(left, 'migration')} left; run `apply` again to go on")
        return True

    def too_late(self, look: None, found: MigrationPlan) -> str:
        """Each migration has its own time."""
        return "not all migrations have ended"

    def give_up(self) -> None:
        """Says which migrations Nova still makes."""
        for migration in self._in(MIGRATE):
            if (now := self.servers.look(migration.server)) is not None and now.busy:
                self.tell(f"Server {migration.name} still goes to {migration.target}: nothing stops that.")

    def outcome(self, found: MigrationPlan | None) -> Iterator[str]:
        """What has been made."""
        lost = [migration for migration in self.plan.migrations if self._state[migration.server] != MIGRATED]
        count = len(self.plan.migrations)
        if lost:
            named = "; ".join(f"{each.name}: {self.why[each.server]}" for each in lost[:NAMED])
            more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
            raise NotAppliedError(
                f"{len(lost)} of {plural(count, 'migration')} were not made ({named}{more})"
            )
        yield f"{plural(count, 'migration')} made."

    def _start_some(self) -> None:
        """Starts planned migrations until `at_once` are running. Migrations of one group start in the plan's
        order.
        """
        waiting: set[str] = set()
        for migration in self._in(PLANNED):
            if len(self._in(MIGRATE)) >= self.host.at_once:
                return
            early = time.monotonic() < self._not_before.get(migration.server, 0.0)
            if migration.group in waiting or early or self._must_wait(migration):
                waiting.add(migration.group)
                continue
            self._start(migration)
            if self._state[migration.server] == PLANNED:
                waiting.add(migration.group)

    def _in(self, state: str) -> list[Migration]:
        return [migration for migration in self.plan.migrations if self._state[migration.server] == state]

    def _must_wait(self, migration: Migration) -> bool:
        """Whether to wait: another running migration still occupies the target host, or moves a server of the
        same group, so that the gain cannot be computed yet.
        """
        others = self._in(MIGRATE)
        if self.plan.in_order and (others or migration is not self._in(PLANNED)[0]):
            return True
        return any(migration.target == other.source or migration.group == other.group for other in others)

    def _start(self, migration: Migration) -> None:
        problem = self._problem(migration)
        if problem is not None:
            self._end(migration, SKIPPED, problem)
            return
        self.journal.write(MIGRATE, migration.server)
        refusal = self.servers.migrate(migration.server, migration.target, migration.forced)
        if refusal is None:
            self._deadline[migration.server] = time.monotonic() + self.host.timeout
            self._state[migration.server] = MIGRATE
            self.tell(f"Server {migration.name} goes from {migration.source} to {migration.target}.")
            return
        self._refused[migration.server] = self._refused.get(migration.server, 0) + 1
        self._not_before[migration.server] = time.monotonic() + self.host.retry
        if self._refused[migration.server] > RETRIES:
            self._end(migration, FAILED, refusal)

    def _problem(self, migration: Migration) -> str | None:
        """Why a migration must not be made now, or None."""
        if self.plan.in_order and (self._in(FAILED) or self._in(SKIPPED)):
            return "one that had to be made before it was not"
        if problem := self._moved(migration):
            return problem
        hosts = self.servers.members(migration.group)
        if hosts is None:
            return "its group is gone"
        before, after = self._hops(migration, hosts)
        # A group that leaves links of other groups may end with more hops than at the start, but not more than planned.
        most = max(self.plan.start[migration.group], migration.after)
        if after > most:
            return f"its group would have {after:g} hops, more than {most:g} as planned or at the start"
        if before != migration.before and after >= before:
            return f"its group has changed: it would go from {before:g} hops to {after:g}"
        return None

    def _moved(self, migration: Migration) -> str | None:
        """Why the server cannot go from its source to its target, or None."""
        now = self.servers.look(migration.server)
        if now is None:
            return "it is gone"
        if now.host != migration.source:
            return f"it is on {now.host or 'no host'}, not on {migration.source}"
        if now.busy or now.status not in MOVABLE:
            return f"it is {now.status}{' and busy' if now.busy else ''}"
        if migration.target not in self.topology.node_of:
            return f"{migration.target} is not on the topology any more"
        return None

    def _hops(self, migration: Migration, hosts: dict[str, str]) -> tuple[float, float]:
        """Hops of the migration's group on these hosts and after the migration; weighted if the plan has weights."""
        moved = hosts | {migration.server: migration.target}
        weights = self.plan.weights.get(migration.group)
        if weights is None:
            return self.topology.hops(hosts.values()), self.topology.hops(moved.values())
        machine, find = self.topology.machine, self.topology.node_of
        before, after = (
            weights.hops(machine, {server: find[host] for server, host in where.items() if host in find})
            for where in (hosts, moved)
        )
        return before, after

    def _follow(self, migration: Migration) -> None:
        now = self.servers.look(migration.server)
        if now is None:
            self._end(migration, FAILED, "it is gone")
        elif now.host == migration.target and not now.busy:
            self._end(migration, MIGRATED)
        elif now.status == "ERROR":
            self._end(migration, FAILED, "it is in ERROR")
        elif not now.busy and now.host == migration.source and migration.server in self._is_unsure:
            self._is_unsure.remove(migration.server)
            self._state[migration.server] = PLANNED
        elif not now.busy:
            what = "left" if now.host == migration.source else "put"
            self._end(migration, FAILED, f"Nova {what} it on {now.host or 'no host'}")
        elif time.monotonic() > self._deadline[migration.server]:
            self._end(migration, FAILED, f"it has not ended in {self.host.timeout:g} seconds")

    def _end(self, migration: Migration, state: str, why: str = "") -> None:
        self.journal.write(state, migration.server, why)
        self._state[migration.server], self.why[migration.server] = state, why
        name = migration.name
        if state == MIGRATED:
            self.tell(f"Server {name} is on {migration.target}.")
        else:
            self.tell(f"Server {name} is {'skipped' if state == SKIPPED else 'not migrated'}: {why}.")


def apply(path: Path, host: NovaHost, tell: Callable[[str], None], *, undo: bool = False) -> None:
    """Carries out the plan in a file, or goes on with it: see `Applying.apply`."""
    MigrationApplying.apply(path, host, seconds=math.inf, tell=tell, undo=undo)
