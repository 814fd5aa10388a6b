"""Carries out a plan that makes room: the same loop for every host, with a journal next to the plan.

Each step is in the journal before it is taken, and looks at the host before it changes anything. So after a crash `apply` goes on where
it was, and nothing is disturbed twice for one plan: a run of a job, or a pod, is known by more than its name.

    BEGIN -> while what waits is there and waits: hold (reservation, taints) -> disturb (requeue, evict) -> free -> DONE
             apply again goes on from the journal; --undo: give_up -> DONE
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from topolane.cluster.room_files import BEGIN, DONE, NotAppliedError, RoomJournal, alone, journal_of, sum_of

P = TypeVar("P")
"""A plan."""
H = TypeVar("H")
"""Where its host is."""
L = TypeVar("L")
"""A look at the host."""
J = TypeVar("J")
"""What waits for the nodes of the plan."""


class Applying(ABC, Generic[P, H, L, J]):
    """A plan that is carried out. A host fills in its actions."""

    PAUSE: ClassVar[float] = 1.0
    """Seconds between two looks at the host."""
    COMMAND: ClassVar[str]
    STEPS: ClassVar[Sequence[str]]
    """What may stand in the journal."""

    def __init__(
        self, plan: P, journal: RoomJournal, host: H, seconds: float, tell: Callable[[str], None]
    ) -> None:
        self.plan, self.journal, self.host, self.tell = plan, journal, host, tell
        self.end = time.monotonic() + seconds

    @classmethod
    def apply(
        cls, path: Path, host: H, *, seconds: float, tell: Callable[[str], None], undo: bool = False
    ) -> None:
        """Carries out the plan in a file, or goes on with it.

        seconds: how long to wait. tell: gets a sentence for each step. undo: give the plan up instead. Raises NotAppliedError if the plan
        is no longer true (then nothing was changed) or if what it waits for does not happen; InputError for bad input and if the host
        refuses.
        """
        with alone(path, cls.COMMAND):
            made = cls(
                cls.read(path), RoomJournal(journal_of(path), sum_of(path), cls.STEPS), host, seconds, tell
            )
            if undo:
                made.undo()
            else:
                made.run()

    def run(self) -> None:
        """Carries the plan out, or goes on with it."""
        if self.journal.has(DONE):
            self.tell("The plan has been carried out already, or given up: nothing is changed.")
            return
        if self.journal.has(BEGIN):
            self.tell(f"Going on with {self.journal.path}.")
        else:
            self._check()
            self.journal.write(BEGIN)
        found, late = self._make_room()
        self.free()
        self.journal.write(DONE)
        if late is not None:
            raise NotAppliedError(late)
        for sentence in self.outcome(found):
            self.tell(sentence)

    def undo(self) -> None:
        """Keeps nothing any longer, and disturbs nothing more."""
        if not self.journal.has(BEGIN) or self.journal.has(DONE):
            self.tell("The plan is not being carried out: nothing is changed.")
            return
        self.give_up()
        self.journal.write(DONE)
        self.tell("The plan is given up.")

    def _check(self) -> None:
        """Raises NotAppliedError, with what has changed, if the plan is no longer true."""
        look = self.look()
        changed = list(self.changed(look))
        if not changed and (lost := self.lost(look)):
            changed.append(lost)
        if changed:
            raise NotAppliedError(
                f"the plan is no longer true: {'; '.join(changed)}. Nothing is changed: make a new plan"
            )

    def _make_room(self) -> tuple[J | None, str | None]:
        """What waited, once it waits no more or is gone; or why it took too long."""
        while True:
            look = self.look()
            found = self.found(look)
            if found is None or not self.waits(look, found):
                return found, None
            self.hold(look, found)
            if not self.disturb(look, found) and time.monotonic() > self.end:
                return found, self.too_late(look, found)
            time.sleep(self.PAUSE)

    @staticmethod
    @abstractmethod
    def read(path: Path) -> P:
        """The plan in a file. Raises InputError."""

    @abstractmethod
    def look(self) -> L:
        """The host now. Raises InputError if it does not answer."""

    @abstractmethod
    def changed(self, look: L) -> Iterator[str]:
        """What is no longer as the plan says."""

    def lost(self, look: L) -> str | None:
        """Why the policy would no longer do what the plan says; asked if nothing else has changed."""
        return None

    @abstractmethod
    def found(self, look: L) -> J | None:
        """What the plan is for; None if it is gone."""

    @abstractmethod
    def waits(self, look: L, found: J) -> bool:
        """Whether it needs more yet."""

    @abstractmethod
    def hold(self, look: L, found: J) -> None:
        """Keeps the nodes of the plan, unless they are kept."""

    @abstractmethod
    def disturb(self, look: L, found: J) -> bool:
        """Lets go what must go and is still there; returns whether something was disturbed now."""

    @abstractmethod
    def too_late(self, look: L, found: J) -> str:
        """Why it has not come about in time. Raises NotAppliedError if the nodes stay kept, so that another call may go on."""

    def free(self) -> None:
        """Keeps the nodes no longer, at the end of the plan."""

    def give_up(self) -> None:
        """Keeps the nodes no longer, before the end of the plan."""
        self.free()

    @abstractmethod
    def outcome(self, found: J | None) -> Iterator[str]:
        """What has come about. Raises NotAppliedError if it is not what the plan is for."""
