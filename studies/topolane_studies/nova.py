"""Hop-byte placement of VM groups in OpenStack (2013): 16 VMs by stock Nova and by ours, under SMPI.

What is known of the paper's cloud is that it had 16 VMs, one a host, and switches that a stock placement
spread them over. ASSUMED says what was supposed; it was written down before the first run.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import TYPE_CHECKING

from topolane._engine import Decision, Machine, State

if TYPE_CHECKING:
    from collections.abc import Sequence

VMS, LEAVES, HOSTS = 16, 4, 18
GROUPS, MEMBERS = 6, 6
"""Other groups, and the VMs of each."""
DUTY = 0.5
"""The most of its time that another group sends."""
TRANSFER = 64e6
"""Mean bytes of one of its transfers."""

ASSUMED = [
    "4 leaf switches of 18 hosts; 4 cables from each leaf to one core switch (4.5:1; typical of Ethernet then: 2.5:1 to "
    + "8:1, Al-Fares et al., SIGCOMM 2008), each flow on one of them by its destination",
    "InfiniBand QDR, since the paper's title names InfiniBand: 3.2 GB/s and 1 us for each cable",
    "the same on Gigabit Ethernet, not judged: 24 us for the cable of a host, as in SimGrid's platform of the cluster "
    + "griffon; 5 us for the others",
    "one MPI process a VM, 1e9 operations a second; class B of NPB; computation takes the same time always",
    "36 other VMs in 6 groups of 6 fill 12 hosts of each of three leaves: one leaf has room for 16, since the "
    + "paper compares with one switch",
    "every other VM sends transfers of 64 MB in the mean to VMs of its group, 0 to 50 % of the time (drawn for a "
    + "group and run): half of what the uplinks of their leaves carry, without contention",
    "stock Nova takes empty hosts in arbitrary order: one VM fills a host, so all empty hosts weigh the same, and "
    + "Nova 34 hands them to its weighers in the order of a Python set; here they and their order are drawn at "
    + "random. Rank i runs on the i-th VM",
    "SMPI with its default model of messages and flows, measured on Gigabit Ethernet; collectives as in MPICH",
]

POLICIES = {"stock": "random", "listing": "bunch", "ours": "hop-bytes-exact"}
"""Who places: stock Nova, the paper's listing, ours; the engine's policies by name."""


@dataclasses.dataclass(frozen=True)
class NovaNetwork:
    """The cables."""

    bandwidth: float
    """Bytes per second."""
    host_latency: float
    """Seconds of the cable of a host."""
    uplink_latency: float
    """Seconds of a cable between switches."""


INFINIBAND = NovaNetwork(3.2e9, 1e-6, 1e-6)
GIGABIT = NovaNetwork(1.25e8, 24e-6, 5e-6)


@dataclasses.dataclass(frozen=True)
class NovaSetting:
    """What runs where."""

    name: str
    network: NovaNetwork = INFINIBAND
    room: bool = True
    """Whether one leaf is free for the whole group; else the others hold hosts of every leaf."""
    speed: float = 1e9
    """Operations a second of a VM."""
    cables: int = 4
    """From each leaf to the core switch."""
    others: bool = True
    """Whether the other groups send."""
    duty: tuple[float, float] = (0.0, DUTY)
    """Each other group sends for a share of its time between these, drawn once a run."""
    processes: int = 1
    """Of a VM, each on a core of its own."""

    def machine(self) -> Machine:
        """The fabric."""
        text = f"""name = "cloud"
[node]
nic-bandwidth = {self.network.bandwidth}
[[site]]
name = "core"
children = [{HOSTS}, {LEAVES}]
cables = [1, {self.cables}]
bandwidth = {self.network.bandwidth}
"""
        return Machine.parse(text, "cloud.toml", "toml")


CHOSEN = NovaSetting("InfiniBand")
"""What the paper's figures are held against."""
ETHERNET = NovaSetting("Gigabit Ethernet", GIGABIT)
NO_ROOM = NovaSetting("others on every leaf: none has room for 16", room=False)
CHANGES = (
    NO_ROOM,
    NovaSetting("VMs that compute four times as fast", speed=4e9),
    NovaSetting("one cable from a leaf instead of four", cables=1),
    NovaSetting("18 cables from a leaf: full bandwidth", cables=HOSTS),
    NovaSetting("no other VM sends", others=False),
)
"""What the figures of BT may hang on."""
BUSY = NovaSetting("all other VMs send all the time", duty=(0.999, 0.999))
FAST = NovaSetting("VMs that compute 34 times as fast", speed=34e9)
"""At this speed BT gains what the paper says; found by trying speeds."""
SEVERAL = NovaSetting("four processes and cores a VM", processes=4)
COMPARED = (BUSY, FAST, SEVERAL)
"""In which all kernels run, for a tenth of their iterations or less: whether BT gains more than the others."""


@dataclasses.dataclass(frozen=True)
class VmGroup:
    """Another group of VMs: its hosts, and the share of its time that each of them sends."""

    hosts: list[int]
    duty: float


def other_groups(setting: NovaSetting, seed: int) -> list[VmGroup]:
    """The other groups of a run."""
    draw = random.Random(seed)
    if setting.room:
        per_leaf = GROUPS * MEMBERS // (LEAVES - 1)
        held = [
            leaf * HOSTS + host for leaf in range(1, LEAVES) for host in draw.sample(range(HOSTS), per_leaf)
        ]
    else:
        held = draw.sample(range(LEAVES * HOSTS), GROUPS * MEMBERS)
    draw.shuffle(held)
    return [
        VmGroup(sorted(held[first : first + MEMBERS]), draw.uniform(*setting.duty))
        for first in range(0, len(held), MEMBERS)
    ]


def placements(setting: NovaSetting, seed: int) -> dict[str, tuple[int, ...]]:
    """The hosts of the 16 VMs in order, by who places them."""
    state = State(setting.machine())
    for group in other_groups(setting, seed):
        state.hold(group.hosts)
    found = {}
    for who, policy in POLICIES.items():
        placed = state.place(policy, VMS, seed=seed)
        assert isinstance(placed, Decision), placed
        found[who] = tuple(placed.nodes)
    # The engine answers in leaf order, which stock Nova knows nothing of.
    found["stock"] = tuple(random.Random(f"order {seed}").sample(found["stock"], VMS))
    return found


def leaf(host: int) -> int:
    """The leaf of a host: hosts are numbered in leaf order."""
    return host // HOSTS


def hop_bytes(counts: Sequence[int]) -> int:
    """Switches on the way, summed up over pairs of VMs, by how many VMs each leaf has: 1 inside, 3 between."""
    inside = sum(n * (n - 1) // 2 for n in counts)
    return inside + 3 * (sum(counts) * (sum(counts) - 1) // 2 - inside)


def splits() -> list[int]:
    """Hop-bytes of all VMs on two leaves, by how many are on the first (the paper's Figure 4)."""
    return [hop_bytes((first, VMS - first)) for first in range(VMS + 1)]


def counts(hosts: Sequence[int]) -> list[int]:
    """How many of some hosts each leaf has."""
    return [sum(leaf(host) == each for host in hosts) for each in range(LEAVES)]


def optimum(setting: NovaSetting, seed: int) -> int:
    """The least hop-bytes there are, by trying every number of VMs on every leaf."""
    held = counts([host for group in other_groups(setting, seed) for host in group.hosts])
    choices = itertools.product(*(range(min(VMS, HOSTS - taken) + 1) for taken in held))
    return min(hop_bytes(choice) for choice in choices if sum(choice) == VMS)


def all_hop_bytes(setting: NovaSetting, seeds: Sequence[int]) -> dict[str, list[int]]:
    """Hop-bytes by who places, and the optimum, a value for every seed."""
    found: dict[str, list[int]] = {}
    for seed in seeds:
        for who, hosts in placements(setting, seed).items():
            found.setdefault(who, []).append(hop_bytes(counts(hosts)))
        found.setdefault("optimum", []).append(optimum(setting, seed))
    return found
