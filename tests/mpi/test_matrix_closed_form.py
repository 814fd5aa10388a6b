"""What programs send is known beforehand, and the library must find just that: to the message, with either MPI."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from mpis import Mpi
from topolane.mpi.matrix import KINDS, Recorded

Sent = dict[tuple[int, int], tuple[int, int, int]]
"""(sender, receiver): messages, bytes, turns."""
RANKS = 4


def sent(recorded: Recorded | None, kind: str = "point_to_point") -> Sent:
    """What is in a matrix, of one kind."""
    assert recorded is not None
    place = KINDS.index(kind)
    return {
        (int(sender), int(receiver)): (int(counts[place][0]), int(counts[place][1]), int(counts[place][2]))
        for sender, receiver, counts in zip(recorded.sender, recorded.receiver, recorded.counts)
        if counts[place].any()
    }


def found(mpi: Mpi, kernels: Path, name: str, rounds: int, ranks: int = RANKS) -> Recorded:
    """A kernel's matrix; the library must not have been in its way."""
    code, recorded = mpi.watched(kernels, name, rounds, ranks=ranks)
    assert code == 0
    assert recorded is not None
    assert recorded.about.unfinished == []
    return recorded


def only(recorded: Recorded, kind: str, expected: Sent) -> None:
    """The matrix holds this kind and no other."""
    assert sent(recorded, kind) == expected
    assert all(sent(recorded, other) == {} for other in KINDS if other != kind)


def ring(rounds: int, size: int = 4) -> Sent:
    return {(rank, (rank + 1) % RANKS): (rounds, size * rounds, 0) for rank in range(RANKS)}


def test_ring(mpi: Mpi, kernels: Path) -> None:
    """Each rank sends N messages of 4 bytes to the next, and receives from no rank that it sent to: no turns."""
    only(found(mpi, kernels, "ring", 40), "point_to_point", ring(40))


def test_pingpong(mpi: Mpi, kernels: Path) -> None:
    """Who serves waits for N answers; who answers has had N - 1 when it hears again: these are the turns."""
    only(
        found(mpi, kernels, "pingpong", 30), "point_to_point", {(0, 1): (30, 240, 30), (1, 0): (30, 240, 29)}
    )


def test_turns_across_kinds(mpi: Mpi, kernels: Path) -> None:
    """A turn is of the kind that is received: rank 0 asks by N messages and gets N answers by broadcasts.

    Rank 1 is asked again after each of its broadcasts but the last.
    """
    recorded = found(mpi, kernels, "answered_by_all", 30, ranks=2)
    assert sent(recorded) == {(0, 1): (30, 120, 0), (1, 0): (0, 0, 29)}
    assert sent(recorded, "modelled") == {(1, 0): (30, 120, 0), (0, 1): (0, 0, 30)}


def test_halo(mpi: Mpi, kernels: Path) -> None:
    """On a line, 10 x 3 doubles go to each neighbour: bytes of data, not of the gaps; none to MPI_PROC_NULL.

    Upwards first: so the lower of a pair sends up and hears from above, N turns; the upper sends down after it
    has heard from below, and hears again in the next round, N - 1 turns.
    """
    rounds, size = 10, 10 * 3 * 8
    expected = {(rank, rank + 1): (rounds, rounds * size, rounds) for rank in range(RANKS - 1)}
    expected |= {(rank + 1, rank): (rounds, rounds * size, rounds - 1) for rank in range(RANKS - 1)}
    only(found(mpi, kernels, "halo", rounds), "point_to_point", expected)


def test_conjugate_gradient(mpi: Mpi, kernels: Path) -> None:
    """1000 bytes across and 8 to each partner of the sums; all of it is exchanged, so every message is a turn."""
    rounds, expected = 10, Counter[tuple[int, int]]()
    messages = Counter[tuple[int, int]]()
    for rank in range(RANKS):
        for peer, size in ((RANKS - 1 - rank, 1000), (rank ^ 1, 8), (rank ^ 2, 8)):
            expected[rank, peer] += rounds * size
            messages[rank, peer] += rounds
    recorded = found(mpi, kernels, "conjugate_gradient", rounds)
    only(
        recorded,
        "point_to_point",
        {pair: (messages[pair], expected[pair], messages[pair]) for pair in messages},
    )


def test_wavefront(mpi: Mpi, kernels: Path) -> None:
    """40 bytes a plane, one way only: a pipeline has no turns, from any source or a known one."""
    rounds = 30
    expected = {(rank, rank + 1): (rounds, 40 * rounds, 0) for rank in range(RANKS - 1)}
    only(found(mpi, kernels, "wavefront", rounds), "point_to_point", expected)


def test_to_itself_and_to_no_rank(mpi: Mpi, kernels: Path) -> None:
    """What a rank sends to itself is a message; what it sends to MPI_PROC_NULL is none."""
    expected = {(rank, rank): (10, 40, 10) for rank in range(RANKS)}
    only(found(mpi, kernels, "self", 10), "point_to_point", expected)


def test_every_way_to_send(mpi: Mpi, kernels: Path) -> None:
    """Eight ways, standard to ready and nonblocking, count alike."""
    recorded = found(mpi, kernels, "modes", 5)
    assert sent(recorded) == {(0, 1): (40, 160, 0), (2, 3): (40, 160, 0)}
    calls = recorded.about.calls
    ways = ("Send", "Ssend", "Bsend", "Rsend", "Isend", "Issend", "Ibsend", "Irsend")
    assert all(calls[f"MPI_{way}"][:2] == (10, 40) for way in ways)


@pytest.mark.parametrize("name", ["completion", "any_source"])
def test_every_way_to_complete(mpi: Mpi, kernels: Path, name: str) -> None:
    """Waits and tests of one, all, any and some, from known sources and any: each answer is a turn, once."""
    times = 8 * 3
    expected = {(0, peer): (times, 4 * times, times) for peer in range(1, RANKS)}
    expected |= {(peer, 0): (times, 4 * times, times - 1) for peer in range(1, RANKS)}
    only(found(mpi, kernels, name, 3), "point_to_point", expected)


def test_many_under_way(mpi: Mpi, kernels: Path) -> None:
    """5,000 receives are under way at once, half from any source: more than one table of requests holds.

    Rank 0 sends all of its messages before it waits for any: that is one turn.
    """
    times = 5_000
    expected = {(0, 1): (times, 4 * times, 1), (1, 0): (times, 4 * times, 0)}
    assert sent(found(mpi, kernels, "many", times, ranks=2)) == expected


def test_probes(mpi: Mpi, kernels: Path) -> None:
    """A message that was probed for is received once, from whom it came: Probe, Iprobe, Mprobe, Improbe."""
    times = 4 * 5
    expected = {(0, 1): (times, 8 * times, times), (1, 0): (times, 8 * times, times - 1)}
    only(found(mpi, kernels, "probes", 5), "point_to_point", expected)


def test_cancelled_receives(mpi: Mpi, kernels: Path) -> None:
    """A receive that was cancelled has received nothing: without turns, twice the ring is left."""
    only(found(mpi, kernels, "cancelled", 10), "point_to_point", ring(20))


def test_persistent(mpi: Mpi, kernels: Path) -> None:
    """A persistent request counts each time it is started, and waiting for one that is not counts nothing.

    Both ranks send before they hear in every round: N turns each.
    """
    expected = {(0, 1): (10, 40, 10), (1, 0): (10, 40, 10)}
    only(found(mpi, kernels, "persistent", 10), "point_to_point", expected)


def test_split_and_duplicated(mpi: Mpi, kernels: Path) -> None:
    """Ranks are those of MPI_COMM_WORLD, whatever they are in a communicator."""
    rounds, messages, turns = 10, Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for rank in range(RANKS):
        messages[rank, rank ^ 2] += 2 * rounds  # its half has one other, in two communicators, each way
        turns[rank, rank ^ 2] += 2 * rounds
        messages[rank, (rank - 1) % RANKS] += rounds  # upside down, the next is the one before
    expected = {pair: (messages[pair], 4 * messages[pair], turns[pair]) for pair in messages}
    only(found(mpi, kernels, "split", rounds), "point_to_point", expected)


def test_communicators_come_and_go(mpi: Mpi, kernels: Path) -> None:
    """A handle that is used again is another communicator: half the rounds go up the ranks, half down.

    Up and down alternate: who was sent to last time is heard from now, but for the first round.
    """
    rounds = 40
    recorded = sent(found(mpi, kernels, "churn", rounds))
    assert {pair: counts[:2] for pair, counts in recorded.items()} == {
        (rank, (rank + step) % RANKS): (rounds // 2, 2 * rounds) for rank in range(RANKS) for step in (1, -1)
    }
    turns = [counts[2] for (rank, peer), counts in recorded.items() if (peer - rank) % RANKS == 1]
    assert turns == [rounds // 2] * RANKS


def test_intercommunicator(mpi: Mpi, kernels: Path) -> None:
    """Between two groups a rank names one of the other's: each speaks to its like."""
    pairs = sent(found(mpi, kernels, "between", 10))
    # MPI_Intercomm_create may send messages of its own through MPI's inside, which are not seen.
    assert pairs == {(rank, (rank + 2) % RANKS): (10, 40, 10) for rank in range(RANKS)}


def test_one_sided(mpi: Mpi, kernels: Path) -> None:
    """In turned ranks: a put, an accumulate and a swap of 8 bytes go to the rank before, and 16 + 8 + 8 come from it.

    What is fetched is sent by the one that it is fetched from, and each fetch is a turn of who asks.
    """
    rounds = 10
    expected = {(rank, (rank - 1) % RANKS): (3 * rounds, 24 * rounds, 0) for rank in range(RANKS)}
    expected |= {((rank - 1) % RANKS, rank): (3 * rounds, 32 * rounds, 3 * rounds) for rank in range(RANKS)}
    only(found(mpi, kernels, "one_sided", rounds), "one_sided", expected)


def test_threads(mpi: Mpi, kernels: Path) -> None:
    """Four threads of two ranks send and receive at once (MPI_THREAD_MULTIPLE): no message is lost.

    Turns depend on how the threads' messages fall in with each other: there are at most as many turns as messages.
    """
    times = 4 * 200
    pairs = sent(found(mpi, kernels, "threads", 200, ranks=2))
    assert {pair: counts[:2] for pair, counts in pairs.items()} == {
        (0, 1): (times, 8 * times),
        (1, 0): (times, 8 * times),
    }
    assert all(0 < turns <= times for _, _, turns in pairs.values())


def test_spawned_processes(mpi: Mpi, kernels: Path) -> None:
    """Processes that are spawned later are outside MPI_COMM_WORLD: what goes to them, and what they do, is not counted."""
    if mpi.plain(kernels, "spawn", 1).returncode:
        pytest.skip(f"{mpi.name} here cannot spawn processes, with or without the library")
    only(found(mpi, kernels, "spawn", 5), "point_to_point", ring(5))


def test_counts_of_mpi_4(mpi: Mpi, kernels: Path) -> None:
    """Calls with counts of MPI_Count are those without."""
    recorded = found(mpi, kernels, "large_counts", 5)
    if not recorded.about.calls:
        pytest.skip(f"{mpi.name} here has no calls with counts of MPI_Count")
    assert sent(recorded) == ring(5)
    assert recorded.about.calls["MPI_Bcast"][:2] == (20, 80)


def test_neighbours(mpi: Mpi, kernels: Path) -> None:
    """On a line 8 bytes go to each neighbour; on the graph 4 to rank 0, itself included."""
    rounds, expected = 5, Counter[tuple[int, int]]()
    for rank in range(RANKS):
        for peer in {rank - 1, rank + 1} & set(range(RANKS)):
            expected[rank, peer] += 8 * rounds
        expected[rank, 0] += 4 * rounds
    recorded = sent(found(mpi, kernels, "neighbours", rounds), "modelled")
    assert {pair: size for pair, (_, size, _) in recorded.items()} == dict(expected)


def model(ranks: int) -> dict[str, dict[tuple[int, int], tuple[int, int]]]:
    """What each collective of kernels/collectives.c sends, from the books: 4 bytes a rank, of root 1."""
    absolute = [(rank + 1) % ranks for rank in range(ranks)]  # of a rank relative to the root
    parent = {child: child & (child - 1) for child in range(1, ranks)}
    subtree = {child: min(child & -child, ranks - child) for child in parent}
    up = {(absolute[child], absolute[parent[child]]): child for child in parent}
    distances = [1 << step for step in range(math.ceil(math.log2(ranks)))]
    shifted = {(rank, (rank + distance) % ranks): 4 for distance in distances for rank in range(ranks)}
    partners = {(rank, rank ^ bit) for bit in distances for rank in range(ranks) if rank ^ bit < ranks}
    power = 1 << (ranks.bit_length() - 1)
    extra = ranks - power
    kept = [2 * index if index < extra else index + extra for index in range(power)]
    doubling = {(kept[at], kept[at ^ bit]) for bit in distances for at in range(power) if at ^ bit < power}
    folded = {(2 * index + one, 2 * index + 1 - one) for index in range(extra) for one in (0, 1)}
    collected = {pair: 4 * subtree[child] for pair, child in up.items()}
    if ranks & (ranks - 1) == 0:  # recursive doubling: what has come together doubles
        gathered = {(rank, rank ^ bit): 4 * bit for bit in distances for rank in range(ranks)}
    else:
        gathered = {
            (rank, (rank - distance) % ranks): 4 * min(distance, ranks - distance)
            for distance in distances
            for rank in range(ranks)
        }
    sizes: dict[str, dict[tuple[int, int], int]] = {
        "Barrier": {pair: 0 for pair in shifted},
        "Bcast": {(to, sender): 4 for sender, to in up},
        "Reduce": {pair: 4 for pair in up},
        "Allreduce": {pair: 4 for pair in doubling | folded},
        "Gather": collected,
        "Scatter": {(to, sender): size for (sender, to), size in collected.items()},
        "Gatherv": {(rank, 1): 4 * rank for rank in range(2, ranks)},
        "Scatterv": {(1, rank): 4 * rank for rank in range(2, ranks)},
        "Allgather": gathered,
        "Alltoall": {(rank, peer): 4 for rank in range(ranks) for peer in range(ranks) if rank != peer},
        "Scan": {pair: 4 for pair in partners},
    }
    return {call: {pair: (1, size) for pair, size in pairs.items()} for call, pairs in sizes.items()}


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["blocking", "nonblocking"])
def test_collectives_are_modelled(mpi: Mpi, kernels: Path, name: str, ranks: int) -> None:
    """A collective is taken for the messages of its usual algorithm, for powers of two and other numbers of ranks."""
    rounds = 3
    messages, size = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for pairs in model(ranks).values():
        for pair, (count, length) in pairs.items():
            messages[pair] += rounds * count
            size[pair] += rounds * length
    recorded = found(mpi, kernels, name, rounds, ranks=ranks)
    assert {pair: counts[:2] for pair, counts in sent(recorded, "modelled").items()} == {
        pair: (messages[pair], size[pair]) for pair in messages
    }
    assert sent(recorded) == {}
    first = "MPI_Bcast" if name == "blocking" else "MPI_Ibcast"
    assert recorded.about.calls[first][1] == 4 * rounds * ranks


def test_persistent_collectives(mpi: Mpi, kernels: Path) -> None:
    """A persistent collective is one each time it is started."""
    rounds, expected = 5, Counter[tuple[int, int]]()
    recorded = found(mpi, kernels, "persistent_collectives", rounds)
    if not recorded.about.calls:
        pytest.skip(f"{mpi.name} here has no persistent collectives")
    for call in ("Allreduce", "Bcast"):
        for pair, (count, _) in model(RANKS)[call].items():
            expected[pair] += rounds * count
        assert recorded.about.calls[f"MPI_{call}"][:2] == (rounds * RANKS, 4 * rounds * RANKS)
    assert {pair: counts[0] for pair, counts in sent(recorded, "modelled").items()} == dict(expected)
