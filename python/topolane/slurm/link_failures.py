"""Failed links of the fabric, read from a file whenever it changes, and the jobs that they affect."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from topolane import files, parsing, texts
from topolane._engine import InputError, Machine
from topolane.live.journal import Recorder
from topolane.routes import Links
from topolane.slurm.config import Config
from topolane.slurm.fabric import net_of


class LinkFailures:
    """The links out of service that the file `fabric` lists. The affected jobs are written to `FILE.state`
    next to it.

    The file is the output of `ibnetdiscover` for the present subnet, if the topology is such a file too.
    Otherwise it is a list: each line names a link, a switch, a node or the id of a cable, as `topolane links`
    does. Lines that begin with # are ignored. Raises InputError, naming file, line and value, for what cannot
    be used.
    """

    def __init__(self, config: Config, machine: Machine) -> None:
        assert config.fabric is not None
        self._file, self._machine = Path(config.fabric), machine
        self._net, self._source = net_of(config), str(config.topology)
        self._names = Links(machine)
        self._seen: tuple[int, ...] | None = None
        self.affected: dict[int, frozenset[int]] = {}
        """The jobs that ran on links when these failed, with those of the links that are still out of
        service.
        """
        self._looked: frozenset[int] = frozenset()
        """The links out of service whose affected jobs are already known."""
        self._written: dict[str, Any] | None = None
        self.out = self._read()
        """The cables out of service."""
        self._remember()

    def names(self, cables: Collection[int]) -> list[str]:
        """The names of those cables."""
        return [self._names.link(cable, "up").name for cable in sorted(cables)]

    @property
    def has_changed(self) -> bool:
        """Whether the file has changed since it was last read."""
        return _state_of(self._file) != self._seen

    def follow(
        self, scheduler: Recorder, running: Collection[int], *, keep: bool = True
    ) -> dict[int, frozenset[int]]:
        """Tells the scheduler which links have failed or are back. Returns the newly failed links of each
        affected job.

        running: the jobs that hold nodes. keep: whether to write the affected jobs to the file. Raises
        InputError, with nothing changed, if the file cannot be used.
        """
        before = self.out
        if self.has_changed:
            self.out = self._read()
        for cables, is_back in ((before - self.out, True), (self.out - before, False)):
            if cables:
                scheduler.set_links_in_service(sorted(cables), is_back)
        hit: dict[int, set[int]] = {}
        for cable in self.out - self._looked:
            for job in scheduler.scheduler.users_of([cable]):
                hit.setdefault(job, set()).add(cable)
        self._looked = self.out
        affected = {job: frozenset(cables) for job, cables in hit.items()}
        for job, cables in affected.items():
            self.affected[job] = self.affected.get(job, frozenset()) | cables
        left = {job: cables & self.out for job, cables in self.affected.items() if job in running}
        self.affected = {job: cables for job, cables in left.items() if cables}
        if keep:
            self._keep()
        return affected

    def _read(self) -> frozenset[int]:
        self._seen = _state_of(self._file)
        text = texts.read_text(self._file, texts.LARGE)
        if not text.strip():
            raise InputError(
                f"{self._file}: the file is empty (a list of no links has a line that begins with #)"
            )
        if Machine.format_of(text, str(self._file)) == "ibnetdiscover":
            if self._net is None:
                raise InputError(
                    f"{self._file}: this output of ibnetdiscover must be compared with one that the topology is read "
                    f"from, not with {self._source!r}: give a list of links"
                )
            return frozenset(self._machine.absent(self._net, text, self._source, str(self._file)))
        found: set[int] = set()
        for number, line in enumerate(text.splitlines(), 1):
            name = line.strip()
            if name and not name.startswith("#"):
                try:
                    found.update(self._machine.cables_named([name])[0])
                except InputError as error:
                    raise InputError(f"{self._file}:{number}: {error}") from error
        return frozenset(found)

    @property
    def _state(self) -> Path:
        return Path(f"{self._file}.state")

    def _remember(self) -> None:
        """Reads the affected jobs that an earlier daemon wrote: they may still run."""
        if not self._state.exists():
            return
        given = parsing.read_json(self._state)
        try:
            looked = frozenset(map(int, given["out"]))
            affected = {int(row["id"]): frozenset(map(int, row["cables"])) for row in given["affected"]}
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise InputError(f"{self._state}: not a state of an earlier daemon: {error}") from error
        self._looked = looked & self.out
        self.affected = {job: cables & self.out for job, cables in affected.items() if cables & self.out}

    def _keep(self) -> None:
        rows = [
            {"id": job, "cables": sorted(cables), "links": self.names(cables)}
            for job, cables in sorted(self.affected.items())
        ]
        state = {"out": sorted(self.out), "links": self.names(self.out), "affected": rows}
        if state != self._written:
            files.write(str(self._state), json.dumps(state) + "\n", "fabric")
            self._written = state


def _state_of(file: Path) -> tuple[int, ...] | None:
    """A value that changes with the file; None if there is no file."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
