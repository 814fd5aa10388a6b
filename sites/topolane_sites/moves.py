"""Carries out moves: journals them first, limits how many run at once, and settles them after a crash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from topolane._engine import InputError

from topolane_sites.inventory import Inventory
from topolane_sites.model import Guest, Host, Move, Stage
from topolane_sites.movers import GuestLost, MoveFailed, Mover, OutcomeUnknown, mover
from topolane_sites.plans import PlannedMove
from topolane_sites.processor import misfit
from topolane_sites.state import ManagerDatabase, StateError

PATIENCE = 600.0
"""Seconds for which a planned move waits for room at its target."""


class Moves:
    """The waiting and running moves. They belong to one event loop; drivers block in threads of their own."""

    def __init__(
        self,
        state: ManagerDatabase,
        inventory: Inventory,
        at_once: int,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._state, self._inventory, self._at_once, self._tell = state, inventory, at_once, tell
        self._waiting: list[tuple[Move, float]] = []
        self._running: dict[int, Move] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._movers: dict[str, Mover] = {}
        self._last: dict[str, float] = {}
        self._unsettled: list[Move] = []
        self._unsettled_why: dict[int, str] = {}
        for move, changed in state.moves():
            if move.stage == Stage.PLANNED:
                self._end(move, Stage.ROLLED_BACK, "the manager ended before it began")
            elif move.stage == Stage.COPYING:
                self._unsettled.append(move)
            elif move.stage != Stage.ROLLED_BACK:
                self._last[move.guest] = max(changed, self._last.get(move.guest, 0.0))

    @property
    def moving(self) -> set[str]:
        """Guests whose move waits, runs, or is not yet settled."""
        return self.begun | {move.guest for move, _ in self._waiting}

    @property
    def begun(self) -> set[str]:
        """Guests whose move runs or is not yet settled."""
        return {move.guest for move in [*self._running.values(), *self._unsettled]}

    @property
    def under_way(self) -> list[Move]:
        """The running moves, with their progress."""
        return list(self._running.values())

    def last(self, guest: str) -> float | None:
        """When a guest was last moved, seconds since 1970."""
        return self._last.get(guest)

    def add(self, planned: PlannedMove) -> Move | None:
        """Journals a move. Returns None if its guest is already being moved, or is no longer on the source."""
        guest = self._inventory.guests.get(planned.guest)
        if planned.guest in self.moving or guest is None or guest.host != planned.source:
            return None
        move = self._state.plan_move(planned.guest, planned.source, planned.target, planned.why)
        self._waiting.append((move, time.monotonic()))
        return move

    def start(self) -> None:
        """Starts waiting moves, as far as there is room."""
        # Out of the list comes what has been journalled: the database may refuse.
        for move, since in list(self._waiting):
            guest, source, target = self._parts(move)
            if guest is None or source is None or target is None or guest.host != move.source:
                self._end(move, Stage.ROLLED_BACK, "its guest or a host is no longer there")
            elif source.driver != target.driver:
                why = f"{source.name} is driven by {source.driver}, {target.name} by {target.driver}"
                self._end(move, Stage.ROLLED_BACK, why)
            elif why := misfit(guest, target):
                self._end(move, Stage.ROLLED_BACK, why)
            elif target.name in self._inventory.away:
                self._end(move, Stage.ROLLED_BACK, f"host {target.name} is silent")
            elif guest.cluster in self._inventory.held():
                continue
            elif len(self._running) < self._at_once and self._fits(guest, target):
                self._run(replace(move, stage=Stage.COPYING), guest, source, target)
            elif time.monotonic() - since > PATIENCE:
                self._end(move, Stage.ROLLED_BACK, f"host {target.name} has had no room for {PATIENCE:.0f} s")
            else:
                continue
            self._waiting.remove((move, since))

    async def settle(self) -> None:
        """Finishes or undoes moves that an earlier manager left unfinished, if their hosts are known."""
        for move in list(self._unsettled):
            guest, source, target = self._parts(move)
            if guest is None or source is None or target is None:
                continue
            try:
                host = await asyncio.to_thread(self._mover(target).settle, guest, source, target)
            except GuestLost as error:
                self._inventory.moved(move.guest, None)
                self._end(move, Stage.LOST, str(error))
            except (InputError, MoveFailed, OutcomeUnknown) as error:
                self._say_unsettled(move, str(error))
                continue
            else:
                self._inventory.moved(move.guest, host)
                done = Stage.DONE if host == move.target else Stage.ROLLED_BACK
                self._end(move, done, f"it was left half done; the guest runs on {host}")
            self._unsettled.remove(move)
            self._unsettled_why.pop(move.id, None)

    async def finish(self) -> None:
        """Waits for the running moves. Waiting moves are not started."""
        await asyncio.gather(*self._tasks)

    def _run(self, move: Move, guest: Guest, source: Host, target: Host) -> None:
        self._state.set_move(move)
        self._running[move.id] = move
        self._tell("move-began", guest.name, f"from {source.name} to {target.name}: {move.why}")
        task = asyncio.create_task(self._make(move, guest, source, target))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _make(self, move: Move, guest: Guest, source: Host, target: Host) -> None:
        try:
            await self._make_and_journal(move, guest, source, target)
        except StateError as error:
            # It has ended somehow, and the journal does not say so: found out again when the database answers.
            self._unsettled.append(move)
            self._say_unsettled(move, f"the database: {error}")
        finally:
            del self._running[move.id]

    async def _make_and_journal(self, move: Move, guest: Guest, source: Host, target: Host) -> None:
        def progress(share: float) -> None:
            self._running[move.id] = replace(move, progress=share)

        try:
            driver = self._mover(target)
            detail = await asyncio.to_thread(driver.move, guest, source, target, progress)
        except (MoveFailed, InputError) as error:
            self._end(move, Stage.ROLLED_BACK, str(error))
        except GuestLost as error:
            self._inventory.moved(guest.name, None)
            self._end(move, Stage.LOST, str(error))
        except OutcomeUnknown as error:
            self._unsettled.append(move)
            self._say_unsettled(move, str(error))
        except Exception as error:  # noqa: BLE001
            # A driver raises nothing else; if one does, it is not known where the guest is: find out.
            self._tell("driver-failed", guest.name, f"{target.driver}: {type(error).__name__}: {error}")
            self._unsettled.append(move)
        else:
            self._inventory.moved(guest.name, target.name)
            self._end(replace(move, progress=1.0, detail=detail), Stage.DONE, "")

    def _say_unsettled(self, move: Move, why: str) -> None:
        """Logs each reason once: the move is settled again at every look."""
        if self._unsettled_why.get(move.id) != why:
            self._unsettled_why[move.id] = why
            self._tell("not-settled", move.guest, f"{why}; it is tried again")

    def _end(self, move: Move, stage: Stage, why: str) -> None:
        self._state.set_move(replace(move, stage=stage, why=f"{move.why}; {why}" if why else move.why))
        if stage != Stage.ROLLED_BACK or move.stage == Stage.COPYING:
            # Also one that failed is not tried again at once.
            self._last[move.guest] = time.time()
        seconds = f" in {move.detail['seconds']:.1f} s" if "seconds" in move.detail else ""
        text = f"from {move.source} to {move.target}{seconds}"
        self._tell(f"move-{stage}", move.guest, f"{text}: {why}" if why else text)

    def _parts(self, move: Move) -> tuple[Guest | None, Host | None, Host | None]:
        hosts = self._inventory.hosts
        return self._inventory.guests.get(move.guest), hosts.get(move.source), hosts.get(move.target)

    def _fits(self, guest: Guest, target: Host) -> bool:
        names = [move.guest for move in self._running.values() if move.target == target.name]
        # Its cluster may have been dropped since.
        coming = [known for name in names if (known := self._inventory.guests.get(name)) is not None]
        there = [*self._inventory.running_on([target.name]), *coming, guest]
        cores, memory = sum(one.cores for one in there), sum(one.memory for one in there)
        return cores <= target.cores and memory <= target.memory

    def _mover(self, host: Host) -> Mover:
        if host.driver not in self._movers:
            self._movers[host.driver] = mover(host.driver)
        return self._movers[host.driver]
