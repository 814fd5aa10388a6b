"""Movers move a guest from host to host: one interface, one file per driver.

A move is journalled before it begins. If a crash leaves it neither done nor rolled back, the next manager
asks the mover for the state (`where`) and finishes or undoes it. Two copies are never left running.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from topolane._engine import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host


ENDS = 1800.0
"""Seconds after which a move that does not end by itself is cancelled, where the host's own system moves the guest."""


class MoveFailed(Exception):
    """A move failed, and the guest runs on its source. The message is a sentence."""


class GuestLost(Exception):
    """A guest no longer runs anywhere. The message is a sentence."""


class OutcomeUnknown(Exception):
    """The outcome of a move cannot be determined now and must be settled later. The message is a sentence."""


class Mover(Protocol):
    """Moves guests of one kind. Every call may block, and raises only the errors that it documents."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """Moves a running guest and waits until it runs at the target, or again at the source.

        progress: called with the copied share of memory, 0 to 1. If it raises MoveFailed, the move is
        cancelled. Returns measurements (seconds, downtime in seconds, bytes). Raises MoveFailed if the guest
        runs on the source, GuestLost if it runs on neither, OutcomeUnknown if that cannot be determined.
        """
        ...

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """Names of those hosts on which the guest exists in any state, running ones first.

        Raises OutcomeUnknown if that cannot be determined.
        """
        ...

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """After a crash: finishes or undoes an unfinished move, so that exactly one copy runs.

        Returns the host it runs on. Raises GuestLost if no copy can run, OutcomeUnknown if that cannot be
        determined.
        """
        ...


DRIVERS = {
    "dry-run": ("dry_run", "DryRunMover"),
    "qmp": ("qmp", "QmpMover"),
    "libvirt": ("libvirt", "LibvirtMover"),
    "nova": ("nova", "NovaMover"),
    "slurm": ("slurm", "SlurmMover"),
}
"""Module and class by the name of a driver. A module is imported when its driver is used: each needs its own extra."""
WANT_ADDRESS = {"qmp": "a folder for its guests", "libvirt": "a URI such as qemu:///system"}
"""What the address of a host must be, for drivers that need one."""


def mover(driver: str) -> Mover:
    """The mover of a driver. Raises InputError for an unknown driver, or if its library is missing."""
    if driver not in DRIVERS:
        raise InputError(f"driver {driver!r} is not one of: {', '.join(DRIVERS)}")
    module, name = DRIVERS[driver]
    try:
        made: Mover = getattr(importlib.import_module(f"topolane_sites.movers.{module}"), name)()
    except ModuleNotFoundError as error:
        wanted = f"the extra {driver}" if driver in ("libvirt", "nova") else "what topolane-sites requires"
        raise InputError(
            f"driver {driver!r} needs the Python module {error.name}: install {wanted}"
        ) from error
    return made
