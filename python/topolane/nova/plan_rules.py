"""The inputs of filter and weigher that a plan must follow too: nova.conf, CPUs of hosts and measured
traffic.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from topolane._engine import InputError, Traffic
from topolane.nova import measured_sources
from topolane.nova.cloud import Cloud, Server, ServerGroup, cpus, free_slots
from topolane.nova.cpus import cpu_of, of_group
from topolane.nova.measured import MeasuredProgram, ServerNames, plain_name, profile_of, usable
from topolane.nova.plan_traffic import PairWeights
from topolane.nova.traffic import profile

if TYPE_CHECKING:
    from openstack.connection import Connection

WITHOUT_FILE = SimpleNamespace(
    machine_file=None, default_placement="none", compact_policy="hop-bytes-exact", default_identical="none"
)
"""The options without a nova.conf."""
READ_SECONDS = 60.0
"""Seconds for reading measured programs, unless nova.conf allows more."""


def read_options(file: str) -> Any:
    """The options of group [topolane] of a nova.conf. Raises InputError if the file cannot be read."""
    return _read(file).topolane


def read_api_database(file: str) -> str:
    """The URL of the API database in a nova.conf. Raises InputError if the file has none."""
    found = _read(file).api_database.connection
    if not found:
        raise InputError(f"{file}: [api_database] connection is not set")
    return str(found)


def _read(file: str) -> Any:
    try:
        from oslo_config import cfg

        from topolane.nova import config
    except ImportError as error:
        raise InputError(f"--nova-conf needs oslo.config (pip install oslo.config): {error}") from error
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("connection", secret=True), group="api_database")
    try:
        Path(file).read_text(encoding="utf-8")
        conf([], project="nova", default_config_files=[file], default_config_dirs=[])
        for option in config.OPTIONS:
            conf.topolane[option.name]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    except (cfg.Error, ValueError) as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from error
    return conf


class Rules:
    """The rules for the groups of one cloud. `notes` says, in a sentence each, what is not used for a group
    and why.
    """

    def __init__(self, connection: Connection, cloud: Cloud, options: Any = None) -> None:
        """options: those of nova.conf; None without such a file, and then no traffic is read."""
        self._connection = connection
        self._cloud = cloud
        self._has_file = options is not None
        self._options = options if options is not None else WITHOUT_FILE
        self._cpus: Mapping[str, str] | None = None
        self._programs: list[MeasuredProgram] | None = None
        self._contradicted: set[str] = set()
        self.notes: list[str] = []

    def alike(self, group: ServerGroup) -> str:
        """How alike the hosts of a group must be: `generation`, `cpu` or `none`."""
        return str(group.hint.identical or self._options.default_identical)

    def slots(self, group: ServerGroup) -> list[int]:
        """The free slots of each node for a group's servers; 0 on hosts that are not alike enough."""
        free = free_slots(self._connection, self._cloud, group)
        alike = self.alike(group)
        if alike == "none":
            return free
        if self._cpus is None:
            self._cpus = cpus(self._connection)
        used = of_group((self._cpus.get(server.host) for server in group.servers if server.host), alike)
        if not used:
            self.notes.append(
                f"group {group.name} is not planned: the CPUs of the hosts on which it runs are not known"
            )
            return [0] * len(free)
        for host, node in self._cloud.topology.node_of.items():
            if cpu_of(self._cpus.get(host), alike) != used[0][0]:
                free[node] = 0
        return free

    def weights(self, group: ServerGroup) -> PairWeights | None:
        """The weights of the hops between a group's servers; None if they count as talking equally."""
        if group.hint.placement == "spread":
            return None
        running = group.running
        traffic = self._traffic(group, running)
        return PairWeights.of([server.id for server in running], traffic) if traffic is not None else None

    def _traffic(self, group: ServerGroup, running: list[Server]) -> Traffic | None:
        hint = group.hint
        if not self._has_file:
            if hint.traffic is not None:
                self.notes.append(
                    f"group {group.name} is planned as if all its servers talked alike: "
                    "where its traffic is known is in nova.conf, give --nova-conf"
                )
            return None
        problem = ""
        by_value = ["declared", "measured"]
        if self._options.traffic_precedence == "measured":
            by_value.reverse()
        for source in by_value:
            if source == "measured":
                waiting = [server for server in group.servers if server.host is None]
                names = [_names(server) for server in (*running, *waiting)]
                found = profile_of(self._measured(), names, hint.traffic, self._note_once)
                if found is not None:
                    return found.traffic
            elif hint.traffic is not None:
                try:
                    return profile(self._options.traffic_directory, hint.traffic)
                except InputError as error:
                    problem = str(error)
        if problem:
            self.notes.append(f"group {group.name} is planned as if all its servers talked alike: {problem}")
        return None

    def _note_once(self, program: str, sentence: str) -> None:
        """Adds a note about the first contradiction of a program."""
        if program not in self._contradicted:
            self._contradicted.add(program)
            self.notes.append(sentence.removesuffix("."))

    def _measured(self) -> list[MeasuredProgram]:
        """The usable programs, newest first. Raises InputError if the source does not answer."""
        options = self._options
        if self._programs is None and not options.measured:
            self._programs = []
        if self._programs is None:
            seconds = max(READ_SECONDS, options.measured_timeout)
            found = measured_sources.read(
                options.measured,
                options.measured_token_file,
                options.measured_ca,
                options.measured_days,
                seconds,
                (),
            )
            self.notes += found["skipped"]
            missing = len(found["ids"]) - len(found["programs"]) - len(found["skipped"])
            if missing > 0:
                self.notes.append(f"{missing} of {len(found['ids'])} measured programs are not used")
            programs = [MeasuredProgram.of(fields) for fields in found["programs"]]
            self._programs = usable(programs, time.time(), options.measured_days)
        return self._programs


def _names(server: Server) -> ServerNames:
    plain = (plain_name(name) for name in (server.id, server.hostname, server.name) if name)
    return ServerNames(server.id, frozenset(plain) - {""}, server.addresses)
