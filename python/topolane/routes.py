"""Routings by name or from the forwarding tables of a real subnet, and links by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from topolane import sources, texts
from topolane._engine import InputError, Machine, Routing, routings


def routing(
    machine: str | Path,
    name: str | Path,
    *,
    format: str | None = None,
    nodes: str | None = None,
    topology: str | None = None,
    join: str | Path | None = None,
    seed: int = 0,
) -> tuple[Machine, Routing]:
    """A machine and the routes between its nodes.

    `name` is a rule (`topolane policies` lists them), `default` or a file of forwarding tables:
    `opensm-lfts.dump`, or the output of `dump_fts`. With tables, `machine` must be the file of
    `ibnetdiscover` of the same subnet. The other arguments are those of `topolane.machine`; `seed` is for
    routings with random choices. Raises InputError for unknown names, and for tables that do not fit the
    machine, that contain a loop or that do not lead to a host.
    """
    names = ["default", *(known for known, _ in routings())]
    if str(name).partition("(")[0] in names:
        fabric = sources.machine(machine, format, nodes=nodes, topology=topology, join=join)
        return fabric, fabric.routing(str(name), seed)
    if not Path(name).exists():
        raise InputError(
            f"no routing and no file is called {texts.shown(str(name))}; there are {', '.join(names)}"
        )
    if format not in (None, "ibnetdiscover") or Machine.preset(str(machine)) is not None:
        raise InputError(
            f"{name}: forwarding tables go with a file of ibnetdiscover of the same subnet, "
            f"not with machine {str(machine)!r}"
        )
    if nodes is not None:
        raise InputError(f"{name}: forwarding tables go with the whole machine, not with some of its nodes")
    if join is not None or topology is not None:
        raise InputError(f"{name}: forwarding tables go with the file of ibnetdiscover alone")
    fabric = sources.machine(machine, "ibnetdiscover")
    tables, net = texts.read_text(name, texts.LARGE), texts.read_text(machine)
    return fabric, fabric.tables(tables, net, str(name), str(machine))


@dataclasses.dataclass(frozen=True)
class Link:
    """One direction of a cable, or of a WAN link."""

    cable: int
    """The id of the cable."""
    direction: str
    """The direction: `up` or `down`."""
    source: str
    """The node or switch that sends."""
    target: str
    """The node or switch that receives."""
    groups: tuple[str, str]
    """The names of the groups of both ends; for a node, its own name."""
    number: int | None
    """The number among parallel cables between the same ends, from 0; None if there is only one cable."""

    @property
    def name(self) -> str:
        """The link's name: `source->target`, with `#number` for parallel cables."""
        return f"{self.source}->{self.target}" + ("" if self.number is None else f"#{self.number}")


class MachineLinks:
    """The links of a machine, by cable and direction."""

    def __init__(self, machine: Machine) -> None:
        self._rows = machine.link_names()

    def link(self, cable: int, direction: str) -> Link:
        """The link that is this direction of a cable."""
        lower, lower_group, upper, upper_group, number = self._rows[cable]
        if direction == "up":
            return Link(cable, direction, lower, upper, (lower_group, upper_group), number)
        return Link(cable, direction, upper, lower, (upper_group, lower_group), number)
