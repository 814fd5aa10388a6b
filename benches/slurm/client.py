"""A program that talks to slurmctld through libslurm (client.c), in one or two milliseconds for a job."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from live_cluster import Cluster

SOURCE = Path(__file__).parent / "client.c"
LIBRARIES = "usr/lib/x86_64-linux-gnu/slurm-wlm"
OPTIONS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-DHAVE_CONFIG_H")


class Refused(Exception):
    """Slurm refused a request; the message says which and why."""


def compile_client(slurm_source: Path, tree: Path, to: Path) -> None:
    """Compiles the program for the headers and the library of the Slurm in `tree`. Raises RuntimeError."""
    includes = ["-isystem", str(slurm_source), "-isystem", str(slurm_source / "slurm")]
    linking = [
        f"-L{tree / LIBRARIES}",
        "-lslurmfull",
        f"-Wl,-rpath,/{LIBRARIES}",
        "-Wl,--allow-shlib-undefined",
    ]
    done = subprocess.run(
        ["cc", *OPTIONS, *includes, str(SOURCE), "-o", str(to), *linking], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{SOURCE} cannot be compiled: {done.stderr.strip()}")


@dataclasses.dataclass(frozen=True)
class Held:
    """A job that holds nodes at one moment."""

    job: int
    running: bool
    """Whether it is not completing, so that all its processes may exist."""
    partition: str
    start: float
    restarts: int
    hosts: str
    """The nodes that it still holds."""
    on_nodes: dict[str, tuple[str, str]]
    """Cores and devices by node, in Slurm's notation, for all nodes that it got."""


class Client:
    """A running instance of the program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client of slurmctld ended with exit code {self._process.wait()}")
        if line.startswith("no "):
            raise Refused(line[3:].strip())
        return line.rstrip("\n")

    def _lines(self) -> list[str]:
        lines = []
        while (line := self._line()) != "end":
            lines.append(line)
        return lines

    def submit(self, **wishes: object) -> int:
        """Submits a batch job. Returns its number; client.c describes the wishes. Raises Refused."""
        self._ask("submit " + " ".join(f"{key}={value}" for key, value in wishes.items()))
        return int(self._line().split()[1])

    def allocate(self, **wishes: object) -> int:
        """Makes a job that launches nothing and runs until `complete`. Returns its number. Raises Refused."""
        self._ask("allocate " + " ".join(f"{key}={value}" for key, value in wishes.items()))
        return int(self._line().split()[1])

    def tell(self, *words: object) -> None:
        """Sends a command: `cancel N`, `requeue N`, `complete N`, `reconfigure` or `reset`. Raises Refused."""
        self._ask(" ".join(map(str, words)))
        self._line()

    def stats(self) -> dict[str, int]:
        """The values of sdiag, as numbers."""
        self._ask("stats")
        words = (word.split("=") for word in self._line().split()[1:])
        return {name: int(number) for name, number in words}

    def running(self) -> tuple[list[int], int, int]:
        """The running jobs, and the numbers of completing and of pending ones."""
        self._ask("states")
        _, completing, pending = map(int, self._line().split()[1:])
        return [int(line) for line in self._lines()], completing, pending

    def held(self) -> list[Held]:
        """The jobs that hold nodes, as they were at one moment."""
        self._ask("held")
        return [_held(line) for line in self._lines()]


def _held(line: str) -> Held:
    job, state, partition, start, restarts, hosts, *rest = line.split()
    parts = (word.split(":", 2) for word in rest)
    on_nodes = {node: (cores, devices) for node, cores, devices in parts}
    return Held(int(job), state == "running", partition, float(start), int(restarts), hosts, on_nodes)


@contextlib.contextmanager
def client(up: Cluster, program: Path) -> Iterator[Client]:
    """Runs the program inside the entered Slurm, until the context ends."""
    command = ["chroot", os.environ["SLURM_TREE"], str(program)]
    process = subprocess.Popen(
        command, env=up.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Client(process)
    finally:
        process.kill()
        process.wait()
