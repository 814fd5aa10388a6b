"""The daemon's configuration: one TOML file."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from topolane import parsing
from topolane._engine import InputError, policy_name
from topolane.parsing import shown
from topolane.slurm.bandwidth import read_min_bandwidth
from topolane.slurm.programs import Program

FORMER_KEYS = {"phi": "min-bandwidth", "service-lanes": "service-uplinks"}
"""Keys of an earlier release, accepted for one release, and their present names."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What the daemon is told."""

    slurmrestd: str
    """`unix:/path` or `http://host:port`."""
    partitions: tuple[str, ...]
    """The partitions whose jobs it starts."""
    policy: str = "isolated"
    queue: str = "easy"
    min_bandwidth: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The minimum share of full bandwidth that jobs of a partition accept on dedicated links, unless a job's comment
    says another; full bandwidth for a partition without one."""
    topology: str | None = None
    """A machine file; by default what `scontrol show topology` says."""
    whole_nodes: bool = True
    """Whether every job has its nodes to itself (select/linear, or OverSubscribe=EXCLUSIVE)."""
    by_priority: bool = False
    """Whether the priorities that Slurm would give order the queue; else submission."""
    cores_per_node: str | None = None
    """`fixed:K` or `auto`, where a job says only how many processes it has; by default all cores."""
    programs: tuple[Program, ...] = ()
    """For `auto`: what is known of programs, by the names of their jobs."""
    routing: str = "d-mod-k"
    contention: str = "full"
    """For `auto`: routes and model of the prediction."""
    routes: str | None = None
    """Where to write forwarding tables for the links that jobs own; the topology is then a file of ibnetdiscover."""
    routes_command: tuple[str, ...] = ()
    """What installs them: a program and its arguments."""
    service: str | None = None
    """Hosts of storage and services, which need not be nodes of Slurm."""
    service_uplinks: int = 0
    """How many of the highest uplink slots of every switch are reserved for traffic to and from these hosts."""
    state: str | None = None
    """Where to keep which links jobs were given; beside the tables (`ROUTES.state`) where not named."""
    fabric: str | None = None
    """A file that says which links have failed, read again when it changes: output of ibnetdiscover, or a list."""
    interval: float = 1.0
    """Seconds between two looks at Slurm."""
    token_file: str | None = None
    metrics: str | None = None
    """`HOST:PORT` of a loopback address where Prometheus may read metrics."""
    log: str | None = None
    """A file of JSON lines; by default standard error."""

    @property
    def state_file(self) -> str | None:
        """Where it is kept which links jobs were given."""
        return self.state or (None if self.routes is None else f"{self.routes}.state")


def read(path: str | Path) -> Config:
    """Reads a configuration. Raises InputError, in one sentence, for what cannot be used."""
    table = parsing.read_toml(path)
    known = {field.name.replace("_", "-"): field for field in dataclasses.fields(Config)}
    values: dict[str, Any] = {}
    for given, value in table.items():
        key = FORMER_KEYS.get(given, given)
        if key not in known:
            raise InputError(f"{path}: unknown key {shown(key)}; there are {', '.join(known)}")
        if known[key].name in values:
            raise InputError(f"{path}: {key} is given twice, once by its former name")
        reader = READERS.get(key, _checked)
        values[known[key].name] = reader(path, key, known[key].type, value)
    for key in ("slurmrestd", "partitions"):
        if key not in values:
            raise InputError(f"{path}: {key} is missing")
    if not values["partitions"]:
        raise InputError(f"{path}: partitions names none")
    if not 0.05 <= values.get("interval", 1.0) <= 3600:
        raise InputError(f"{path}: interval must be from 0.05 to 3600 seconds, not {values['interval']}")
    if "policy" in values:
        values["policy"] = policy_name(values["policy"])
    if "min_bandwidth" in values:
        policy = values.get("policy", Config.policy)
        shares = read_min_bandwidth(path, values["min_bandwidth"], values["partitions"], policy)
        values["min_bandwidth"] = shares
    if values.get("routes_command") and "routes" not in values:
        raise InputError(f"{path}: routes-command installs tables: name their file with routes")
    _check_service(path, values)
    return Config(**values)


def _check_service(path: str | Path, values: dict[str, Any]) -> None:
    uplinks = values.get("service_uplinks", 0)
    if not 0 <= uplinks <= 64:
        raise InputError(f"{path}: service-uplinks must be from 0 to 64, not {uplinks}")
    if uplinks and "service" not in values:
        raise InputError(
            f"{path}: service-uplinks reserves uplink slots for hosts: name these hosts with service"
        )
    if "service" in values and "routes" not in values:
        raise InputError(f"{path}: service needs forwarding tables: name a file for them with routes")


def _checked(path: str | Path, key: str, kind: Any, value: Any) -> Any:
    if str(kind).startswith("tuple"):
        if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
            return tuple(value)
        raise InputError(f"{path}: {key} must be a list of names, not {shown(value)}")
    wanted: Any = {"bool": bool, "float": (int, float), "int": int}.get(str(kind), str)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"{path}: {key} cannot be {shown(value)}")
    try:
        return float(value) if str(kind) == "float" else value
    except OverflowError as error:
        raise InputError(f"{path}: {key} cannot be {shown(value)}") from error


def _cores(path: str | Path, key: str, _: Any, value: Any) -> str:
    if value == "auto":
        return "auto"
    match = re.fullmatch(r"(?:fixed:)?([1-9][0-9]{0,8})", str(value))
    if match is None or isinstance(value, bool):
        raise InputError(f"{path}: {key} must be a number from 1, fixed:K or auto, not {shown(value)}")
    return f"fixed:{match[1]}"


def _programs(path: str | Path, key: str, _: Any, value: Any) -> tuple[Program, ...]:
    known = {field.name.replace("_", "-"): field for field in dataclasses.fields(Program)}
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise InputError(f"{path}: {key} must be tables [[{key}]], not {shown(value)}")
    programs = []
    for table in value:
        for name in table:
            if name not in known:
                raise InputError(f"{path}: {key}: unknown key {shown(name)}; there are {', '.join(known)}")
        for name in ("name", "pattern"):
            if name not in table:
                raise InputError(f"{path}: {key}: {name} is missing")
        given = {
            known[name].name: _checked(path, f"{key}: {name}", known[name].type, one)
            for name, one in table.items()
        }
        programs.append(Program(**given))
    return tuple(programs)


def _loopback(path: str | Path, key: str, _: Any, value: Any) -> str:
    host, colon, port = str(value).rpartition(":")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if colon and is_loopback and re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= 65535:
        return str(value)
    raise InputError(
        f"{path}: {key} must be HOST:PORT on a loopback address, such as 127.0.0.1:9753 (whoever reads "
        f"there need not say who he is), not {shown(value)}"
    )


READERS: dict[str, Callable[[str | Path, str, Any, Any], Any]] = {
    "cores-per-node": _cores,
    "programs": _programs,
    "metrics": _loopback,
    "min-bandwidth": lambda path, key, kind, value: value,
}
