"""MPI on virtual clusters over several sites (2007): what is run, what was supposed, what counts as agreeing.

The constants and ASSUMED were written down before the first run.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GIGABIT = 1.25e8
"""Of every cable and of the WAN, bytes per second each way."""
HOST_LATENCY = 24e-6
"""Seconds of a host's cable, as in SimGrid's platform of the Gigabit cluster griffon."""
WINDOW = 65536.0
"""Bytes that one TCP connection has under way: the most there is without window scaling (RFC 1323)."""
SPEED = 5e8
"""Operations a second of a process."""
EAGER = 65536
"""Bytes of the largest message that is sent before it is asked for."""
LATENCIES = (0.0, 1e-3, 2e-3, 5e-3, 7.5e-3, 10e-3)
"""Of the WAN, one way, seconds."""
MIDDLE = 5e-3
"""The latency of the figures that are given for one."""

SEGMENT = 1398
"""Bytes of data in a full TCP packet through the tunnel, whose MTU is 1450."""
PACKET = 12e-6
"""CPU seconds of one of the tunnel's processes for a packet of any size: 9.6 to 14.4 us (benches/run.py sites/tunnel)."""
TUNNEL_LATENCY = 0.2e-3
"""Seconds that the tunnel adds one way; measured there too."""
EXTRA = 1.5 * SEGMENT
"""Bytes whose passing costs as much as what a message needs besides full packets: its last packet, which is half full
in the mean, and an acknowledgement. SMPI itself adds 5 % for acknowledgements; measured were 8 % of the packets."""

KERNELS = ("cg", "bt", "mg", "lu", "ep")
ITERATIONS = {"cg": (2, 75), "bt": (4, 200), "mg": (3, 20), "lu": (4, 250), "ep": (1, 1)}
"""Iterations that are run, and those of the benchmark's classes B and C."""

ASSUMED = [
    "two sites of Gigabit Ethernet, each one switch that is never full; 24 us for the cable of a host, as in SimGrid's "
    + "platform of the Gigabit cluster griffon",
    "one WAN link of 1 Gb/s each way, shared by all connections; the paper inserted latency into such a network. It "
    + "does not say whether its latency is one way: here it is",
    "a TCP window of 64 KiB, the most without window scaling: a connection carries at most window / round trip. "
    + "Everything is run with and without it",
    "a tunnel: one OpenVPN process on each side carries all that crosses, both ways, 12 us of its CPU time a packet and "
    + "0.2 ms more one way, as measured (benches/run.py sites/tunnel) on a core that does LU's operations 18 times as fast "
    + "as a process here; guests of one site reach each other without it. The paper is compared with the runs that have it",
    "5e8 operations a second of a process, one process a node; computation takes the same time always",
    "messages of up to 64 KiB are eager; larger ones first ask and wait for an answer: three ways instead of one",
    "the first half of the ranks on one site, the second on the other",
    "BT runs on squares: 36 ranks where the others have 32",
    "with a manager: 52 hosts a site in two racks, a guest of 256 MiB a host; first fit takes rack by rack, the racks of "
    + "the sites in turn. The guests of a move are copied all at once, each over a connection of its own and outside the "
    + "tunnel, and their programs run on where they were until all are there",
    "programs that come and go are of 16 and 32 ranks (BT 36), five kernels, each runs its benchmark 1 to 30 times, at "
    + "random times, to 70 % of the hosts; first come, first served. The manager knows a program after 10 s, and until "
    + "then takes it for the median of those it has seen",
    "a few iterations of each, which are all alike; whole runs are scaled up",
]


@dataclasses.dataclass(frozen=True)
class Tunnel:
    """What OpenVPN between the sites costs."""

    packet: float = PACKET
    """CPU seconds of a process for a packet; it has one at a time, whichever way it goes."""
    latency: float = TUNNEL_LATENCY
    """Seconds that it adds one way."""

    @property
    def rate(self) -> float:
        """Bytes per second in full packets, both ways together."""
        return SEGMENT / self.packet


@dataclasses.dataclass(frozen=True)
class Wan:
    """The link between the sites."""

    latency: float = MIDDLE
    """Seconds, one way."""
    window: float | None = WINDOW
    """Bytes, or no limit."""
    bandwidth: float = GIGABIT
    """Bytes per second, each way."""
    tunnel: Tunnel | None = None
    """What is sent across passes it, but for programs `outside`."""

    @property
    def seen_latency(self) -> float:
        """Seconds that guests measure, one way."""
        return self.latency + (self.tunnel.latency if self.tunnel else 0.0)

    @property
    def seen_bandwidth(self) -> float:
        """Bytes per second that guests measure, each way, while nothing else crosses."""
        return min(self.bandwidth, self.tunnel.rate) if self.tunnel else self.bandwidth


@dataclasses.dataclass(frozen=True)
class SitesProgram:
    """A program."""

    kernel: str
    ranks: int
    size: str = "C"
    """The benchmark's class."""

    @property
    def name(self) -> str:
        """As the benchmark calls it."""
        return f"{self.kernel.upper()} {self.ranks}"

    @property
    def whole(self) -> float:
        """Iterations of the benchmark over those that are run."""
        some, all_of_them = ITERATIONS[self.kernel]
        return all_of_them / some


@dataclasses.dataclass(frozen=True)
class SmpiRun:
    """Programs side by side under SMPI; small enough to send to a process."""

    programs: Path
    jobs: tuple[SitesProgram, ...]
    sites: tuple[int, ...]
    """Of every rank of every program, one program after another."""
    wan: Wan | None = None
    """None where all are on one site."""
    speed: float = SPEED
    iterations: tuple[int, ...] = ()
    """Of every program, or those of ITERATIONS."""
    outside: tuple[int, ...] = ()
    """Places in `jobs` of programs whose messages do not pass the tunnel."""
    counting: bool = False
    """Whether what is sent is printed."""


def tunnelled(latency: float = MIDDLE, packet: float = PACKET) -> Wan:
    """The link with TCP's window and a tunnel. packet: CPU seconds of one of its packets."""
    return Wan(latency, tunnel=Tunnel(packet))


def halves(ranks: int) -> tuple[int, ...]:
    """The first half on one site, the second on the other."""
    return (0,) * (ranks // 2) + (1,) * (ranks - ranks // 2)


def alone(programs: Path, job: SitesProgram, speed: float = SPEED) -> SmpiRun:
    """A program on one site."""
    return SmpiRun(programs, (job,), (0,) * job.ranks, speed=speed)


def spread(programs: Path, job: SitesProgram, wan: Wan, speed: float = SPEED) -> SmpiRun:
    """A program in two halves."""
    return SmpiRun(programs, (job,), halves(job.ranks), wan, speed)


def sized(kernel: str, ranks: int) -> int:
    """The ranks that a kernel has where other kernels have `ranks`."""
    return 36 if kernel == "bt" and ranks == 32 else ranks


def unique(runs: Iterable[SmpiRun]) -> list[SmpiRun]:
    """Every run once."""
    return list(dict.fromkeys(runs))
