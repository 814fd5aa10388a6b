"""The engine: machines, workloads, runs and decisions, compiled. Times in seconds, memory in bytes.

Node indices count from 0 in leaf order. What cannot be used raises InputError, in one sentence.
"""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingType
from pathlib import Path
from typing import Any, Self, final

from numpy import float64, uint32
from numpy.typing import NDArray

from topolane.failures import Failure
from topolane.policy import Policy
from topolane.run import Settings

__all__ = [
    "Contended",
    "Cut",
    "Decision",
    "DedicatedRoutes",
    "ForwardingTables",
    "GangAgent",
    "GangHeld",
    "GangJob",
    "GangJobOutcome",
    "GangLimits",
    "GangMeans",
    "GangOutcome",
    "GangRound",
    "GangSwitch",
    "InputError",
    "LinkUse",
    "Loads",
    "Machine",
    "Mapping",
    "NoRoom",
    "Obstacle",
    "OtherNetwork",
    "Outcome",
    "Profile",
    "Rank",
    "Refusal",
    "Request",
    "RoomPlan",
    "Routing",
    "Scheduler",
    "SiteChoice",
    "SiteProgram",
    "State",
    "StateView",
    "Table",
    "Traffic",
    "Workload",
    "assign",
    "assumed_traffic",
    "built",
    "check_live",
    "choose_sites",
    "contend",
    "crossings",
    "efforts",
    "end_without_memory",
    "gang_policies",
    "isolating_policies",
    "linking_policies",
    "links_shared",
    "machine_formats",
    "machine_writers",
    "make_room",
    "map_ranks",
    "max_min",
    "models",
    "parts",
    "patterns",
    "phases",
    "policies",
    "presets",
    "queues",
    "rank_k",
    "retrace",
    "routings",
    "simulate",
    "simulate_gangs",
    "site_policies",
    "smooth",
    "traffic_policies",
    "workload_presets",
]

class InputError(ValueError):
    """Input that cannot be used: one sentence that names the file, the line and the value."""

@final
class Machine:
    """A machine: sites of fat trees and the inside of their nodes. Immutable."""

    @staticmethod
    def preset(name: str) -> Machine | None:
        """The machine of that name, or None if there is none."""

    @staticmethod
    def parse(
        text: str,
        source: str,
        format: str | None = None,
        *,
        topology: str | None = None,
        sub_domains: bool = False,
        hosts: str | None = None,
        included: MappingType[str, tuple[str, str]] = ...,
        only_trees: bool = False,
    ) -> Machine:
        """The machine that `text` describes.

        format: the name of one of `machine_formats`, or None to guess from the file's name `source` and the text. topology:
        which one of a text that holds several. sub_domains: take accelerator sub-domains as the domains. hosts: a hostlist of the
        devices that are nodes, for formats that record cables alone. included: path and text of the files that a topology.conf
        includes, by the name that it gives. only_trees: refuse switches of Slurm that form no tree, instead of reading what a tree
        can hold of them.
        """

    @staticmethod
    def includes(text: str, source: str, format: str | None = None) -> list[tuple[int, str]]:
        """The files that a text includes: the line and the name of each. Only a topology.conf does."""

    @property
    def notes(self) -> list[str]:
        """What was assumed, chosen or skipped when it was read, in sentences."""

    def joined(self, tree: Machine) -> tuple[Machine, list[str]]:
        """One machine of two that describe the same nodes: the cables of this one, and the nodes that only
        `tree` names on the switches of their neighbours. Also what was assumed, in sentences.

        Raises InputError if the two contradict each other.
        """

    @staticmethod
    def format_of(text: str, source: str) -> str | None:
        """The format of a file, by its name and text, as `parse` guesses it."""

    @staticmethod
    def of(name: str, leaves: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Machine:
        """The machine of leaves, each (groups above it from its site down and itself last, hosts).

        Nothing is known of cables; sites are a WAN hop apart. Raises InputError for a host in two
        leaves, and for a leaf with groups below it.
        """

    def only(self, nodes: Sequence[int]) -> Machine:
        """The machine with only these nodes, those of a partition for instance."""

    def counting(self, counts: Sequence[tuple[int, MappingType[str, int]]]) -> Machine:
        """The machine with the given cores and other counted resources on each node, by its number: what a scheduler counts there.

        Nodes beyond the list stay as they are. Raises InputError for what no node can have.
        """

    def to(self, format: str) -> str:
        """The machine in a format: one of `machine_writers`."""

    def lost(self, format: str) -> list[str]:
        """What the machine has and that format cannot say, in sentences."""

    @property
    def knows_cables(self) -> bool:
        """Whether the file that it was read from records cables; if not, one is assumed everywhere."""

    def with_notes(self, notes: Sequence[str]) -> Machine:
        """The same machine with other notes."""

    @property
    def network_entries(self) -> list[tuple[str, str, list[str], tuple[int, int]]]:
        """(name, file, names of servers, lines of the name and of the servers) of the other networks that its file names."""

    @property
    def networks(self) -> list[OtherNetwork]:
        """The other networks over its nodes, in the order of its file."""

    def with_networks(self, networks: Sequence[OtherNetwork]) -> Machine:
        """The same machine with these other networks."""

    def domains(self) -> list[tuple[str, list[int], float]]:
        """(name, nodes, bandwidth of a node inside in B/s) of every domain."""

    @property
    def block_sizes(self) -> list[int]:
        """The sizes of the blocks of domains that a scheduler plans with, in nodes."""

    def tree(self, limit: int) -> str:
        """The tree as text, `limit` lines of it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def depth(self) -> int:
        """Levels of switches."""

    @property
    def links(self) -> int:
        """Number of links with an id: cables, missing ones included, and WAN links."""

    @property
    def missing_cables(self) -> int:
        """Number of cables that are missing."""

    def cores(self) -> list[tuple[int, int]]:
        """Cores of each kind of node, with how many nodes there are of it."""

    @property
    def resources(self) -> list[str]:
        """The names of the resources that are counted on its nodes: cores, memory, and those of the machine file."""

    def resources_of(self, node: int) -> dict[str, int]:
        """What a node has of each of these resources."""

    def groups(self, level: int) -> list[tuple[int, int, str]]:
        """(start, end, name) of every group of a level from 1 (leaves) to `depth` (sites)."""

    def node_name(self, node: int) -> str:
        """The name of a node."""

    def node_named(self, name: str) -> int | None:
        """The node of that name, or None."""

    def leaves_out(self, name: str) -> bool:
        """Whether a node of that name is one of the whole machine, and not of this part of it (`only`)."""

    def nodes_named(self, hosts: str) -> list[int]:
        """The nodes that a hostlist expression names."""

    def hostlist(self, nodes: Sequence[int]) -> str:
        """The hostlist expression of some nodes."""

    @property
    def detours(self) -> tuple[float, float] | None:
        """Of a dragonfly whose routing adapts to load: the most that takes detours of the bytes between groups, and the share of each
        cable between its groups that others leave to a job to which links were promised. None for others."""

    @property
    def wiring(self) -> str:
        """The kind of wiring: "tree", "dragonfly", "torus" or "HyperX"."""

    def hops(self, a: int, b: int) -> int | None:
        """Hops between two nodes, or None where no link joins them."""

    def hops_from(self, node: int) -> NDArray[uint32]:
        """Hops from a node to every node; 0 where no link joins them."""

    def home(self, nodes: Sequence[int]) -> tuple[int, str | None]:
        """(level, name) of the lowest group that holds all of these nodes; the name is None where no site does."""

    def leaves_of(self, nodes: Sequence[int]) -> list[int]:
        """The index of the leaf of each of these nodes."""

    def outline(self, nodes: Sequence[int]) -> list[tuple[int, str, int, int]]:
        """(level, name, how many of the nodes, of how many) of every group with some of these nodes.

        Each group stands before what is below it, down to the nodes themselves at level 0.
        """

    def homes(self, nodes: int) -> list[tuple[int, int]]:
        """The node ranges (start, end) of the groups of at least `nodes` nodes at the lowest level that has one."""

    def route(self, a: int, b: int) -> list[tuple[int, str]] | None:
        """The d-mod-k route: (cable, "up" or "down") for every link, or None where there is none."""

    def rails(self) -> list[tuple[int, bool]]:
        """(rails, whether they meet in switches) of every site."""

    def rails_by_level(self) -> list[int]:
        """By level from the leaves: the most rails of a site that have switches of their own there; 1 where they have met."""

    def rail_route(
        self, nodes: tuple[int, int], rails: tuple[int, int], cross_rail: str
    ) -> tuple[bool, bool, list[tuple[int, str]]] | None:
        """The route from the GPU on one rail of a node to the GPU on a rail of another.

        Whether it goes over NVLink in the first node and in the last, and (cable, "up" or "down") for every link; None where
        there is none. `cross_rail` is "nvlink" or "spines".
        """

    def routing(self, name: str, seed: int = 0) -> Routing:
        """The routing of this name (`routings`); `default` is the first of the machine's wiring."""

    def tables(self, tables: str, net: str, tables_source: str, net_source: str) -> Routing:
        """The routing by forwarding tables.

        tables: a dump of opensm or dump_fts; net: the output of ibnetdiscover that the machine
        was read from; each with the name of its file.
        """

    def limits(self, policy: str | Policy) -> list[str]:
        """Where the policy cannot give jobs links of their own, or not all, in sentences that name the groups."""

    def absent(self, net: str, now: str, net_source: str, now_source: str) -> list[int]:
        """The cables, ascending, that a later output of `ibnetdiscover` (`now`) lacks.

        net: the output that the machine was read from. A cable is known by the devices and ports at its ends. Raises
        InputError for a text that is none or is cut short, naming `net_source` or `now_source` and the line.
        """

    def cables_named(self, names: Sequence[str]) -> list[list[int]]:
        """The cables of a tree that each text names, ascending.

        A link by its ends (`leaf0->pod0-s1`, `#1` behind it for one of parallel cables, else all), a cable by its id,
        or all cables of a switch or a node by its name. Raises InputError for what names none.
        """

    def link_names(self) -> list[tuple[str, str, str, str, int | None]]:
        """(lower end, its group, upper end, its group, which of parallel cables) of links by id."""

    def quality(self, nodes: Sequence[int]) -> tuple[float, float]:
        """(average pairwise hops, hop-bytes for one byte a pair) of some nodes."""

    def least_aph(self) -> list[float]:
        """The least average pairwise hops of 1, 2, ... nodes on the empty machine."""

@final
class OtherNetwork:
    """Another network over the nodes of a machine, such as the one to its storage. Immutable."""

    def __new__(cls, name: str, source: str, machine: Machine, servers: Sequence[str]) -> Self:
        """The network that `machine`, read from the file `source`, describes.

        servers: hosts on it with which every node of a job exchanges data; without any, jobs send between their own nodes.
        Raises InputError for a server that is not on it.
        """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def source(self) -> str:
        """The file that it was read from."""

    @property
    def machine(self) -> Machine:
        """The network as a machine of its own; its nodes are all hosts on it."""

    @property
    def servers(self) -> list[int]:
        """The servers, by their numbers on it."""

    def nodes_of(self, machine: Machine) -> list[int | None]:
        """The number on it of every node of a machine, by its name; None for a node that is not on it."""

@final
class Routing:
    """The ways between the nodes of a machine. Immutable.

    A channel is what traffic contends for: one direction of a cable, or of all uplinks of a group
    where traffic is spread over them.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def channels(self) -> int:
        """Number of channels."""

    @property
    def capacity(self) -> NDArray[float64]:
        """Bytes per second of every channel."""

    def path(self, a: int, b: int) -> list[int]:
        """The channels from one node to another in order. A number from `channels` on stands for several: see `parts`."""

    def parts(self, a: int, b: int) -> list[tuple[int, float]]:
        """The channels from one node to another, ascending, with the part of the bytes on each."""

    def loaded_links(self, loads: Sequence[float] | NDArray[float64]) -> Table:
        """The table `links` of a run with these loads, one for every channel."""

    def links(self, channel: int) -> list[tuple[int, str]]:
        """(cable, "up" or "down") of the links behind a channel."""

@final
class DedicatedRoutes:
    """The routes on a machine that keep the traffic of jobs on the links they own. Immutable."""

    def __new__(
        cls,
        machine: Machine,
        jobs: Sequence[tuple[str, Sequence[int], Sequence[int]]],
        service: Sequence[int] = ...,
        uplinks: int = 0,
    ) -> Self:
        """The routes for jobs, each (name, nodes, cables between switches that it owns).

        uplinks: how many of the highest uplink slots of every switch are reserved for traffic to and from
        the service nodes. Raises InputError, naming the job, for nodes and links that are not there
        or another's too, and for links that do not join the job's leaves.
        """

    @staticmethod
    def set_aside(machine: Machine, uplinks: int) -> list[int]:
        """The cables in the `uplinks` highest uplink slots of every switch, ascending."""

    def routing(self) -> Routing:
        """The routes as a routing."""

    def service_routes(self) -> tuple[int, int, int]:
        """Routes between service nodes and nodes of jobs with links, both directions; how many of
        them pass over a link that a job owns; and over one of another job than the node's."""

    def tables(self, net: str, source: str) -> ForwardingTables:
        """The tables of the subnet that `net`, a text of ibnetdiscover, describes."""

@final
class ForwardingTables:
    """Forwarding tables of all switches of a subnet. Immutable."""

    @property
    def switches(self) -> int:
        """Number of switches."""

    @property
    def outside(self) -> list[int]:
        """LIDs of devices that are no part of the tree and have no entries."""

    @property
    def entries(self) -> int:
        """Number of entries."""

    def text(self) -> str:
        """The text that the file routing engine of opensm loads."""

    def after(self, routes: DedicatedRoutes, nodes: Sequence[int]) -> ForwardingTables:
        """The tables of the same subnet after the jobs of these nodes came or went."""

    def differing(self, other: ForwardingTables) -> int:
        """Entries that are others in tables of the same subnet."""

    def changed(self, text: str, source: str) -> tuple[list[tuple[int, int]], int]:
        """Entries that differ from an earlier text: (node, how many) for nodes, and others."""

@final
class Traffic:
    """Bytes and messages between ranks in one iteration. Immutable."""

    @staticmethod
    def pattern(text: str, ranks: int, seed: int = 0) -> Traffic:
        """The traffic of `ranks` ranks by a pattern: `name` or `name(parameter=value, ...)`."""

    @staticmethod
    def parse(text: str, source: str) -> Traffic:
        """The traffic that a file's text describes."""

    @staticmethod
    def of(
        ranks: int,
        from_: Sequence[int] | NDArray[uint32],
        to: Sequence[int] | NDArray[uint32],
        bytes: Sequence[float] | NDArray[float64],
        messages: Sequence[float] | NDArray[float64] | None = None,
    ) -> Traffic:
        """The traffic with these entries; one message each unless said."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def bytes(self) -> float:
        """Bytes of one iteration."""

    @property
    def messages(self) -> float:
        """Messages of one iteration."""

    def arrays(self) -> tuple[NDArray[uint32], NDArray[uint32], NDArray[float64], NDArray[float64]]:
        """Sender, receiver, bytes and messages of every entry."""

    def csv(self) -> str:
        """The matrix as CSV."""

@final
class Mapping:
    """A slot for every rank, none of them twice, and what that costs in one iteration."""

    @property
    def slots(self) -> NDArray[uint32]:
        """The slot of every rank."""

    @property
    def hop_bytes(self) -> float:
        """Hop-bytes as mapped."""

    @property
    def rank_order(self) -> float:
        """Hop-bytes when rank i is on slot i."""

    @property
    def crossed(self) -> list[tuple[int | None, float, float]]:
        """(hops, or None inside a node; bytes in rank order; bytes as mapped)."""

    @property
    def by(self) -> str:
        """How it was found."""

    @property
    def members(self) -> list[tuple[str, float]]:
        """(name, hop-bytes) of every member of the portfolio."""

def end_without_memory(*, says: bool = True) -> None:
    """Ends the process if the engine gets no memory, with exit code 2, and with a sentence if it `says` so. Only for commands."""

def efforts() -> list[str]:
    """The names of the efforts."""

def map_ranks(
    machine: Machine,
    nodes: Sequence[int],
    traffic: Traffic,
    *,
    effort: str = "eco",
    seed: int = 0,
    threads: int = 0,
    node_links: bool = False,
) -> Mapping:
    """Maps ranks to slots, slot i being on node `nodes[i]`, for the fewest hop-bytes.

    threads: 0 for one per core; the answer does not depend on it. node_links: count the links of
    the nodes as hops too. Raises InputError for more ranks than slots.
    """

def assign(
    n: int,
    flow: Sequence[float] | NDArray[float64],
    distance: Sequence[float] | NDArray[float64],
    *,
    effort: str = "strong",
    seed: int = 0,
    threads: int = 0,
) -> tuple[NDArray[uint32], float]:
    """The quadratic assignment problem of n items and places, matrices row by row.

    Returns the place of every item and the sum over ordered pairs of flow times distance, which
    must be symmetric.
    """

def parts(traffic: Traffic, sizes: Sequence[int], seed: int = 0) -> NDArray[uint32]:
    """The part of every rank, part i having exactly `sizes[i]` of them, with few bytes between parts.

    METIS, then pair swaps. Raises InputError where the sizes do not add up to the ranks.
    """

@final
class Cut:
    """What crosses the cut of a program into two equal halves, each second. Immutable.

    turns: messages from the other half that the rank with the most of them waits for, those that come after it
    has sent there; bytes: in the busier direction; busiest: bursts (messages with no answer between them) and bytes of the two ranks
    across the cut of whom one sends the other most. Raises InputError for what is no number from 0.
    """

    def __new__(
        cls, turns: float, bytes: float, busiest_bursts: float = 0.0, busiest_bytes: float = 0.0
    ) -> Self: ...
    @property
    def turns(self) -> float: ...
    @property
    def bytes(self) -> float: ...
    def loss(self, latency: float, bandwidth: float, window: float | None = None) -> float:
        """Seconds that a second of a run on one site takes longer with that path between its halves.

        latency in seconds one way, bandwidth in bytes per second, window in bytes under way on one connection.
        """

    def undisturbed(self, lost: float) -> Cut:
        """The cut a second of a run on one site, from one measured while `lost` seconds of each were lost."""

@final
class SiteProgram:
    """A program, as a choice of sites sees it. Immutable.

    cut: of the guests divided best into halves, as measured where it runs now; apart: the same of 1, 2, ... guests and
    the others, uniform traffic where not given; here: what crosses as they are divided now, and
    exchange: guests that change places to divide them best over the same sites; cores and memory (bytes) of each guest; nodes: the host of every guest,
    none for a program that arrives; sites: those it may use, none for all; dirty: bytes of a guest's
    memory rewritten a second; remaining: seconds it is expected to run on; settled: seconds since its last move.

    compute: seconds of computing on a reference core in a second of its run, of the rank with the most; in_mpi: the
    share of its time in MPI of the rank with the least; both as measured where it runs now. correction: what it loses
    to the WAN over what is predicted, if known from before. outside: bytes a second between each guest and its
    storage or database at the site `home`. barred: nodes whose processors lack a feature that it needs.
    """

    def __new__(
        cls,
        guests: int,
        cut: Cut,
        *,
        apart: Sequence[Cut] = ...,
        here: Cut | None = None,
        exchange: int = 0,
        cores: int = 1,
        memory: int = 0,
        nodes: Sequence[int] = ...,
        sites: Sequence[int] = ...,
        dirty: float = 0.0,
        remaining: float = 3600.0,
        settled: float = ...,
        compute: float = 0.0,
        in_mpi: float | None = None,
        correction: float | None = None,
        outside: float = 0.0,
        home: int | None = None,
        barred: Sequence[int] = ...,
    ) -> Self: ...

@final
class SiteChoice:
    """Where a program is to run, and what that brings."""

    @property
    def nodes(self) -> list[int]:
        """A node for every guest; empty for a program that arrives and does not fit now."""

    @property
    def loss_now(self) -> float:
        """Seconds that a second of its run on one site on reference cores takes longer, where it runs now; negative
        on fast cores.
        """

    @property
    def loss_then(self) -> float:
        """The same as chosen."""

    @property
    def wan_now(self) -> float:
        """The part of `loss_now` that the WAN takes."""

    @property
    def wan_then(self) -> float:
        """The same as chosen."""

    @property
    def speed_now(self) -> float:
        """The speed of its slowest core where it runs now; 1 is that of a reference core."""

    @property
    def speed_then(self) -> float:
        """The same as chosen."""

    @property
    def compute(self) -> float:
        """Of a second of its run on one site on reference cores, seconds of computing."""

    @property
    def correction(self) -> float:
        """What it loses to the WAN over what is predicted; below 1 if it spends less time in MPI than predicted."""

    @property
    def gain(self) -> float:
        """Seconds of its remaining run that are saved; negative where it gives way to others."""

    @property
    def cost(self) -> float:
        """Seconds of its run that the moves cost."""

    @property
    def moves(self) -> int:
        """Guests that move."""

def site_policies() -> list[tuple[str, str]]:
    """Name and summary of every site policy built in."""

def smooth(times: int) -> tuple[int, float]:
    """Does a fixed work `times` times, for measuring a core: how many values it computed, and a figure of them."""

def choose_sites(
    machine: Machine,
    programs: Sequence[SiteProgram],
    *,
    policy: str = "predicted-time",
    held: Sequence[tuple[Sequence[int], int, int]] = ...,
    down: Sequence[int] = ...,
    window: float | None = None,
    margin: float | None = None,
    least: float | None = None,
    doubt: float | None = None,
    rest: float | None = None,
    drag: float | None = None,
) -> list[SiteChoice]:
    """Where all programs are to run: those that run and, in their order, those that arrive.

    machine: sites of hosts joined by WAN links; held: (nodes, cores, memory in bytes) of what else runs there; down:
    nodes out of service; window: bytes that one connection may have under way. A move must bring `margin` times
    its cost and the shares `least` of the remaining time and `doubt` of what is lost now; a program rests
    `rest` seconds after a move; a program loses the share `drag` of its speed while a guest is copied.
    """

@final
class Contended:
    """What some jobs cost each other. Arrays have one value per job unless said."""

    times: NDArray[float64]
    """Seconds of an iteration's communication while the other jobs run."""
    times_alone: NDArray[float64]
    """Seconds of an iteration's communication on the same nodes without other jobs."""
    slowdowns: NDArray[float64]
    """How many times longer communication takes while the other jobs run."""
    rates: list[NDArray[float64]]
    """Of every job the bytes per second of its flows."""
    loads: NDArray[float64]
    """Of every channel the share of it that is wanted."""

def contend(routing: Routing, model: str, jobs: Sequence[tuple[Sequence[int], Traffic]]) -> Contended:
    """What jobs that run at the same time cost each other. jobs: (node of every rank, traffic) of each."""

@final
class Loads:
    """Who puts how much on every channel of a routing. Immutable."""

    def __new__(cls, routing: Routing, jobs: Sequence[tuple[Sequence[int], Traffic]]) -> Loads:
        """The loads of jobs: (node of every rank, traffic) of each."""

    @property
    def shares(self) -> NDArray[float64]:
        """Of every channel the share that is wanted, each job's as when it is alone."""

    def users(self, channel: int) -> list[tuple[int, float]]:
        """(index of the job, share it wants) of all who use a channel."""

    def time_alone(self, job: int) -> float:
        """Seconds of an iteration's communication of a job alone."""

def max_min(
    capacity: NDArray[float64], first: NDArray[uint32], channels: NDArray[uint32]
) -> NDArray[float64]:
    """The max-min fair rate of flows over explicit ways.

    `channels[first[i]:first[i + 1]]` are those of flow i; a flow without channels is unlimited.
    """

@final
class Profile:
    """A program of some processes: what it computes, holds and sends. Immutable."""

    def __new__(
        cls,
        processes: int,
        traffic: str | Traffic,
        *,
        iterations: float = 1.0,
        core_seconds: float = 0.0,
        memory_traffic: float = 0.0,
        memory: int = 0,
        collective: bool = True,
        seed: int = 0,
    ) -> Self:
        """What it sends in one iteration is `traffic`: a pattern by name, or a matrix.

        `core_seconds`: of computation, all processes together, each alone on a node of the
        machine's first kind; `memory_traffic`: bytes that it moves to and from memory, all together;
        `memory`: bytes that one process holds; `collective`: the messages of a matrix are those of
        collective operations.
        """

    @property
    def processes(self) -> int:
        """Number of processes."""

@final
class Rank:
    """One k, and what comes of it: nodes and seconds, or a refusal and why."""

    k: int
    """Cores of each node."""
    decision: Decision | None
    """What it would be given; None where it does not fit."""
    total: float | None
    """Predicted seconds in all."""
    computation: float | None
    """Of computation."""
    collective: float | None
    """Of collective operations."""
    point_to_point: float | None
    """Of messages between two ranks."""
    neighbours: float | None
    """Seconds that other jobs lose meanwhile, for each of the fewest nodes that the program may have. They are counted for
    policies that look at traffic, and are not part of `total`. The k with the least sum of both is chosen."""
    refusal: str | None
    """The refusal's name: "cores", "memory", "not-now", ..."""
    why: str | None
    """The refusal in a sentence."""
    chosen: bool
    """Whether it is the one to take."""

def rank_k(
    state: State,
    routing: Routing,
    policy: str | Policy,
    profile: Profile,
    *,
    cores: str = "auto",
    model: str = "full",
    jobs: Sequence[tuple[Sequence[int], Traffic]] = ...,
    shared: bool = False,
    id: int = 0,
    eligible: Sequence[int] | None = None,
    seed: int = 0,
) -> list[Rank]:
    """Predicts a program's run time for every k, on the nodes that a policy would give it now.

    `cores`: "auto", "fixed:k" or a number; `jobs` communicate meanwhile: (node of every rank,
    traffic) of each; `shared`: others may take the cores that are left on its nodes.
    """

def routings() -> list[tuple[str, str]]:
    """(name, summary) of every routing that needs no tables."""

def models() -> list[tuple[str, str]]:
    """(name, summary) of every model of contention."""

def patterns() -> list[tuple[str, str, list[tuple[str, str, str, str, str]]]]:
    """(name, summary, parameters) of every pattern of traffic; of a parameter its name, summary,
    unit, what its value may be, and its default."""

def phases(text: str, ranks: int, seed: int = 0) -> list[tuple[str, str, Traffic]]:
    """(name, "collective" or "point-to-point", traffic) of every phase of a pattern's iteration."""

@final
class Workload:
    """Jobs in order of submission, and counts of skipped records. Immutable."""

    @staticmethod
    def read(
        path: str,
        *,
        cores_per_node: int | None = None,
        partition: str | None = None,
        shared: bool = False,
        gpus_per_node: int | None = None,
    ) -> Workload:
        """Reads a log: SWF, CSV, the output of `sacct -P` or a trace of GPU jobs, plain or gzipped."""

    @staticmethod
    def generate(name: str, seed: int) -> Workload:
        """Makes a month up: a preset's name (see `workload_presets`) and a seed."""

    @property
    def failure_rate(self) -> tuple[float, float] | None:
        """Failures of a node in a day where the jobs ran, and the mean seconds until it is back; None where unknown."""

    def draw_failures(
        self, machine: Machine, per_node_day: float, repair: float, seed: int
    ) -> list[tuple[int, float, float]]:
        """(node, from, until) of failures from the first submission to the last and one day more, at such a rate."""

    def shaped(
        self,
        machine_nodes: int | None,
        *,
        days: float | None = None,
        nodes_x: float | None = None,
        squeeze: float | None = None,
        load: float | None = None,
        limit: int | None = None,
        jitter: float | None = None,
        seed: int = 0,
    ) -> Workload:
        """The workload changed for a machine of that many nodes (None: any width fits, and no load can be set).

        In this order: its first days, its jobs wider, those wider than the machine skipped, the first
        `limit` of the others kept, its submissions squeezed or set to a load, its run times cut by up to
        the part `jitter`.
        """

    def to(self, format: str) -> str:
        """The workload as text: "swf" or "csv"."""

    @property
    def name(self) -> str:
        """Its name: a preset's, or the log's without its extensions."""

    @property
    def epoch(self) -> float:
        """Unix time of second 0; 0 where unknown."""

    @property
    def cores_per_node(self) -> int:
        """Cores of a node by which processors were turned into nodes."""

    def __len__(self) -> int: ...
    @property
    def without_walltime(self) -> int:
        """Jobs without a requested walltime."""

    @property
    def left_out(self) -> dict[str, int]:
        """Numbers of skipped records, by reason."""

    @property
    def changed(self) -> dict[str, int]:
        """Jobs that the reader changed, by what was wrong with them and what was done."""

    @property
    def assumed(self) -> list[str]:
        """Numbers that the log does not give and that change results, a sentence each."""

    def check_times(self) -> None:
        """Refuses, with InputError, times that no run lasts for, as `simulate` does."""

    def strangers(self, machine: Machine) -> tuple[int, int]:
        """How many nodes the log names, and how many of these a machine does not have."""

    def without_hosts(self) -> Workload:
        """The workload without the names of the nodes that its jobs ran on."""

    @property
    def span(self) -> float:
        """Seconds from the first submission to the last."""

    @property
    def names_nodes(self) -> bool:
        """Whether the log names the nodes of its jobs."""

    def load(self, machine_nodes: int) -> float:
        """Sum of nodes x run time over (machine nodes x span)."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns id (uint64), nodes (uint32), submit, run, walltime, start (as recorded) and cores (of each node).

        The last five are float64: seconds, or cores of jobs that share nodes; NaN where absent.
        """

    def earlier_runs(self) -> dict[str, NDArray[Any]]:
        """Runs of jobs after which these ran again, in the columns job (uint64, the place among `columns`), start, run and nodes."""

    def details(self) -> tuple[NDArray[uint32], list[tuple[str, bool, bool, bool]]]:
        """What the log says of its jobs that decides nothing: of each job a place in the list, 0 if nothing is said.

        The list has partitions, and whether the job was held, had a reservation, and waited for a limit.
        """

    def arranged(
        self, *, held_until: Sequence[float] | None = None, priority: Sequence[float] | None = None
    ) -> Workload:
        """The workload with the time until which each job is held (NaN: not held) and the priority of each."""

@final
class Table:
    """A table of a run. What reads Arrow by `__arrow_c_stream__` reads it: `polars.DataFrame(table)`. Immutable."""

    def csv(self) -> bytes:
        """The table as CSV."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """The table as a stream of Arrow's C interface. A schema that is asked for is passed over."""

    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _read(bytes: bytes) -> Table:
        """The table that another process has sent."""

@final
class Outcome:
    """What happened in a run, and its measures."""

    def tables(self) -> dict[str, Table]:
        """The tables of the run by name: jobs, utilization, and links, job-links, head-waits, moves and failures if it has them."""

    def take_tables(self) -> dict[str, Table]:
        """The same, and the outcome is empty afterwards: it has no jobs any more."""

    def placements(self) -> list[NDArray[uint32]]:
        """The nodes of every job in rank order, in the order of the table `jobs`."""

    def on_network(
        self, machine: Machine, network: OtherNetwork
    ) -> tuple[list[int], list[float | None], float | None]:
        """What the jobs do on another network, in the order of the table `jobs`.

        The links of it on which another job may have met each; the share that its switches leave each, when alone, of what the
        links of its nodes and of the servers could carry (None without servers); and the mean of that by node-seconds.
        """

    def summary(self) -> dict[str, Any]:
        """The run in a few figures."""

@final
class Request:
    """A request as a policy sees it."""

    @property
    def id(self) -> int:
        """Identity."""

    @property
    def nodes(self) -> int:
        """Slots wanted."""

    @property
    def share(self) -> dict[str, int] | None:
        """Resources and counts of each slot, cores and memory among them; None for whole nodes."""

    @property
    def stacked(self) -> bool:
        """Whether several slots may lie on one node."""

    @property
    def walltime(self) -> float:
        """Longest time it will run, seconds."""

    @property
    def members(self) -> list[int]:
        """Nodes that already run members of its group."""

@final
class StateView:
    """The machine at one moment, as a policy sees it: a copy, valid during the call."""

    @property
    def free(self) -> NDArray[uint32]:
        """Free slots of every node for this request."""

    @property
    def crossing(self) -> list[NDArray[uint32]]:
        """Placements that cross each group, by level from 0 (nodes)."""

    @property
    def machine(self) -> Machine:
        """The machine."""

@final
class Decision:
    """What a request was given: all that a driver carries out and writes down. Immutable."""

    @property
    def id(self) -> int:
        """The identity of the request."""

    @property
    def nodes(self) -> list[int]:
        """The nodes in rank order, once per slot."""

    @property
    def links(self) -> list[int]:
        """The cables between switches that no other job uses, ascending; none for a policy that gives none."""

    @property
    def bandwidth_share(self) -> float:
        """The share of full bandwidth on these links."""

    @property
    def kept_share(self) -> float | None:
        """The share of each cable between its groups that other jobs leave to this one, whatever they send; None if nothing is promised,
        or no message takes a detour (`Machine.detours`)."""

    @property
    def spare(self) -> list[int]:
        """Nodes that the job holds and does not use."""

    @property
    def gpus(self) -> list[list[int]]:
        """The GPUs of every slot, in the order of `nodes`; empty for whole nodes and where no GPU is taken."""

    @property
    def segments(self) -> list[tuple[str, list[int]]] | None:
        """(block, nodes in rank order) of every segment of the request; None without segments and where the policy keeps none."""

    @property
    def aph(self) -> float:
        """Average pairwise hops between the nodes."""

    @property
    def hop_bytes(self) -> float:
        """Sum of hops over pairs of nodes: the hop-bytes of one byte between every pair."""

@final
class Refusal:
    """Why a request is not placed; `str` gives the sentence. Immutable."""

    @property
    def name(self) -> str:
        """ "not-now", "never", "would-share-links" or "cannot-isolate"."""

    @property
    def why(self) -> str:
        """The reason in a sentence."""

    @property
    def within(self) -> str | None:
        """The kind of group ("leaf", "pod", ...) one of which must hold the request; None where there is but one."""

    @property
    def obstacles(self) -> list[Obstacle]:
        """What stands in the way, the groups with most free slots first."""

@final
class Obstacle:
    """A group that stands in a request's way. Immutable."""

    level: int
    """Its level, from 1, the leaves."""
    index: int
    """Its index in the level."""
    name: str
    """Its name."""
    free: int
    """Slots in it that the request could use if slots were all it needs."""
    missing: int
    """How many are missing: uplinks if `uplinks` is a number, else slots."""
    uplinks: int | None
    """How many uplinks the group has; None where slots are missing."""
    jobs: list[int]
    """The jobs that hold what is missing, ascending."""

@final
class LinkUse:
    """The jobs that may use the uplinks of each group at one moment. Immutable.

    A job may use the uplinks of a group in which it has some of its nodes and not all. Two jobs that may use those of
    one group may meet there, unless both own links.
    """

    def __new__(cls, machine: Machine, jobs: Sequence[tuple[int, Sequence[int], Sequence[int]]]) -> Self:
        """Of jobs: (identity, nodes, cables between switches that it owns)."""

    shared: int
    """How many links two jobs may use."""
    def meetings(self, job: int) -> list[tuple[str, list[int]]]:
        """The groups whose uplinks a job may use, from the leaves up, and the other jobs that it may meet there."""

def links_shared(
    machine: Machine, stays: Sequence[tuple[int, float, float, Sequence[int], Sequence[int]]]
) -> list[int]:
    """On how many links each job, numbered from 0, may have met another one.

    stays: (job, from, until, nodes, cables that it owns) of the time that a job spends in one place.
    """

def crossings(
    nodes: int, levels: Sequence[Sequence[int]], jobs: Sequence[tuple[int, Sequence[tuple[int, int]]]]
) -> list[list[list[int]]]:
    """The jobs, in the order given, that cross each group of a tree: by level from the leaves.

    levels: the first node of every group; jobs: (identity, half-open ranges of its nodes).
    """

@final
class Scheduler:
    """A machine, a policy and a queue: tell it what happened, then ask what starts.

    What the simulator runs on, for a live driver. Times in seconds, on the driver's clock.
    """

    def __new__(
        cls, machine: Machine, policy: str | Policy, queue: str, *, seed: int = 0, routing: str = "default"
    ) -> Self:
        """`routing`: the routes that a policy which reads traffic (`traffic_policies`) reckons with."""

    def submit(
        self,
        id: int,
        nodes: int,
        walltime: float,
        *,
        most: int = 0,
        priority: float = 0.0,
        order: int = 0,
        begin: float = 0.0,
        min_bandwidth: float | None = None,
        share: MappingType[str, float] | tuple[int, int] | None = None,
        members: Sequence[int] = ...,
        eligible: Sequence[int] | None = None,
        traffic: tuple[Traffic, float] | None = None,
        within: str | None = None,
        segment: int | None = None,
    ) -> Refusal | None:
        """Queues a request behind those of higher priority, and of its own that are not later by `order`.

        It gets `nodes`, or as many up to `most` as there are when its turn comes (a job that overtakes
        others gets `nodes`). min_bandwidth: the minimum share of full bandwidth that it accepts on dedicated links,
        above 0 and up to 1; None for all of it. traffic: what its ranks send, which lie on its slots
        evenly and in blocks, and the part of its time for which they do; only `traffic_policies` look at it. segment:
        nodes of each part of it that must lie in one domain. within: where it is to lie, for policies
        that ask (`unconstrained`, `preferred:LEVEL`, `required:LEVEL`). Returns None, or the reason why it can never be placed;
        it is not queued then.
        """

    def adopt(
        self,
        id: int,
        nodes: Sequence[int],
        start: float,
        walltime: float,
        *,
        share: MappingType[str, float] | tuple[int, int] | None = None,
        links: Sequence[int] = ...,
        bandwidth_share: float = 1.0,
        traffic: tuple[Traffic, float] | None = None,
    ) -> None:
        """Takes over a job that runs on `nodes` since `start`; if it waits here, it waits no longer.

        links: cables between switches that it owns, with that share of full bandwidth. traffic: as in `submit`.
        """

    def complete(self, id: int) -> bool:
        """A running job has ended; False if it did not run."""

    def cancel(self, id: int) -> bool:
        """Takes a waiting request out; False if it does not wait."""

    def set_walltime(self, id: int, walltime: float) -> bool:
        """Changes the walltime of a waiting or running job; False if there is no such job."""

    def set_in_service(self, node: int, in_service: bool) -> None:
        """Takes a node out of service or puts it back."""

    def set_links_in_service(self, links: Sequence[int], in_service: bool) -> list[int]:
        """Takes cables out of service, or puts them back: no job is placed on one that is out.

        A job that uses one stays until its end. A node that no cable in service leads to is out of service too, and no job
        lies inside and outside of a group that none leaves. Answers the running jobs, ascending, that may use one that
        has just gone out: see `users_of`. Raises InputError for what is no cable of a tree.
        """

    def users_of(self, links: Sequence[int]) -> list[int]:
        """The running jobs, ascending, that own one of these cables or, owning none, may use one.

        Raises InputError for what is no cable of a tree.
        """

    @property
    def links_out(self) -> list[int]:
        """The cables out of service, ascending."""

    def start(self, now: float) -> list[Decision]:
        """What starts at `now`, in order."""

    def next_begin(self, now: float) -> float | None:
        """When something may start though nothing happens: the next begin time after `now`."""

    @property
    def waiting(self) -> list[int]:
        """The identities of the waiting requests, in order of the queue."""

    @property
    def running(self) -> list[tuple[Decision, float, float]]:
        """What each running job was given, its start and its expected end; by expected end."""

    @property
    def lent(self) -> list[tuple[int, list[int], float]]:
        """(id, links lent since the last pass, share of full bandwidth with them) of the running jobs that have less
        than all of it on links of their own."""

    @property
    def reservation(self) -> tuple[int, float] | None:
        """(id, latest start) promised to the head of the queue in the last pass."""

    @property
    def head_wait(self) -> tuple[int, float | None] | None:
        """(id, time by which the rule for heads has to place it) of the head in the last pass, under a policy with such a rule.

        The time is None if the head goes by the policy itself.
        """

    def set_head_wait(self, id: int, until: float | None) -> None:
        """Takes over what another scheduler has decided about the wait of its head: see `head_wait`."""

    def rank_k(
        self,
        routing: Routing,
        profile: Profile,
        *,
        cores: str = "auto",
        model: str = "full",
        jobs: Sequence[tuple[Sequence[int], Traffic]] = ...,
        id: int = 0,
        eligible: Sequence[int] | None = None,
        empty: bool = False,
        traffic: tuple[Traffic, float] | None = None,
        walltime: float = ...,
        now: float | None = None,
    ) -> list[Rank]:
        """Predicts a program's run time for every k in the state as it is: see `rank_k`.

        `empty`: on the machine without other jobs than `jobs`. `traffic`: as `submit` takes it; a policy that looks
        at traffic then counts what other jobs lose, for `walltime` seconds at most [default: without a limit] from `now` on
        [default: the time of the last pass].
        """

    def explain(self, id: int) -> Refusal | None:
        """Why a waiting request is not placed at this moment, and what is in its way.

        None where the policy would place it, so that only the queue's order holds it back. Raises
        KeyError if it does not wait.
        """

@final
class State:
    """Who holds what on a machine, to place requests on."""

    def __new__(cls, machine: Machine) -> State: ...
    def hold(
        self,
        nodes: Sequence[int],
        share: MappingType[str, float] | tuple[int, int] | None = None,
        links: Sequence[int] = ...,
        bandwidth_share: float = 1.0,
        *,
        link_use: str = "shared",
        id: int | None = None,
    ) -> None:
        """Lets a job hold nodes, once per slot, and links; `share` is what each slot takes, or None. Less than 1 of `gpu` is a part of
        one GPU.

        A refusal names the jobs that have an identity.

        links: cables between switches that it owns, with that share of full bandwidth. link_use: `shared`; or
        `isolated` or `isolated-global`, if the policy of that name promised links to it.
        """

    def overlay(
        self,
        nodes: Sequence[int],
        owned: bool = False,
        beyond: bool = False,
        *,
        links: Sequence[int] = ...,
        bandwidth_share: float = 1.0,
        id: int | None = None,
    ) -> None:
        """Lays a group over the machine, once per member, whose slots another system keeps count of.

        It only crosses links, which no other job may use if `owned`; those of all groups that it is in if some of
        its members run `beyond` the machine. links, bandwidth_share, id: as in `hold`.
        """

    def release(self, id: int) -> bool:
        """Ends the job of that identity that `hold` let hold nodes. Returns False if there is none."""

    def take_out(self, nodes: Sequence[int]) -> None:
        """Takes nodes out of service."""

    def put_back(self, nodes: Sequence[int]) -> None:
        """Takes nodes back into service."""

    def room(
        self,
        sizes: Sequence[int] | None = None,
        segment: int | None = None,
        smallest: MappingType[str, float] | None = None,
    ) -> dict[str, Any]:
        """How many more jobs of each size fit at each level, and which GPUs no job can use.

        sizes: GPUs, or nodes on a machine without GPUs; by default powers of two. segment: nodes of each part of a job that must
        lie in one domain. smallest: the least that a job takes of a node. docs/reference/outputs.md names the members.
        """

    def room_by_domain(
        self, segment: int | None = None, smallest: MappingType[str, float] | None = None
    ) -> list[dict[str, Any]]:
        """The room in every domain, or on every leaf of a machine without domains."""

    def place(
        self,
        policy: str | Policy,
        nodes: int,
        *,
        id: int = 0,
        share: MappingType[str, float] | tuple[int, int] | None = None,
        stacked: bool = False,
        members: Sequence[int] = ...,
        eligible: Sequence[int] | None = None,
        slots: Sequence[int] | None = None,
        room: Sequence[int] | None = None,
        segment: int | None = None,
        within: str | None = None,
        min_bandwidth: float | None = None,
        seed: int = 0,
    ) -> Decision | Refusal:
        """Asks a policy for nodes; the state stays as it is.

        `slots`: the free slots of every node where another system keeps count of them; `room`: those it would have if nothing
        ran there. `min_bandwidth`: the least share of full bandwidth that it accepts on links of its own. `segment`: nodes of each part of
        the request that must lie in one domain.
        `within`: where the request is to lie, for policies that ask (`unconstrained`, `preferred:LEVEL`, `required:LEVEL`).
        """

    def costs(
        self,
        policy: str | Policy,
        nodes: int,
        *,
        members: Sequence[int] = ...,
        slots: Sequence[int] | None = None,
        stacked: bool = False,
        beyond: int = 0,
        seed: int = 0,
    ) -> NDArray[float64] | Refusal:
        """Of every node what it costs to give it the next slot of a request and go on well.

        For a system that asks for one slot after another: the least is what the policy would do,
        infinite what it would never do. `beyond`: members that run where the machine does not reach.
        """

    def moves(
        self,
        members: Sequence[int],
        slots: Sequence[int],
        *,
        fixed: Sequence[int] = ...,
        price: int = 1,
        stacked: bool = False,
        isolates: bool = False,
    ) -> list[tuple[int, int, int, float, float]]:
        """The moves of a running group's members that lower its hops by `price` or more each, in order.

        Of each: (place in the list of members, node it leaves, node it goes to, the group's sum of
        hops over pairs before, after). After no move is the group worse off than at the start.
        `slots`: the free slots of every node now; `fixed`: nodes of members that must stay.
        """

@final
class RoomPlan:
    """Jobs that must go or move so that a policy places a request, and where it goes then. Immutable."""

    @property
    def requeued(self) -> list[int]:
        """The jobs to be requeued, by ascending identity; none where there was room."""

    @property
    def moved(self) -> list[Decision]:
        """Where jobs move, by ascending identity. Their old places may be among the new ones of others."""

    @property
    def cost(self) -> float:
        """What that costs, node-seconds."""

    @property
    def least(self) -> float:
        """No plan costs less. The plan is the cheapest if this is its cost."""

    @property
    def decision(self) -> Decision:
        """Where the request goes then."""

    @property
    def questions(self) -> int:
        """How often the policy was asked."""

@final
class NoRoom:
    """That no plan makes room, or that none was found. Immutable."""

    @property
    def impossible(self) -> bool:
        """Whether there is none; otherwise none was found within the limit of questions."""

    @property
    def reason(self) -> str:
        """The reason in a sentence."""

def make_room(
    state: State,
    policy: str | Policy,
    nodes: int,
    running: Sequence[tuple[int, Sequence[int], Sequence[int], float | None, int | None]],
    *,
    movable: Sequence[int] = ...,
    stacked: bool = False,
    budgets: Sequence[int] = ...,
    questions: int | None = None,
    segment: int | None = None,
    within: str | None = None,
    eligible: Sequence[int] | None = None,
    min_bandwidth: float | None = None,
    ranks: MappingType[int, int] = ...,
    uses: MappingType[int, int] = ...,
    counted: tuple[
        Sequence[int], Sequence[int], Sequence[int], MappingType[int, tuple[Sequence[int], Sequence[int]]]
    ]
    | None = None,
    isolated: set[int] | None = None,
    id: int = 0,
    seed: int = 0,
) -> RoomPlan | NoRoom:
    """The cheapest jobs to be requeued or moved so that the policy places a request for the given number of whole nodes.

    running: (identity, nodes, cables between switches that it owns, cost in node-seconds or None if it may not be disturbed,
    its group or None) of each job on whole nodes. The state, which stays as it is, has all others. movable: the identities
    of jobs that are moved instead of requeued; the policy places them after the request, those with most nodes first.
    stacked: whether jobs may share nodes; such a node is free once the last of them has left.
    budgets: how much of each group may be disturbed at most; uses: how much a job counts, 1 by default. ranks: jobs of a higher
    one than 0, by identity; they are disturbed only if those of lower ranks make no room. counted: for a caller that counts slots
    of nodes, several of which may be on one: what a slot takes of each kind of amount, what is free of each, node after node, the
    most slots of each node, and by identity the nodes where a job leaves amounts of each kind. isolated: the jobs whose links no
    other may use; by default all, if the policy isolates. questions: how often the policy is asked at most; by
    default the less often, the larger the machine is. eligible: the nodes that the request may use, all by default.
    min_bandwidth: the least share of full bandwidth that it accepts on links of its own, all of it by default.

    The plan is verified: the policy has placed the request, and the jobs that move, without the jobs of the plan. Raises
    InputError for nodes that are not on the machine or held twice, an identity that stands twice, a cost below 0, and a group
    without a budget.
    """

def retrace(
    workload: Workload,
    machine: Machine,
    policy: str | Policy,
    queue_config: tuple[str, str],
    starts: Sequence[tuple[int, float, Sequence[int], str | None]],
) -> list[tuple[float, str, list[tuple[int, str]], list[int]]]:
    """What the queue `slurm` would have started at each recorded start, in the recorded state just before it.

    queue_config: a file and its text. starts: place in the workload, seconds, nodes, and the scheduler that started it (`main`,
    `backfill` or None). Answers, for each question: the time, the scheduler, the recorded starts each with `same`, `other nodes`,
    `not eligible`, `limit`, `no nodes` or `behind others`, and other jobs that the queue would have started.
    """

def simulate(
    workload: Workload,
    machine: Machine,
    settings: Settings,
    *,
    out_of_service: Sequence[Failure] = ...,
    progress: Callable[[float], object] | None = None,
) -> Outcome:
    """Runs a workload on a machine.

    settings: with what files say in place of their names, as `topolane.simulate` makes them; it also draws failures and infers.
    out_of_service: nodes that take no new jobs for a time; the jobs on them go on.
    progress: called now and then with the share of jobs that have ended.
    """

def built() -> tuple[str | None, str | None]:
    """The commit and the Cargo profile that this engine was compiled from; None where the build did not say."""

def policies() -> list[tuple[str, str]]:
    """(name, summary) of every policy built in."""

def check_live(machine: Machine, policy: str | Policy) -> None:
    """Raises InputError if a live system cannot keep what a policy promises on the machine: it does not work on its wiring, or no
    routes can be written that keep jobs on the cables that it gives them."""

def isolating_policies() -> list[str]:
    """The names of the policies built in that promise isolation."""

def linking_policies() -> list[tuple[str, bool]]:
    """The names of the policies built in that give jobs dedicated links, and whether each heeds a request's minimum bandwidth
    share."""

def traffic_policies() -> list[str]:
    """The names of the policies built in that look at what jobs send."""

def assumed_traffic() -> tuple[str, float]:
    """The pattern by which a job is taken to send if its traffic is not known, and the part of its time for which it does so, 0
    to 1."""

def queues() -> list[tuple[str, str]]:
    """(name, summary) of every queue discipline."""

def machine_formats() -> list[tuple[str, str, bool]]:
    """(name, title, whether it knows cables) of every format that machines are read from."""

def machine_writers() -> list[str]:
    """The formats that machines are written in."""

def presets() -> list[tuple[str, str]]:
    """(name, summary) of every machine known by name."""

def workload_presets() -> list[tuple[str, str]]:
    """(name, summary) of every synthetic workload."""

@final
class GangLimits:
    """How long slices may be. Times in seconds. Immutable."""

    slice: float | None
    """The length a user chose; None to choose by what is measured."""
    shortest: float
    longest: float
    delay: float
    """How long a gang may wait between two of its slices."""
    switch: float
    """What a switch costs, until it is measured."""
    overhead: float
    """The share of a slice that a switch may cost."""

    def __new__(
        cls,
        *,
        slice: float | None = None,
        shortest: float | None = None,
        longest: float | None = None,
        delay: float | None = None,
        switch: float | None = None,
        overhead: float | None = None,
    ) -> Self: ...

@final
class GangHeld:
    """A job, as it is. Times in seconds, of all its threads together."""

    id: int
    name: str
    threads: int
    weight: float
    state: str
    """running, filling, stopped, released, ended or lost"""
    reason: str | None
    """Why it is lost."""
    given: float
    """Threads times seconds of the slices that were measured, in which it was a first job."""
    ran: float
    """Of those, on a core."""
    ready: float
    """Of those, ready without a core."""
    blocked: float
    """Of those, neither."""
    cpu: float
    """On a core, all in all."""
    barrier: float | None
    """From one barrier to the next, where that is counted."""
    cores: list[int]
    """CPU numbers."""
    stopping: str | None
    """How it is stopped: freeze, freezer, signals or pause."""

@final
class GangRound:
    """The slices now. Immutable."""

    slices: list[tuple[float, list[int], list[int]]]
    """(seconds, first jobs, fillers) of every slice."""
    cores: dict[int, list[int]]
    """CPU numbers of every job."""
    gangs: list[int]
    """Jobs whose threads are kept together."""
    now: tuple[list[int], list[int]]
    """(first jobs, fillers) that run now."""

@final
class GangSwitch:
    """A switch. Times in seconds of CLOCK_MONOTONIC. Immutable."""

    deadline: float
    """When it was due."""
    began: float
    ended: float
    """When the kernel had all orders."""
    seconds: float
    """How long the slice is."""
    slice: int
    """Its place in the round."""
    first: list[int]
    fillers: list[int]

@final
class GangMeans:
    """What the agent works with. Immutable."""

    stopping: str
    """freeze, freezer, signals or pause"""
    pinning: str
    """cpuset, affinity or pool"""
    ranking: str
    """group, threads or nothing"""
    stops_threads: bool
    """Whether single threads can be moved into groups of the agent's own and stopped there."""
    real_time: bool
    missing: list[str]
    """What is missing and what is done instead: a sentence each."""
    groups: list[Path]
    """Its own control groups; those of jobs are below."""

@final
class GangAgent:
    """Runs gangs of real processes. The methods raise InputError for what cannot be done."""

    def __new__(
        cls,
        policy: str,
        cores: Sequence[int],
        limits: GangLimits,
        *,
        switch_by: str | None = None,
        xen: str | None = None,
        alive: Path | None = None,
    ) -> Self:
        """xen: the file name of libxenctrl, if the jobs are domains."""

    def add(
        self,
        name: str,
        *,
        processes: Sequence[int] | None = None,
        tids: Sequence[int] | None = None,
        groups: Sequence[tuple[Path, bool]] | None = None,
        domain: tuple[int, bytes] | None = None,
        threads: int = 1,
        weight: float = 1.0,
    ) -> int:
        """Takes processes, with all that descend from them, single threads, all that is in control groups (their
        directories, and whether each was made for the agent), or a domain of Xen (its number and UUID). Returns the
        job's number.
        """

    def met(self, id: int, interval: float, skew: float) -> None:
        """Takes note of how a job's threads meet: seconds from one barrier to the next, and between the first
        thread's arrival and the last's.
        """

    def release(self, id: int) -> None:
        """Lets a job run outside all slices from now on."""

    def signal(self, id: int, number: int) -> None:
        """Sends a signal to all processes of a job."""

    def forget(self, id: int) -> None:
        """Lets a job run, removes its groups and forgets it."""

    def jobs(self) -> list[GangHeld]:
        """All jobs that were not forgotten."""

    def round(self) -> GangRound:
        """The slices now."""

    def switches(self, most: int = 4096) -> list[GangSwitch]:
        """The last switches, the latest at the end."""

    def means(self) -> GangMeans:
        """What it works with."""

    def close(self) -> None:
        """Ends: all jobs run from now on as if it had never been."""

@final
class GangJob:
    """A job for `simulate_gangs`. Immutable.

    kind: "independent": every thread computes `iteration` over and over; "barrier": all compute `interval`,
    give or take a share `imbalance` of it, then meet, with the core kept busy if `spin`, else blocked; "coevp":
    thread 0 computes `coarse`, then all do `tasks` tasks from one queue, log-normal with mean `fine` and sigma
    `spread`, then all are blocked for `wait`. These are the kinds and the random numbers of the program `work`
    of the gang paper. The job ends after `iterations` iterations, or with the first that ends `seconds` after it
    first ran; one of both is given. weight: its share of the time; arrival: when it comes; delays: when
    each thread begins after that.
    """

    def __new__(
        cls,
        kind: str,
        threads: int,
        *,
        iterations: int | None = None,
        seconds: float | None = None,
        iteration: float = 0.1,
        interval: float = 1e-3,
        spin: bool = False,
        imbalance: float = 0.0,
        coarse: float = 0.01,
        tasks: int = 16,
        fine: float = 0.01,
        spread: float = 0.0,
        wait: float = 0.0,
        weight: float = 1.0,
        arrival: float = 0.0,
        delays: Sequence[float] = ...,
        seed: int = 0,
    ) -> GangJob: ...

@final
class GangJobOutcome:
    """What became of a simulated job."""

    @property
    def finished(self) -> float | None:
        """When its last thread ended; None where it had not."""

    @property
    def ends(self) -> list[NDArray[float64]]:
        """When each thread ended each of its iterations."""

    @property
    def iterations(self) -> int:
        """Iterations of the thread that ended fewest."""

    @property
    def ran(self) -> float:
        """Thread-seconds on a core, costs of switching included."""

    @property
    def ready(self) -> float:
        """Thread-seconds ready for a core while the job was let run."""

    @property
    def blocked(self) -> float:
        """Thread-seconds waiting for something other than a core."""

    @property
    def stopped(self) -> float:
        """Thread-seconds that it could have run but was not let."""

@final
class GangOutcome:
    """What became of simulated jobs."""

    @property
    def jobs(self) -> list[GangJobOutcome]:
        """In the order given."""

    @property
    def seconds(self) -> float:
        """Seconds simulated: less than asked for where all jobs ended before."""

    @property
    def switches(self) -> int:
        """Switches from one slice to another that changed who may run."""

    @property
    def timeline(self) -> list[tuple[float, float, int, int, int]]:
        """(start, end, core, job, thread) of every time on a core, by its end; empty unless asked for."""

    @property
    def slices(self) -> list[tuple[float, list[int], list[int]]]:
        """(start, first jobs, fillers) of every slice that ran; empty unless asked for."""

def gang_policies() -> list[tuple[str, str]]:
    """(name, summary) of every gang policy."""

def simulate_gangs(
    jobs: Sequence[GangJob],
    cores: int,
    policy: str,
    seconds: float,
    *,
    slice: float | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    delay: float | None = None,
    overhead: float | None = None,
    context_switch: float | None = None,
    slice_switch: float | None = None,
    wake_up: float | None = None,
    background: float = 0.0,
    seed: int = 0,
    timeline: bool = False,
) -> GangOutcome:
    """Jobs on simulated cores, 1 to 256, under Xen's credit scheduler and a gang policy.

    slice to overhead: the limits of slices, as in docs/explanation/gang.md; context_switch, slice_switch: seconds of
    a core that changes threads, within a slice and at its start; wake_up: seconds until a blocked thread is ready;
    background: share of every core that the host's own work takes; seed: for the clocks of the cores and that work.
    Raises InputError for a value that makes no sense.
    """
