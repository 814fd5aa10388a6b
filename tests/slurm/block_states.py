"""States of machines in blocks, and what a running slurmctld with topology/block chooses in them.

A layout says which nodes are in which block, and the allowed block sizes. In a state of it some nodes are free, and a job
asks for nodes. A slurmctld gives the job nodes or refuses it. Sets of nodes are numbers: bit n is set for node n.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from live_cluster import Cluster
from topolane import Machine, State
from waiting import DEADLINE, until

GRANTED = re.compile(r"Granted job allocation (\d+)\n.*Nodes (\S+) are ready", re.DOTALL)
REFUSED = re.compile(
    r"Requested nodes are busy|Requested topology configuration is not available"
    r"|Requested node configuration is not available|Required node not available"
)
MULTIPLES = (2, 4, 8, 16)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Nodes in blocks."""

    nodes: int
    """Nodes of the machine; some may be in no block."""
    sizes: tuple[int, ...]
    """BlockSizes; empty if the file names none."""
    blocks: tuple[int, ...]
    """The nodes of each block."""

    @classmethod
    def drawn(cls, nodes: int, rng: random.Random) -> Self:
        """One at random: blocks side by side or mixed, of one size or with spare nodes, any permitted sizes."""
        order = list(range(nodes))
        if rng.random() < 0.4:
            rng.shuffle(order)
        if rng.random() < 0.3:
            del order[rng.randrange(nodes * 3 // 4, nodes) :]
        base = rng.choice((1, 2, 3, 4, 4, 5, 6, 8, 9, 12))
        most_spare = rng.choice((0, 0, 0, 1, 2, 5))
        blocks: list[int] = []
        while len(order) >= base:
            # The first block is the smallest: without BlockSizes its size is that of the base block.
            size = base + (rng.randint(0, most_spare) if blocks else 0)
            blocks.append(_set(order[:size]))
            del order[:size]
        named = rng.random() < 0.8
        some = sorted(rng.sample(MULTIPLES, rng.randint(0, 3)))
        sizes = (base, *(base * multiple for multiple in some)) if named else ()
        return cls(nodes, sizes, tuple(blocks))

    @property
    def base(self) -> int:
        """Nodes of the base block."""
        return self.sizes[0] if self.sizes else self.blocks[0].bit_count()

    def topology(self, prefix: str) -> str:
        """Slurm's topology.conf. Nodes are numbered from 1 there."""
        lines = [
            f"BlockName=b{number} Nodes={_names(nodes, prefix)}" for number, nodes in enumerate(self.blocks)
        ]
        if self.sizes:
            lines.append(f"BlockSizes={','.join(map(str, self.sizes))}")
        return "\n".join([*lines, ""])

    def machine(self) -> Machine:
        """Topolane's machine: the blocks are its domains."""
        lines = [f"block-sizes = {list(self.sizes)}" if self.sizes else ""]
        lines += ['name = "blocks"', "[[site]]", 'name = "all"', f"children = [{self.nodes}]"]
        lines += ["parents = [1]", "cables = [1]", f'nodes = "n[1-{self.nodes}]"']
        for number, nodes in enumerate(self.blocks):
            lines += ["[[domain]]", f'name = "b{number}"', f'nodes = "{_names(nodes, "n")}"']
        return Machine.parse("\n".join(lines), "blocks.toml", "toml")

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return {"nodes": self.nodes, "sizes": self.sizes, "blocks": [f"{nodes:x}" for nodes in self.blocks]}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Self:
        """The way back."""
        blocks = tuple(int(nodes, 16) for nodes in facts["blocks"])
        return cls(facts["nodes"], tuple(facts["sizes"]), blocks)


@dataclasses.dataclass(frozen=True)
class Ask:
    """A job that asks for whole nodes in a state, and the answer."""

    free: int
    wanted: int
    segment: int | None
    chosen: int
    """What slurmctld gave; 0 if it refused."""

    def ours(self, machine: Machine) -> int:
        """What policy slurm-block gives."""
        answer = State(machine).place(
            "slurm-block", self.wanted, eligible=list(_members(self.free)), segment=self.segment
        )
        return _set(getattr(answer, "nodes", ()))

    def kind(self) -> str:
        """The class of it, for a table."""
        return ("segments" if self.segment else "no segments") + (", refused" if not self.chosen else "")

    def facts(self) -> list[Any]:
        """As JSON."""
        return [f"{self.free:x}", self.wanted, self.segment, f"{self.chosen:x}"]

    @classmethod
    def of(cls, facts: Sequence[Any]) -> Self:
        """The way back."""
        free, wanted, segment, chosen = facts
        return cls(int(free, 16), wanted, segment, int(chosen, 16))


class Slurm:
    """A cluster of real slurmds whose slurmctld has topology/block."""

    def __init__(self, up: Cluster) -> None:
        self.up = up
        self.prefix = up.facts["PREFIX"]
        self.nodes = int(up.facts["NODES"])
        self._drained = 0
        self._jobs: dict[int, int] = {}
        """Nodes of the jobs that hold some."""

    def begin(self, layout: Layout) -> None:
        """Restarts slurmctld with these blocks and no job, and waits for its nodes."""
        self.up.script("stop", "slurmctld")
        for path in (self.up.directory / "state").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (self.up.directory / "topology.conf").write_text(layout.topology(self.prefix))
        conf = self.up.directory / "slurm.conf"
        conf.write_text(re.sub(r"(?m)^TopologyPlugin=.*$", "TopologyPlugin=topology/block", conf.read_text()))
        self.up.script("start", "slurmctld")
        self._drained, self._jobs = 0, {}
        self._wait(self.nodes)

    def asks(self, layout: Layout, count: int, rng: random.Random) -> Iterator[Ask]:
        """`count` decisions of a layout, each in another state: nodes are drained, and earlier jobs hold some."""
        everything = (1 << layout.nodes) - 1
        for number in range(count):
            if number % 8 == 0:
                self._drain(_some(everything, rng.choice((0.0, 0.1, 0.3, 0.5)), rng))
            for job in [job for job in self._jobs if rng.random() < 0.25]:
                self._end(job)
            free = everything & ~self._drained & ~_union(self._jobs.values())
            self._wait(free.bit_count())
            wanted, segment = _request(layout, free.bit_count(), rng)
            yield Ask(free, wanted, segment, self._start(wanted, segment))

    def _start(self, wanted: int, segment: int | None) -> int:
        """The nodes of a job, which then holds them; 0 if it cannot start at once."""
        words = ["salloc", "--immediate", "--no-shell", f"--nodes={wanted}"]
        words += [f"--segment={segment}"] if segment else []
        done = subprocess.run(
            [*self.up.inside.prefix, *words],
            env=self.up.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        if found := GRANTED.search(done.stderr):
            hosts = self.up.nodes(found[2])
            self._jobs[int(found[1])] = _set(int(host.removeprefix(self.prefix)) - 1 for host in hosts)
            return self._jobs[int(found[1])]
        if not REFUSED.search(done.stderr):
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return 0

    def _end(self, job: int) -> None:
        self.up.run("scancel", job)
        del self._jobs[job]

    def _drain(self, nodes: int) -> None:
        """Takes these nodes out of service, and all others into it."""
        for state, changed in (("RESUME", self._drained & ~nodes), ("DRAIN", nodes & ~self._drained)):
            if changed:
                name = _names(changed, self.prefix)
                self.up.run("scontrol", "update", f"NodeName={name}", f"State={state}", "Reason=bench")
        self._drained = nodes

    def _wait(self, idle: int) -> None:
        """Waits until `idle` nodes are idle: a job that was ended may still hold its nodes."""

        def are_idle() -> bool:
            said = dict(line.split()[::-1] for line in self.up.run("sinfo", "-h", "-o", "%D %t").splitlines())
            return int(said.get("idle", 0)) == idle

        until(are_idle, f"{idle} idle nodes")


def _request(layout: Layout, free: int, rng: random.Random) -> tuple[int, int | None]:
    """Nodes and, at times, a segment. Few are more than are free, or are no multiple of their segment."""
    most = max(1, min(layout.nodes, free + 2))
    if rng.random() < 0.5:
        return min(most, int(2 ** rng.uniform(0, most.bit_length()))), None
    segment = rng.randint(1, layout.base + (rng.random() < 0.05))
    wanted = segment * rng.randint(1, max(1, min(8, most // segment)))
    return max(1, min(layout.nodes, wanted - (rng.random() < 0.05))), segment


def write(path: Path, recorded: Iterable[tuple[Layout, Sequence[Ask]]]) -> None:
    """A file of layouts with the decisions in them, one layout a line."""
    lines = (
        json.dumps(layout.facts() | {"asks": [ask.facts() for ask in asks]}) for layout, asks in recorded
    )
    path.write_text("".join(f"{line}\n" for line in lines))


def read(path: Path) -> Iterator[tuple[Layout, list[Ask]]]:
    """The way back."""
    for line in path.read_text().splitlines():
        facts = json.loads(line)
        yield Layout.of(facts), [Ask.of(ask) for ask in facts["asks"]]


def _set(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in nodes)


def _union(sets: Iterable[int]) -> int:
    whole = 0
    for each in sets:
        whole |= each
    return whole


def _members(nodes: int) -> Iterator[int]:
    return (node for node in range(nodes.bit_length()) if nodes >> node & 1)


def _some(nodes: int, share: float, rng: random.Random) -> int:
    return _set(node for node in _members(nodes) if rng.random() < share)


def _names(nodes: int, prefix: str) -> str:
    """A host list. Nodes are numbered from 1 in it."""
    return f"{prefix}[{','.join(str(node + 1) for node in _members(nodes))}]"
