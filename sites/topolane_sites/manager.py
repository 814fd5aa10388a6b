"""The manager of several sites: watches programs, plans where they run, moves their guests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from topolane.mpi.acknowledger import Taken
from topolane.mpi.counts import WatchedProgram
from topolane.mpi.limits import Limits
from topolane.mpi.listener import ConnectionSlots
from topolane.mpi.receiver import Receiver

from topolane_sites.accuracy import Accuracy
from topolane_sites.arrivals import ClusterArrival, make_room, place
from topolane_sites.files import Config
from topolane_sites.holds import Holds
from topolane_sites.inventory import Inventory
from topolane_sites.journal import EventJournal
from topolane_sites.moves import Moves
from topolane_sites.planner import make
from topolane_sites.plans import SitesPlan
from topolane_sites.problem import Problem, current_problem
from topolane_sites.program_rows import program_of, program_row, rank_rows
from topolane_sites.retention import forget
from topolane_sites.state import ManagerDatabase, StateError

KEEP_PLANS = 50
KEEP_EVERY = 2.0
"""Seconds between commits of what ranks reported; they are acknowledged then."""


class Manager:
    """All parts of a manager, and its loop."""

    def __init__(
        self,
        config: Config,
        state: ManagerDatabase,
        *,
        dry_run: bool = False,
        say: Callable[[str], None] = lambda _: None,
        slots: ConnectionSlots | None = None,
    ) -> None:
        """say: called with a line for each event. slots: for the connections of programs."""
        self.config, self.state = config, state
        self.act = config.act and not dry_run
        self.dry_run = dry_run
        self.began = time.time()
        self.journal = EventJournal(state, say)
        self.inventory = Inventory(config, state)
        self.moves = Moves(state, self.inventory, config.at_once, self.journal.tell)
        self.inventory.moving = lambda: self.moves.moving
        self.holds = Holds(state)
        self.inventory.held = self.holds.held
        self.receiver = Receiver(
            keep=self._keep,
            load=self._load,
            happened=self.journal.happened,
            limits=Limits(),
            interval=KEEP_EVERY,
            slots=slots,
        )
        settings = state.get("setting")
        self.paused: bool = settings.get("paused", False)
        self.remaining: dict[str, tuple[float, float]] = {}
        """By program: the declared remaining seconds, and the time of the declaration (seconds since 1970)."""
        for name, (seconds, when) in state.get("remaining").items():
            self.remaining[name] = (seconds, when)
        self.accuracy = Accuracy(state)
        self.homes: dict[str, str] = state.get("home")
        """By program: the site at which it was first seen."""
        self.corrections: dict[str, float] = state.get("correction")
        """By program: what it lost to the WAN over the prediction when it was last seen on several sites."""
        self.plans = {name: SitesPlan.of(fields) for name, fields in state.get("plan").items()}
        self.latest: SitesPlan | None = max(self.plans.values(), key=lambda plan: plan.made, default=None)
        """The loop's last plan, even if it moves nothing."""
        self._proposed: set[tuple[str, str]] = set()
        self._settling: asyncio.Task[None] | None = None
        self._silent: dict[str, float] = {}
        self._writing = asyncio.Lock()
        """Held while rows of programs are made and written, so that no older row is written after a newer one."""
        for row in state.programs(running=True):
            program = self._load(row["id"])
            if program is not None:
                self.receiver.adopt(program)

    async def run(self, stopping: asyncio.Event) -> None:
        """Listens to programs and loops until it is stopped. Raises InputError at the start."""
        for address in self.config.programs:
            token = self.config.report_token if address.path is None else None
            bound = await self.receiver.listen(address, token=token)
            self.journal.tell("listening", str(bound), f"to programs, policy {self.config.policy}")
        while not stopping.is_set():
            try:
                await self.look()
            except StateError as error:
                self.journal.tell("state-failed", "", f"{error}; looked at again")
            self.journal.write()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self.config.interval)
        await self.moves.finish()
        await self.receiver.close()
        self.journal.write()

    async def look(self) -> None:
        """One round of the loop."""
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle())
        self._say_silent(self.inventory.silent())
        await self._end_silent_programs()
        await asyncio.to_thread(self.inventory.write)
        for program in list(self.receiver.programs.values()):
            await self._tell_sites(program)
        if not self.paused:
            self.latest = await self.plan()
            self._keep_corrections(self.latest)
            self._answer(self.latest)
            self.moves.start()
        hosts = {guest.name: guest.host for guest in self.inventory.guests.values()}
        self.accuracy.look(self.receiver.programs, hosts, self.moves.moving)
        forget(self)

    def current_problem(self) -> Problem:
        """The present hosts, guests and programs, as input for a policy."""
        now = time.time()
        declared = {
            name: max(0.0, seconds - (now - when)) for name, (seconds, when) in self.remaining.items()
        }
        return current_problem(
            self.inventory,
            self.receiver.programs,
            now,
            remaining=declared,
            moved=self.moves.last,
            moving=self.moves.moving,
            correction=(self.corrections | self.accuracy.corrections()).get,
            home=self._home,
        )

    def _home(self, program: str, site: str) -> str:
        """The site at which a program was first seen: this one, if it was not seen before."""
        if program not in self.homes:
            self.state.put("home", program, site)
            self.homes[program] = site
        return self.homes[program]

    def _keep_corrections(self, plan: SitesPlan) -> None:
        """Keeps what the time in MPI says of the predictions, for when the program is on one site."""
        for judged in plan.judged:
            id, found = judged.programs[0], judged.correction
            known = self.corrections.get(id, 1.0)
            if len(judged.now) > 1 and abs(found - known) > 0.1 * known:
                self.state.put("correction", id, found)
                self.corrections[id] = found

    async def _settle(self) -> None:
        """Settles moves in parallel with the loop, since a driver may wait for minutes."""
        try:
            await self.moves.settle()
        except StateError as error:
            self.journal.tell("state-failed", "", f"{error}; looked at again")

    async def plan(self) -> SitesPlan:
        """The policy's plan for the present state."""
        return await asyncio.to_thread(make, self.current_problem(), self.config.policy)

    async def place(self, arrival: ClusterArrival) -> list[str]:
        """A host for every guest of a cluster that is about to be built; empty if there is no room."""
        return await asyncio.to_thread(place, self.current_problem(), arrival, self.config.policy)

    async def make_room(self, arrival: ClusterArrival) -> SitesPlan:
        """A stored plan, after whose moves such a cluster fits on one site."""
        return self._remember(await asyncio.to_thread(make_room, self.current_problem(), arrival))

    async def propose(self) -> SitesPlan:
        """The policy's plan for the present state, stored so that it can be applied by its id."""
        return self._remember(await self.plan())

    def apply(self, plan: SitesPlan) -> int:
        """Journals the moves of a plan that are still valid. Returns how many."""
        added = [self.moves.add(move) for move in plan.moves]
        if all(move is not None for move in added):
            self.accuracy.began(plan, self.receiver.programs)
        return sum(move is not None for move in added)

    def pause(self, paused: bool) -> None:
        """Pauses or resumes planning and starting moves. Running moves continue."""
        self.paused = paused
        self.state.put("setting", "paused", paused)
        self.journal.tell("paused" if paused else "resumed", "", "by hand")

    def declare(self, program: str, seconds: float) -> None:
        """Declares how long a program is expected to run on."""
        self.remaining[program] = (seconds, time.time())
        self.state.put("remaining", program, self.remaining[program])

    def program(self, id: str) -> WatchedProgram | None:
        """A program in memory or in the database."""
        return self.receiver.programs.get(id) or self._load(id)

    def _answer(self, plan: SitesPlan) -> None:
        """Carries out the loop's plan, or logs it once."""
        moves = {(move.guest, move.target) for move in plan.moves}
        if moves and self.act:
            self.apply(self._remember(plan))
        elif moves and moves != self._proposed:
            self._remember(plan)
            self.journal.tell(
                "proposed", plan.id, "; ".join(f"{guest} to {target}" for guest, target in sorted(moves))
            )
        self._proposed = moves

    def _remember(self, plan: SitesPlan) -> SitesPlan:
        self.plans[plan.id] = plan
        self.state.put("plan", plan.id, plan.json())
        for old in sorted(self.plans, key=lambda one: self.plans[one].made)[:-KEEP_PLANS]:
            del self.plans[old]
            self.state.drop("plan", old)
        return plan

    async def _keep(self, taken: Taken) -> None:
        async with self._writing:
            programs = [
                (one, taken[id]) for id in taken if (one := self.receiver.programs.get(id)) is not None
            ]
            rows = [program_row(one) for one, _ in programs]
            ranks = [row for one, which in programs for row in rank_rows(one, which)]
            await asyncio.to_thread(self.state.keep, rows, ranks)

    def _load(self, id: str) -> WatchedProgram | None:
        found = self.state.program(id)
        return program_of(*found) if found else None

    async def _tell_sites(self, program: WatchedProgram) -> None:
        """Sends the ranks a new map if a site has changed. The map is stored first, so that no epoch is used
        twice.
        """
        if program.ended is not None or len(program.hosts) < program.ranks:
            return
        places = [self.inventory.place_of(program.hosts[rank]) for rank in range(program.ranks)]
        if None in places:
            return
        sites = np.array([self.inventory.sites.index(place or "") for place in places], np.uint16)
        if program.sites is not None and np.array_equal(sites, program.sites):
            return
        async with self._writing:
            epoch = program.epoch + 1
            changed = replace(program, epoch=epoch, sites=sites)
            await asyncio.to_thread(self.state.keep, [program_row(changed)], [])
            self.receiver.send_sites(program.id, epoch, sites)
        spread = ", ".join(
            f"{self.inventory.sites[site]}: {(sites == site).sum()}" for site in np.unique(sites)
        )
        self.journal.tell("site-map", program.id, f"epoch {epoch}: ranks on {spread}")

    def _say_silent(self, hosts: list[str]) -> None:
        for host in hosts:
            site = self.inventory.site_of(host)
            self.journal.tell("host-silent", host, f"of {site}: no report; nothing is moved there")
        for site in sorted({self.inventory.site_of(host) or "" for host in hosts}):
            of_site = [one.name for one in self.inventory.hosts.values() if one.site == site]
            if self.inventory.away.issuperset(of_site):
                self.journal.tell("site-silent", site, "none of its hosts reports")

    async def _end_silent_programs(self) -> None:
        now = time.monotonic()
        for program in list(self.receiver.programs.values()):
            if program.ended is not None or self.receiver.connected(program.id):
                self._silent.pop(program.id, None)
            elif now - self._silent.setdefault(program.id, now) > self.config.silence:
                async with self._writing:
                    ended = time.time()
                    row = program_row(replace(program, ended=ended))
                    await asyncio.to_thread(self.state.keep, [row], [])
                if self.receiver.connected(program.id):
                    continue  # it is back: what it says next is written with it
                program.ended = ended
                self.journal.tell(
                    "program-gone", program.id, f"{program.name}: no rank for {self.config.silence:g} s"
                )
