"""Keeps forwarding tables up to date: writes them before a job starts on dedicated links, and after such a
job ends.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping

from topolane import files
from topolane._engine import DedicatedRoutes, ForwardingTables, InputError, Machine
from topolane.live.allocation import Allocation
from topolane.slurm.config import Config
from topolane.slurm.fabric import net_of, service_hosts

LIMIT = 60.0
"""Time limit in seconds for the command that installs the tables."""

Routed = tuple[frozenset[int], tuple[int, ...]]
"""Nodes of a job, and the cables that its traffic uses."""


class Routes:
    """The tables in one file. Raises InputError if the machine does not come from a file of ibnetdiscover."""

    def __init__(self, config: Config, write: Callable[..., None]) -> None:
        assert config.routes is not None
        self._file, self._command, self._write = config.routes, config.routes_command, write
        net = net_of(config)
        if net is None:
            raise InputError(
                "routes: tables are for a subnet that is known: 'topology' must be a file of ibnetdiscover, "
                f"not {config.topology!r}"
            )
        self._net, self._source = net, str(config.topology)
        self._machine = Machine.parse(self._net, self._source, "ibnetdiscover")
        self._service, self._uplinks = service_hosts(config, self._machine), config.service_uplinks
        self._tables: ForwardingTables | None = None
        self._held: dict[int, Routed] = {}
        """The jobs that those tables are for."""
        self._last: dict[int, Routed] | None = None
        """The jobs that the tables in the file are for; None if these could not be installed."""

    @property
    def machine(self) -> Machine:
        """The subnet."""
        return self._machine

    def keep(self, jobs: Mapping[int, Allocation]) -> bool:
        """Writes and installs the tables for these jobs, if they have changed. Returns False if that failed."""
        held = {job: one.routed for job, one in jobs.items() if one.links}
        if held == self._last:
            return True
        try:
            changed = self._put(held)
        except (InputError, OSError, subprocess.SubprocessError) as error:
            self._last = None
            self._write("routes-error", error=str(error))
            return False
        self._last = held
        lent = {job: len(one.lent) for job, one in jobs.items() if one.lent}
        self._write("routes", jobs=sorted(held), entries_changed=changed, **({"lent": lent} if lent else {}))
        return True

    def _put(self, held: Mapping[int, Routed]) -> int | None:
        rows = [(str(job), sorted(nodes), links) for job, (nodes, links) in held.items()]
        routes = DedicatedRoutes(self._machine, rows, self._service, self._uplinks)
        if self._tables is None:
            tables, changed = routes.tables(self._net, self._source), None
        else:
            moved = {node for _, (nodes, _) in held.items() ^ self._held.items() for node in nodes}
            tables = self._tables.after(routes, sorted(moved))
            changed = tables.differing(self._tables)
        files.write(self._file, tables.text(), "routes")
        if self._command:
            done = subprocess.run(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=LIMIT,
                check=False,
                text=True,
            )
            if done.returncode:
                said = done.stderr.strip().splitlines()[-1:] or [""]
                raise InputError(f"{self._command[0]} ended with {done.returncode}: {said[0]}")
        self._tables, self._held = tables, dict(held)
        return changed
