"""Moving a guest from host to host: one interface, a driver a file.

A move is journalled before it begins. Whoever finds one that is neither done nor rolled back, after a
crash, asks the mover what is so (`where`) and finishes it or takes it back: never are two copies left running.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from topolane._engine import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane.sites.model import Guest, Host


class MoveFailed(Exception):
    """A move did not happen: the reason, in a sentence. The guest runs at its source."""


class GuestLost(Exception):
    """A guest runs nowhere any more: the reason, in a sentence."""


class OutcomeUnknown(Exception):
    """Nobody answers who knows what became of a guest: the reason, in a sentence. To be settled later."""


class Mover(Protocol):
    """Moves guests of one kind. Every call may block; none raises anything but what it documents."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """Moves a running guest and waits until it runs at the target, or again at the source.

        `progress` is called with the copied share of memory, 0 to 1; where it raises MoveFailed the move is
        cancelled. Answers with what was measured
        (seconds, downtime in seconds, bytes). Raises MoveFailed with the guest running at the source,
        GuestLost where it runs at neither, OutcomeUnknown where that cannot be seen.
        """
        ...

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """Names of those hosts on which the guest exists in any state, running ones first.

        Raises OutcomeUnknown where that cannot be seen.
        """
        ...

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """After a crash: finishes or takes back a half-done move, so that exactly one copy runs.

        Answers with the host it runs on. Raises GuestLost where there is none to run, OutcomeUnknown where that cannot
        be seen.
        """
        ...


DRIVERS = {
    "dry-run": ("dry_run", "DryRun"),
    "qmp": ("qmp", "Qmp"),
    "libvirt": ("libvirt", "Libvirt"),
    "nova": ("nova", "Nova"),
    "slurm": ("slurm", "Slurm"),
}
"""Module and class by the name of a driver. A module is imported when its driver is used: each needs its own extra."""
WANT_ADDRESS = {"qmp": "a folder for its guests", "libvirt": "a URI such as qemu:///system"}
"""What a host's address must say, of drivers that cannot do without."""


def mover(driver: str) -> Mover:
    """The mover of a driver. Raises InputError for a driver there is none of, or whose library is missing."""
    if driver not in DRIVERS:
        raise InputError(f"driver {driver!r} is not one of: {', '.join(DRIVERS)}")
    module, name = DRIVERS[driver]
    try:
        made: Mover = getattr(importlib.import_module(f"topolane.sites.movers.{module}"), name)()
    except ModuleNotFoundError as error:
        extra = driver if driver in ("libvirt", "nova") else "sites"
        raise InputError(
            f"driver {driver!r} needs the Python module {error.name}: install the extra {extra}"
        ) from error
    return made
