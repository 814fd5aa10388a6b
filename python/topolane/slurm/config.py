"""The daemon's configuration: one TOML file."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from topolane import parsing
from topolane._engine import InputError
from topolane.parsing import shown
from topolane.slurm.phi import read_phi
from topolane.slurm.programs import Program


@dataclasses.dataclass(frozen=True)
class Config:
    """What the daemon is told."""

    slurmrestd: str
    """`unix:/path` or `http://host:port`."""
    partitions: tuple[str, ...]
    """The partitions whose jobs it starts."""
    policy: str = "isolated"
    queue: str = "easy"
    phi: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The least share of full bandwidth that jobs of a partition accept on links of their own, unless their users say
    another; all of it where none is named."""
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
    service_lanes: int = 0
    """So many of the highest lanes of every switch are for traffic to and from them; no job owns them."""
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
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{path}: unknown key {shown(key)}; there are {', '.join(known)}")
        reader = READERS.get(key, _checked)
        values[known[key].name] = reader(path, key, known[key].type, value)
    for key in ("slurmrestd", "partitions"):
        if key not in values:
            raise InputError(f"{path}: {key} is missing")
    if not values["partitions"]:
        raise InputError(f"{path}: partitions names none")
    if not 0.05 <= values.get("interval", 1.0) <= 3600:
        raise InputError(f"{path}: interval must be from 0.05 to 3600 seconds, not {values['interval']}")
    if "phi" in values:
        policy = values.get("policy", Config.policy)
        values["phi"] = read_phi(path, values["phi"], values["partitions"], policy)
    if values.get("routes_command") and "routes" not in values:
        raise InputError(f"{path}: routes-command installs tables: name their file with routes")
    _check_service(path, values)
    return Config(**values)


def _check_service(path: str | Path, values: dict[str, Any]) -> None:
    lanes = values.get("service_lanes", 0)
    if not 0 <= lanes <= 64:
        raise InputError(f"{path}: service-lanes must be from 0 to 64, not {lanes}")
    if lanes and "service" not in values:
        raise InputError(f"{path}: service-lanes sets lanes aside for hosts: name them with service")
    if "service" in values and "routes" not in values:
        raise InputError(f"{path}: service is about forwarding tables: name their file with routes")


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
    "phi": lambda path, key, kind, value: value,
}
