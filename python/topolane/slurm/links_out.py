"""Links that no new job may own: failed links, and links reserved for storage and services.

`topolane slurm outages` writes them to a file in Slurm's StateSaveLocation. The topology plugin reads it
whenever it changes. The file is text: `topolane-links-out 1`, the checksum of the machine (FNV-1a, 16 hexadecimal
digits), the counts of reserved and failed links; the reserved links in ascending order; the failed ones; `sum` and
the checksum of all before.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from topolane import files, texts
from topolane._engine import DedicatedRoutes, InputError, Machine
from topolane.cluster.links import links_in
from topolane.routes import MachineLinks
from topolane.slurm import plugin_state
from topolane.slurm.plugin_machine import ReadMachine

FILE = "topolane_links_out"
MOST_BYTES = 64 << 20
MOST_SLOTS = 64
"""The most uplink slots that a switch may have."""


@dataclasses.dataclass(frozen=True)
class LinksOut:
    """The ids of links that no new job may own."""

    failed: frozenset[int] = frozenset()
    reserved: frozenset[int] = frozenset()
    """Links for storage and services. A link may be both reserved and failed."""

    @property
    def all(self) -> frozenset[int]:
        """All failed or reserved links."""
        return self.failed | self.reserved


def text_of(out: LinksOut, machine_sum: int) -> str:
    """The content of the file."""
    rows = (f"{' '.join(map(str, sorted(links)))}\n" for links in (out.reserved, out.failed))
    body = f"topolane-links-out 1 {machine_sum:016x} {len(out.reserved)} {len(out.failed)}\n{''.join(rows)}"
    return f"{body}sum {plugin_state.sum_of(body.encode()):016x}\n"


def parse(text: str, source: str) -> tuple[LinksOut, int]:
    """The links in the text of such a file, and the checksum of the machine file that numbers them. Raises
    InputError.
    """
    head, _, rest = plugin_state.whole(text, source).partition("\n")
    found = re.fullmatch(r"topolane-links-out 1 ([0-9a-f]{16}) ([0-9]{1,8}) ([0-9]{1,8})", head)
    if not found or not all(re.fullmatch("[0-9]{1,10}", word) for word in rest.split()):
        raise InputError(
            f"{source} line 1: {texts.shown(head)} is not `topolane-links-out 1`, a sum and two numbers"
        )
    links, reserved = [int(word) for word in rest.split()], int(found[2])
    if len(links) != reserved + int(found[3]):
        raise InputError(
            f"{source}: it has {len(links)} links, and its first line says {found[2]} and {found[3]}"
        )
    return LinksOut(frozenset(links[reserved:]), frozenset(links[:reserved])), int(found[1], 16)


def read(directory: Path, machine: Machine, machine_sum: int) -> LinksOut:
    """The links in the file of a directory; none without a file. Raises InputError if the file does not fit
    this machine.
    """
    path = directory / FILE
    try:
        text = texts.decoded(texts.read_bytes(path, MOST_BYTES), str(path))
    except texts.NoFileError:
        return LinksOut()
    out, of_machine = parse(text, str(path))
    if of_machine != machine_sum:
        raise InputError(f"{path} is of another machine file: its numbers of links say nothing here")
    if any(link >= machine.links for link in out.all):
        raise InputError(f"{path}: it names a link that the machine does not have")
    return out


def write(directory: Path, out: LinksOut, machine_sum: int) -> None:
    """Replaces the file. Raises InputError."""
    # World-readable, because slurmctld may run as another user.
    files.write(directory / FILE, text_of(out, machine_sum), "--state", 0o644)


def names(machine: Machine, links: Iterable[int]) -> list[str]:
    """The names of some links, as `topolane links` prints them."""
    known = MachineLinks(machine)
    return [known.link(link, "up").name for link in sorted(links)]


def slots_of(machine: Machine, reserved: Collection[int]) -> int | None:
    """The number of highest uplink slots of each switch that are exactly these links; None if there is no
    such number.
    """
    for slots in range(MOST_SLOTS + 1):
        own = DedicatedRoutes.set_aside(machine, slots)
        if len(own) >= len(reserved):
            return slots if set(own) == set(reserved) else None
    return None


def failed(fabric: Path, read: ReadMachine, source: str) -> frozenset[int]:
    """The links of the machine that have failed according to a file.

    fabric: a list with a link, a switch, a node or the id of a cable on each line, or the present output of
    `ibnetdiscover`. source: the machine's first file; it must be output of ibnetdiscover if `fabric` is.
    Raises InputError, naming file, line and value, for invalid input.
    """
    text = texts.read_text(fabric, texts.LARGE)
    if not text.strip():
        raise InputError(
            f"--fabric {fabric}: the file is empty (a list of no links has a line that begins with #)"
        )
    if Machine.format_of(text, str(fabric)) == "ibnetdiscover":
        return _absent(text, fabric, read, source)
    found: set[int] = set()
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if name and not name.startswith("#"):
            try:
                found.update(read.machine.cables_named([name])[0])
            except InputError as error:
                raise InputError(f"--fabric {fabric}:{number}: {error}") from error
    return frozenset(found)


def _absent(now: str, fabric: Path, read: ReadMachine, source: str) -> frozenset[int]:
    """The cables of the machine that the present output of ibnetdiscover lacks."""
    net = texts.decoded(read.contents[0], source)
    if Machine.format_of(net, source) != "ibnetdiscover":
        raise InputError(
            f"--fabric {fabric}: this output of ibnetdiscover must be compared with one that the machine is read from, "
            f"not with {source!r}: give a list of links"
        )
    gone = read.first.absent(net, now, source, str(fabric))
    if read.first is read.machine:
        return frozenset(gone)
    number = links_in(read.machine, read.first)
    if lost := [link for link in gone if number[link] is None]:
        raise InputError(
            f"--fabric {fabric}: {names(read.first, lost[:1])[0]} of {source} has another name in the machine of both files: "
            "give a list of links"
        )
    return frozenset(link for link in map(number.__getitem__, gone) if link is not None)
