"""Moves nothing: for trials of a policy, and of a manager when moves fail.

A host whose `address` is a folder stores its guests there, one file each that contains `running` or
`incoming`, so that they outlive the process. Other files in the folder control moves to this host: `.seconds`
(the duration), `.fail` (fails half way, with this reason), `.lost` (fails and loses the guest), `.undecided`
(as long as it exists, the outcome of an unfinished move is unknown).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from topolane_sites.movers import GuestLost, MoveFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host

STEPS = 10
"""How often a move reports its progress."""
LOOK = 0.05


class DryRunMover:
    """A mover that only records moves."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], str] = {}
        """State by guest and host, for hosts without a folder."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`."""
        if source.name not in self.where(guest, (source,)):
            raise MoveFailed(f"{guest.name} is not on {source.name}")
        began = time.monotonic()
        seconds = float(_control(target, "seconds") or 0)
        self._keep(guest, target, "incoming")
        for step in range(STEPS):
            time.sleep(seconds / STEPS)
            progress((step + 1) / STEPS)
            if 2 * step >= STEPS:
                self._fail_if_asked(guest, source, target)
        self._keep(guest, source, None)
        self._keep(guest, target, "running")
        return {
            "seconds": time.monotonic() - began,
            "downtime": 0.0,
            "bytes": float(guest.memory),
        }

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """See `Mover.where`. An unknown guest is on the host in its own record."""
        known = any(name == guest.name for name, _ in self._at)
        states = {host.name: self._state(guest, host) for host in hosts}
        if not known and guest.host in states and not _folder(_named(hosts, guest.host)):
            states[guest.host] = "running"
        found = [name for name, state in states.items() if state is not None]
        return tuple(sorted(found, key=lambda name: states[name] != "running"))

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """See `Mover.settle`."""
        while _control(target, "undecided") is not None:
            time.sleep(LOOK)
        for host, other in ((source, target), (target, source)):
            if self.where(guest, (host,)) and self._state(guest, host) in ("running", None):
                self._keep(guest, host, "running")
                self._keep(guest, other, None)
                return host.name
        raise GuestLost(f"{guest.name} runs on neither {source.name} nor {target.name}")

    def _fail_if_asked(self, guest: Guest, source: Host, target: Host) -> None:
        if why := _control(target, "lost"):
            self._keep(guest, source, None)
            self._keep(guest, target, None)
            raise GuestLost(f"{guest.name} is lost on its way to {target.name}: {why}")
        if why := _control(target, "fail"):
            self._keep(guest, source, "running")
            self._keep(guest, target, None)
            raise MoveFailed(f"{guest.name} cannot move to {target.name}: {why}")

    def _state(self, guest: Guest, host: Host) -> str | None:
        if folder := _folder(host):
            return _read(folder / guest.name)
        return self._at.get((guest.name, host.name))

    def _keep(self, guest: Guest, host: Host, state: str | None) -> None:
        if folder := _folder(host):
            if state is None:
                (folder / guest.name).unlink(missing_ok=True)
            else:
                (folder / guest.name).write_text(state)
        elif state is None:
            self._at.pop((guest.name, host.name), None)
        else:
            self._at[guest.name, host.name] = state


def _named(hosts: tuple[Host, ...], name: str) -> Host:
    return next(host for host in hosts if host.name == name)


def _folder(host: Host) -> Path | None:
    return Path(host.address) if host.address and Path(host.address).is_dir() else None


def _control(host: Host, name: str) -> str | None:
    """The content of a control file in the folder of a host, or None."""
    folder = _folder(host)
    return _read(folder / f".{name}") if folder else None


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return None
