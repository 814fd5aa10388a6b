"""Restricts a group to hosts with similar processors, according to the CPU reports of Nova's compute
services.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from nova import context as nova_context
from nova.db.main import api as db
from nova.db.main import models
from numpy.typing import NDArray
from oslo_log import log as logging

from topolane.nova.cpus import Cpu, cpu_of, of_group

LOG = logging.getLogger(__name__)


class IdenticalHosts:
    """The hosts that the servers of one request may use if all hosts of the group must be alike."""

    def __init__(self, alike: str, running: Sequence[Any]) -> None:
        """running: the CPU report of the host of each member; None if unknown."""
        self._alike = alike
        self._hidden = bool(running)
        every = of_group(running, alike)
        self.chosen: Cpu | None = every[0][0] if every else None
        """The CPU of the group; None until its first server has a host."""
        if len(every) > 1:
            names = ", ".join(f"{count} with {cpu}" for cpu, count in every)
            LOG.warning("A group that asks for identical hosts uses %s: new servers get the first.", names)

    def restrict(
        self,
        hosts: Sequence[Any],
        slots: NDArray[np.int64],
        awaiting: int,
        stacked: bool,
        price: Callable[[NDArray[np.int64]], float],
    ) -> tuple[NDArray[np.int64], str | None]:
        """The slots on hosts that the group may use, or the reason why it may use none.

        A group without hosts gets a CPU of which enough hosts are free for all its servers; of several, the
        one whose slots have the lowest `price`.
        """
        if self.chosen is None and self._hidden:
            return np.zeros_like(slots), "the CPUs of the hosts on which the group runs are not known"
        cpus = [cpu_of(host.cpu_info, self._alike) for host in hosts]

        def own(cpu: Cpu) -> NDArray[np.int64]:
            return np.where([other == cpu for other in cpus], slots, 0)

        if self.chosen is not None and (left := own(self.chosen)).any():
            return left, None
        free = {cpu: own(cpu) for cpu in sorted({cpu for cpu, some in zip(cpus, slots) if cpu and some > 0})}
        room = {cpu: int(some.sum() if stacked else np.count_nonzero(some)) for cpu, some in free.items()}
        enough = [cpu for cpu in free if self.chosen is None and room[cpu] >= awaiting]
        if enough:
            return free[min(enough, key=lambda cpu: (price(free[cpu]), -room[cpu]))], None
        there = (
            ", ".join(f"{cpu} has room for {count}" for cpu, count in room.items())
            or "no host has a known CPU"
        )
        wanted = (
            f"on {self.chosen}" if self.chosen is not None else f"for {awaiting} servers on identical hosts"
        )
        return np.zeros_like(slots), f"there is no room {wanted}: {there}"

    def update(self, hosts: Sequence[Any], given: Collection[str]) -> None:
        """Sets the group's CPU to that of the first host that one of its servers was given."""
        if self.chosen is None and given:
            found = (cpu_of(host.cpu_info, self._alike) for host in hosts if host.host in given)
            self.chosen = next((cpu for cpu in found if cpu is not None), None)


def reported(context: Any, hosts: Collection[str]) -> list[Any]:
    """The CPU report of each of these hosts; None for a host whose cell does not answer."""
    if not hosts:
        return []
    results = nova_context.scatter_gather_all_cells(context, lambda cell: _rows(cell, set(hosts))).values()
    answers = [rows for rows in results if not nova_context.is_cell_failure_sentinel(rows)]
    info = dict(row for rows in answers for row in rows)
    return [info.get(host) for host in hosts]


@db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _rows(context: Any, hosts: Collection[str]) -> list[tuple[str, Any]]:
    one = models.ComputeNode
    query = context.session.query(one.host, one.cpu_info).filter(one.host.in_(list(hosts)), one.deleted == 0)
    return [(host, info) for host, info in query]
