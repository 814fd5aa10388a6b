"""Moving a guest from host to host: one interface, a driver a file.

A move is journalled before it begins. Whoever finds one that is neither done nor rolled back, after a
crash, asks the mover what is so (`where`) and finishes it or takes it back: never are two copies left running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane.sites.model import Guest, Host


class MoveFailed(Exception):
    """A move did not happen: the reason, in a sentence. The guest runs at its source."""


class GuestLost(Exception):
    """A guest runs nowhere any more: the reason, in a sentence."""


class Mover(Protocol):
    """Moves guests of one kind. Every call may block; none raises anything but what it documents."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """Moves a running guest and waits until it runs at the target, or again at the source.

        `progress` is called with the copied share of memory, 0 to 1. Answers with what was measured
        (seconds, downtime in seconds, bytes). Raises MoveFailed with the guest running at the source,
        GuestLost where it runs at neither.
        """
        ...

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """Names of those hosts on which the guest exists in any state, running ones first."""
        ...

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """After a crash: finishes or takes back a half-done move, so that exactly one copy runs.

        Answers with the host it runs on. Raises GuestLost where there is none to run.
        """
        ...
