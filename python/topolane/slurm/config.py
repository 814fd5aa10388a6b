"""The daemon's configuration: one TOML file."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path

from topolane import reading
from topolane._engine import policy_name
from topolane.parsing import shown
from topolane.reading import Table
from topolane.slurm.bandwidth import read_min_bandwidth
from topolane.slurm.programs import Program

FORMER_KEYS = {"phi": "min-bandwidth", "service-lanes": "service-uplinks"}
"""Keys of an earlier release, accepted for one release, and their present names."""
MOST = 1e18
"""The largest number that a program's description may contain."""


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings of the daemon."""

    slurmrestd: str
    """`unix:/path` or `http://host:port`."""
    partitions: tuple[str, ...]
    """The partitions that it manages."""
    policy: str = "isolated"
    queue: str = "easy"
    min_bandwidth: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By partition, the minimum share of full bandwidth that its jobs accept on dedicated links, unless a
    job's comment gives another. Full bandwidth for other partitions.
    """
    topology: str | None = None
    """A machine file [default: the output of `scontrol show topology`]."""
    whole_nodes: bool = True
    """Whether every job has its nodes to itself (select/linear, or OverSubscribe=EXCLUSIVE)."""
    by_priority: bool = False
    """Whether the queue is ordered by the priorities that Slurm would give; otherwise by submission."""
    cores_per_node: str | None = None
    """`fixed:K` or `auto`, where a job says only how many processes it has; by default all cores."""
    matrices: str | None = None
    """The directory of measured traffic matrices that jobs may name."""
    programs: tuple[Program, ...] = ()
    """The known programs, by the names of their jobs: for `auto`, and for policies that look at traffic."""
    routing: str = "d-mod-k"
    contention: str = "full"
    """For `auto`: routes and model of the prediction. The routes are also those of policies that look at traffic."""
    routes: str | None = None
    """The file for forwarding tables that keep jobs on their dedicated links. The topology must then be a
    file of ibnetdiscover.
    """
    routes_command: tuple[str, ...] = ()
    """The program that installs them, with its arguments."""
    service: str | None = None
    """Hosts of storage and services, which need not be nodes of Slurm."""
    service_uplinks: int = 0
    """How many of the highest uplink slots of every switch are reserved for traffic to and from these hosts."""
    state: str | None = None
    """The file for the dedicated links of running jobs [default: `ROUTES.state`, next to the tables]."""
    fabric: str | None = None
    """A file of the failed links: output of ibnetdiscover, or a list. It is read again when it changes."""
    interval: float = 1.0
    """Seconds between two looks at Slurm."""
    token_file: str | None = None
    metrics: str | None = None
    """`HOST:PORT` of a loopback address where Prometheus may read metrics."""
    log: str | None = None
    """A file of JSON lines; by default standard error."""

    @property
    def state_file(self) -> str | None:
        """The file for the dedicated links of running jobs, if any."""
        return self.state or (None if self.routes is None else f"{self.routes}.state")


def read(path: str | Path) -> Config:
    """Reads a configuration. Raises InputError, with file, line and key, for what cannot be used."""
    table = reading.read(path)
    table.rename(FORMER_KEYS)
    partitions = table.words("partitions")
    if not partitions:
        raise table.refuse("partitions", "names none")
    policy = policy_name(table.word("policy", Config.policy))
    config = Config(
        slurmrestd=table.word("slurmrestd"),
        partitions=partitions,
        policy=policy,
        queue=table.word("queue", Config.queue),
        min_bandwidth=read_min_bandwidth(table, partitions, policy),
        topology=table.word("topology", "") or None,
        whole_nodes=table.flag("whole-nodes", Config.whole_nodes),
        by_priority=table.flag("by-priority", Config.by_priority),
        cores_per_node=_cores(table),
        matrices=table.word("matrices", "") or None,
        programs=tuple(map(_program, table.tables("programs"))),
        routing=table.word("routing", Config.routing),
        contention=table.word("contention", Config.contention),
        routes=table.word("routes", "") or None,
        routes_command=table.words("routes-command", ()),
        service=table.word("service", "") or None,
        service_uplinks=table.whole("service-uplinks", 0, 64, Config.service_uplinks),
        state=table.word("state", "") or None,
        fabric=table.word("fabric", "") or None,
        interval=table.number("interval", 0.05, 3600, Config.interval),
        token_file=table.word("token-file", "") or None,
        metrics=_loopback(table),
        log=table.word("log", "") or None,
    )
    table.done()
    if config.routes_command and config.routes is None:
        raise table.refuse("routes-command", "installs tables: name their file with routes")
    if config.service_uplinks and config.service is None:
        raise table.refuse(
            "service-uplinks", "reserves uplink slots for hosts: name these hosts with service"
        )
    if config.service is not None and config.routes is None:
        raise table.refuse("service", "needs forwarding tables: name a file for them with routes")
    return config


def _cores(table: Table) -> str | None:
    key = "cores-per-node"
    if table.peek(key) is None:
        return None
    value = table.value(key)
    if value == "auto":
        return "auto"
    match = re.fullmatch(r"(?:fixed:)?([1-9][0-9]{0,8})", value if isinstance(value, str) else shown(value))
    if match is None:
        raise table.refuse(key, f"must be a number from 1, fixed:K or auto, not {shown(value)}")
    return f"fixed:{match[1]}"


def _program(table: Table) -> Program:
    program = Program(
        name=table.word("name"),
        pattern=table.word("pattern"),
        iterations=table.number("iterations", 0, MOST, Program.iterations),
        core_seconds=table.number("core-seconds", 0, MOST, Program.core_seconds),
        memory_traffic=table.number("memory-traffic", 0, MOST, Program.memory_traffic),
        memory=table.size("memory", Program.memory),
        communication=table.number("communication", 0, 1, Program.communication),
    )
    table.done()
    return program


def _loopback(table: Table) -> str | None:
    value = table.word("metrics", "")
    if not value:
        return None
    host, colon, port = value.rpartition(":")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if colon and is_loopback and re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65535:
        return value
    raise table.refuse(
        "metrics",
        "must be HOST:PORT on a loopback address, such as 127.0.0.1:9753 (its readers are not authenticated), "
        f"not {shown(value)}",
    )
