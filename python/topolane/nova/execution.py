"""Carries out a plan with Nova's live migrations, a few at once. It can be stopped and continued."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from topolane.cluster.clients.nova import ServerState
from topolane.nova.plan import Migration, MigrationPlan

if TYPE_CHECKING:
    from topolane.nova.topology import Topology

POLL_SECONDS = 1.0
RETRY_SECONDS = 30.0
RETRIES = 5
"""How often to retry a refused migration. Nova's scheduler may learn only two minutes later that a server
left a host (`scheduler_instance_sync_interval`).
"""


class Servers(Protocol):
    """The calls to a cloud that carrying out a plan needs."""

    def look(self, server: str) -> ServerState | None:
        """The state of the server now; None if it no longer exists."""

    def members(self, group: str) -> dict[str, str]:
        """The host of every server of the group that has one."""

    def migrate(self, server: str, host: str, forced: bool = False) -> str | None:
        """Starts a live migration; if `forced`, Nova does not apply its filters. Returns None, or why Nova
        refuses it.
        """


@dataclasses.dataclass
class PlanExecution:
    """The execution of a plan."""

    plan: MigrationPlan
    servers: Servers
    topology: Topology
    at_once: int
    timeout: float
    """Seconds after which a running migration is no longer watched."""
    save: Callable[[], None]
    """Called whenever the state of a migration has changed."""
    stopped: Callable[[], bool]
    """Returns whether to start no further migration."""
    retry: float = RETRY_SECONDS
    """Seconds until a refused migration is tried again."""

    def __post_init__(self) -> None:
        self._deadline: dict[str, float] = {}
        self._refused: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    def run(self, progress: Callable[[int], None], pause: float = POLL_SECONDS) -> None:
        """Makes the migrations. Returns when all have ended, or after a stop, when the started ones have
        ended.
        """
        for migration in self.plan.migrations:
            if migration.state == "started":
                self._deadline[migration.server] = time.monotonic() + self.timeout
        while True:
            for migration in self._in("started"):
                self._follow(migration)
            if not self.stopped():
                self._start_some()
            progress(sum(migration.state not in ("planned", "started") for migration in self.plan.migrations))
            if not self._in("started") and (self.stopped() or not self._in("planned")):
                return
            time.sleep(pause)

    def _start_some(self) -> None:
        """Starts planned migrations until `at_once` are running. Migrations of one group start in the plan's
        order.
        """
        waiting: set[str] = set()
        for migration in self._in("planned"):
            if len(self._in("started")) >= self.at_once:
                return
            early = time.monotonic() < self._not_before.get(migration.server, 0.0)
            if migration.group in waiting or early or self._must_wait(migration):
                waiting.add(migration.group)
                continue
            self._start(migration)
            if migration.state == "planned":
                waiting.add(migration.group)

    def _in(self, state: str) -> list[Migration]:
        return [migration for migration in self.plan.migrations if migration.state == state]

    def _must_wait(self, migration: Migration) -> bool:
        """Whether to wait: another running migration still occupies the target host, or moves a server of the
        same group, so that the gain cannot be computed yet.
        """
        others = self._in("started")
        if self.plan.in_order and (others or migration is not self._in("planned")[0]):
            return True
        return any(migration.target == other.source or migration.group == other.group for other in others)

    def _start(self, migration: Migration) -> None:
        problem = self._problem(migration)
        if problem is not None:
            self._set(migration, "skipped", problem)
            return
        refusal = self.servers.migrate(migration.server, migration.target, migration.forced)
        if refusal is None:
            self._deadline[migration.server] = time.monotonic() + self.timeout
            self._set(migration, "started")
            return
        self._refused[migration.server] = self._refused.get(migration.server, 0) + 1
        self._not_before[migration.server] = time.monotonic() + self.retry
        again = self._refused[migration.server] <= RETRIES
        self._set(migration, "planned" if again else "failed", refusal)

    def _problem(self, migration: Migration) -> str | None:
        """Why a migration must not be made now, or None."""
        if self.plan.in_order and (self._in("failed") or self._in("skipped")):
            return "one that had to be made before it was not"
        now = self.servers.look(migration.server)
        if now is None:
            return "the server is gone"
        if now.host != migration.source:
            return f"it is on {now.host}, not on {migration.source}"
        if now.busy or now.status not in ("ACTIVE", "PAUSED"):
            return f"it is {now.status}{' and busy' if now.busy else ''}"
        if migration.target not in self.topology.node_of:
            return f"{migration.target} is not on the topology any more"
        before, after = self._hops(migration)
        # A group that leaves links of other groups may end with more hops than at the start, but not more than planned.
        most = max(self.plan.start[migration.group], migration.after)
        if after > most:
            return f"its group would have {after:g} hops, more than {most:g} as planned or at the start"
        if before != migration.before and after >= before:
            return f"its group has changed: it would go from {before:g} hops to {after:g}"
        return None

    def _hops(self, migration: Migration) -> tuple[float, float]:
        """Hops of the migration's group now and after the migration; weighted if the plan has weights."""
        hosts = self.servers.members(migration.group)
        moved = hosts | {migration.server: migration.target}
        find = self.topology.node_of
        weights = self.plan.weights.get(migration.group)
        if weights is not None:
            machine = self.topology.machine
            now, then = (
                weights.hops(machine, {server: find[host] for server, host in where.items() if host in find})
                for where in (hosts, moved)
            )
            return now, then
        before, after = (
            self.topology.machine.quality(sorted(find[host] for host in where.values() if host in find))[1]
            for where in (hosts, moved)
        )
        return before, after

    def _follow(self, migration: Migration) -> None:
        now = self.servers.look(migration.server)
        if now is None:
            self._set(migration, "failed", "the server is gone")
        elif now.host == migration.target and not now.busy:
            self._set(migration, "done")
        elif now.status == "ERROR":
            self._set(migration, "failed", "the server is in ERROR")
        elif not now.busy:
            what = "left" if now.host == migration.source else "put"
            self._set(migration, "failed", f"Nova {what} it on {now.host}")
        elif time.monotonic() > self._deadline[migration.server]:
            self._set(migration, "failed", f"it has not ended in {self.timeout:g} seconds")

    def _set(self, migration: Migration, state: str, why: str = "") -> None:
        migration.state, migration.why = state, why
        self.save()
