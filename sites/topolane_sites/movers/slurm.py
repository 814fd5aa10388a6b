"""Moves a batch job of Slurm to another node: the job is requeued there, and restarts from the beginning or
from its own checkpoint.

Slurm runs a job once, so there are never two copies. The guest's name is the job's id; a host's `address` is
its node. A crash can leave a job that waits, held or restricted to the target: `settle` lets it run.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from topolane._engine import InputError
from topolane.cluster.clients.scontrol import scontrol

from topolane_sites.movers import GuestLost, MoveFailed, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from topolane_sites.model import Guest, Host

STARTS = 300.0
"""Seconds in which a requeued job must start. Slurm itself delays it by two minutes."""
SILENT = 60.0
"""Seconds for which slurmctld may not answer, for example during a restart."""
REVOKED = 2.0
"""Seconds between a job's end on its node and its new start. slurmd refuses a job whose credential is not of a
later second than the end of its last run (Slurm's slurm_cred_revoked), and slurmctld then ends the job. The
second allows for clocks that differ.
"""
ENDING = ("COMPLETING", "CONFIGURING", "REQUEUED")
"""States before a requeued job waits again."""
LOOK = 0.5


class SlurmMover:
    """Requeues jobs, by Slurm's rules: the nodes may be in a reservation or partition of their own."""

    def move(
        self, guest: Guest, source: Host, target: Host, progress: Callable[[float], None]
    ) -> dict[str, float]:
        """See `Mover.move`. The downtime is the time from the requeue to the new start. Nothing is copied."""
        began = time.monotonic()
        if _place(guest) != ("RUNNING", _node(source)):
            raise MoveFailed(f"job {guest.name} does not run on {source.name}")
        try:
            scontrol("requeuehold", guest.name)
            progress(0.0)
            _ask_for(guest, target)
            _wait(guest, target, progress)
        except (InputError, MoveFailed) as error:
            host = self.settle(guest, source, target)
            if host == source.name:
                raise MoveFailed(f"job {guest.name} stays at {host}: {error}") from error
        passed = time.monotonic() - began
        return {"seconds": passed, "downtime": passed, "bytes": 0.0}

    def where(self, guest: Guest, hosts: tuple[Host, ...]) -> tuple[str, ...]:
        """See `Mover.where`."""
        _, node = _place(guest)
        return tuple(host.name for host in hosts if _node(host) == node)

    def settle(self, guest: Guest, source: Host, target: Host) -> str:
        """See `Mover.settle`. A waiting job returns to its source, or to the target if the source is full.

        A job that can start on neither keeps waiting. It is not lost; call this again to try again.
        """
        for host in (source, target):
            state, node = _place(guest)
            if state == "RUNNING":
                break
            if state not in ("PENDING", *ENDING):
                raise GuestLost(f"job {guest.name} is {state or 'unknown to Slurm'}")
            try:
                _ask_for(guest, host)
                _wait(guest, host, lambda _: None)
            except (InputError, MoveFailed):
                continue
        state, node = _place(guest)
        for host in (source, target):
            if state == "RUNNING" and node == _node(host):
                return host.name
        if state in ("PENDING", *ENDING):
            raise OutcomeUnknown(
                f"job {guest.name} waits: it starts on neither {source.name} nor {target.name}"
            )
        raise GuestLost(f"job {guest.name} is {state or 'unknown to Slurm'}, on {node or 'no node'}")


def _node(host: Host) -> str:
    return host.address or host.name


def _ask_for(guest: Guest, host: Host) -> None:
    """Lets a waiting job start on that node only."""
    deadline = time.monotonic() + STARTS
    # It ends on its node first, and is then put off: only what is asked after that is kept.
    while (state := _place(guest)[0]) != "PENDING":
        if time.monotonic() > deadline or state not in ENDING:
            raise MoveFailed(f"it is {state or 'unknown to Slurm'} and cannot be asked to wait")
        time.sleep(LOOK / 5)
    time.sleep(REVOKED)
    scontrol("update", f"JobId={guest.name}", f"ReqNodeList={_node(host)}", "StartTime=now")
    scontrol("release", guest.name)


def _wait(guest: Guest, host: Host, progress: Callable[[float], None]) -> None:
    deadline = time.monotonic() + STARTS
    while (place := _place(guest)) != ("RUNNING", _node(host)):
        if place[0] == "RUNNING":
            raise MoveFailed(f"it has started on {place[1]}")
        if place[0] not in ("PENDING", *ENDING):
            raise MoveFailed(f"it is {place[0] or 'unknown to Slurm'}")
        if time.monotonic() > deadline:
            scontrol("hold", guest.name)
            raise MoveFailed(f"it has not started on {host.name} for {STARTS:g} s")
        progress(0.0)
        time.sleep(LOOK)
    progress(1.0)


def _place(guest: Guest) -> tuple[str, str]:
    """State and node of a job; both empty if Slurm does not know it. Raises OutcomeUnknown if Slurm does not
    answer.
    """
    deadline = time.monotonic() + SILENT
    while True:
        try:
            shown = scontrol("show", "job", "-o", guest.name)
            break
        except InputError as error:
            if "Invalid job id" in str(error):
                return "", ""
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"what became of job {guest.name} cannot be seen: {error}") from error
            time.sleep(LOOK)
    found = dict(re.findall(r"(\w+)=(\S*)", shown))
    node = found.get("NodeList", "")
    return found.get("JobState", ""), "" if node == "(null)" else node
