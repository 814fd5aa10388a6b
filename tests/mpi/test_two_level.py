"""Collectives in two levels give what MPI's own give, and cross between sites as seldom as they promise."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mpis import HERE, Mpi
from topolane.mpi import build
from topolane.mpi.matrix import KINDS, Recorded
from waiting import DEADLINE

COUNTED = KINDS.index("two_level")
SITES = (0, 1, 0, 1, 2, 0)
"""Of every rank: three sites, none of them a row of ranks, one of a single rank."""

ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
ROOTLESS = ("barrier", "allreduce", "allgather", "allgatherv", "alltoall")


def settings(sites: tuple[int, ...], mode: str = "always") -> dict[str, str]:
    return {"TOPOLANE_MPI_SITES": ",".join(map(str, sites)), "TOPOLANE_MPI_TWO_LEVEL": mode}


def counted(recorded: Recorded | None) -> dict[tuple[int, int], int]:
    """Messages of the library's own stage, by pair."""
    assert recorded is not None
    return {
        (int(sender), int(receiver)): int(counts[COUNTED][0])
        for sender, receiver, counts in zip(recorded.sender, recorded.receiver, recorded.counts)
        if counts[COUNTED].any()
    }


def across(messages: dict[tuple[int, int], int], sites: tuple[int, ...]) -> int:
    return sum(count for (a, b), count in messages.items() if sites[a] != sites[b])


@pytest.fixture(scope="session")
def same_results(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(f"same-{mpi.name}") / "same_results"
    return mpi.compile([HERE / "programs" / "same_results.c"], made)


@pytest.fixture(scope="session")
def one_collective(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(f"one-{mpi.name}") / "one_collective"
    return mpi.compile([HERE / "programs" / "one_collective.c"], made)


@pytest.mark.parametrize("sites", [(0, 0, 0, 1, 1), (1, 0, 2, 1, 0), (0, 1, 2, 3, 4)], ids=str)
def test_every_byte_is_as_mpi_leaves_it(
    mpi: Mpi, same_results: Path, sites: tuple[int, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Communicators, roots, types, operations, counts and places drawn at random: MPI_X, which is the library's, and
    PMPI_X, which is not, leave the same bytes in all buffers, and what is read is left alone. The library did it in
    two levels: it counted messages of its own.
    """
    code, recorded = mpi.watched(same_results, 60, sum(sites), ranks=5, environment=settings(sites))
    printed = capfd.readouterr()
    assert (code, printed.out.split(", ")[-1]) == (0, "wrong 0\n"), printed
    assert across(counted(recorded), sites) > 0


def test_data_at_absolute_addresses_arrive(
    mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A broadcast of a type of absolute addresses, at MPI_BOTTOM, arrives in two levels. (MPICH packs nothing there.)"""
    program = mpi.compile([HERE / "programs" / "absolute_addresses.c"], tmp_path / "absolute_addresses")
    code, recorded = mpi.watched(program, ranks=4, environment=settings((0, 0, 1, 1)))
    assert (code, capfd.readouterr().out) == (0, "wrong 0\n")
    assert across(counted(recorded), (0, 0, 1, 1)) > 0


def test_without_two_levels_nothing_is_the_librarys_own(mpi: Mpi, same_results: Path) -> None:
    """`never`, a single site, and `auto` where every site has one rank: collectives stay MPI's."""
    for sites, mode in (((0, 1, 0, 1), "never"), ((3, 3, 3, 3), "always"), ((0, 1, 2, 3), "auto")):
        code, recorded = mpi.watched(same_results, 20, ranks=4, environment=settings(sites, mode))
        assert code == 0
        assert counted(recorded) == {}


@pytest.mark.parametrize("name", [*ROOTED, *ROOTLESS])
def test_what_crosses_is_what_is_promised(mpi: Mpi, one_collective: Path, name: str) -> None:
    """With a root every other site hears, or is heard, once: sites - 1 messages a call. Without, every site hears
    every other once: sites * (sites - 1).
    """
    rounds, sites = 12, len(set(SITES))
    each = sites - 1 if name in ROOTED else sites * (sites - 1)
    code, recorded = mpi.watched(one_collective, name, rounds, ranks=len(SITES), environment=settings(SITES))
    assert code == 0
    assert across(counted(recorded), SITES) == rounds * each


@pytest.fixture(scope="session")
def large_collectives(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(f"large-{mpi.name}") / "large_collectives"
    return mpi.compile([HERE / "programs" / "large_collectives.c"], made)


def test_what_crosses_in_pieces_counts_once(mpi: Mpi, large_collectives: Path) -> None:
    """Of 300,000 bytes the results are right, whatever types the ranks describe them by, and each pair of sites counts
    as many messages as for a few bytes: two calls with a root and two without.
    """
    rounds, sites = 6, len(set(SITES))
    code, recorded = mpi.watched(large_collectives, rounds, ranks=len(SITES), environment=settings(SITES))
    assert code == 0
    assert across(counted(recorded), SITES) == rounds * 2 * (sites - 1) * (1 + sites)


def test_a_representative_waits_only_for_the_bytes_that_it_sends(mpi: Mpi, tmp_path: Path) -> None:
    """In an Allgather a representative whose own block comes first has it to send before the ranks of its site give theirs."""
    sources = [HERE / "programs" / "gathering.c", *sorted(build.SOURCES.rglob("*.c"))]
    more = ["-std=c11", "-D_GNU_SOURCE", "-fexceptions", f"-I{build.SOURCES}"]
    program = mpi.compile(sources, tmp_path / "gathering", more=more)
    done = mpi.plain(program, ranks=3)
    assert (done.returncode, done.stdout) == (0, "wrong 0\n" * 3), done


@pytest.mark.parametrize("sites", [(0, 0, 0, 0, 1, 1), (1, 0, 0, 0, 0, 0), SITES], ids=str)
def test_parts_of_any_size_are_gathered(mpi: Mpi, large_collectives: Path, sites: tuple[int, ...]) -> None:
    """Parts of no bytes up to several segments, on sites of one to five ranks, arrive whole and in their places."""
    code, recorded = mpi.watched(
        large_collectives, 4, "allgatherv", ranks=len(sites), environment=settings(sites)
    )
    assert code == 0
    assert across(counted(recorded), sites) > 0


def monitored(program: Path, first: object, second: object, folder: Path, environment: dict[str, str]) -> int:
    """Messages between sites that Open MPI's own monitoring sees, of everything: collectives, ours and its."""
    command = ["mpiexec.openmpi", "--mca", "pml_monitoring_enable", "2"]
    command += [
        "--mca",
        "pml_monitoring_enable_output",
        "3",
        "--mca",
        "pml_monitoring_filename",
        str(folder / "of"),
    ]
    library = build.library("mpicc.openmpi")
    for key, value in {**environment, "LD_PRELOAD": str(library)}.items():
        command += ["-x", f"{key}={value}"]
    command += ["-n", str(len(SITES)), str(program), str(first), str(second)]
    subprocess.run(command, check=True, timeout=DEADLINE)
    total = 0
    for file in folder.glob("of.*.prof"):
        for line in file.read_text().splitlines():
            fields = line.split()
            if fields and fields[0] in ("I", "E", "S") and SITES[int(fields[1])] != SITES[int(fields[2])]:
                total += int(fields[5])
        file.unlink()
    return total


@pytest.mark.parametrize("name", ["bcast", "reduce", "allreduce", "barrier", "gatherv", "alltoall"])
def test_open_mpi_sees_as_few_messages(mpi: Mpi, one_collective: Path, name: str, tmp_path: Path) -> None:
    """What Open MPI monitors beneath the library agrees: 60 calls more cost 60 times the promise between sites, and
    not a message more; flat most cost more.
    """
    if mpi.name != "openmpi":
        pytest.skip("monitoring of messages is Open MPI's")
    sites = len(set(SITES))
    each = sites - 1 if name in ROOTED else sites * (sites - 1)

    def more(mode: str) -> int:
        few, many = (
            monitored(one_collective, name, rounds, tmp_path, settings(SITES, mode)) for rounds in (12, 72)
        )
        return many - few

    assert more("always") == 60 * each
    if name != "barrier":  # flat it happens to cost as many, among six ranks
        assert more("never") > 60 * each


@pytest.mark.parametrize(("limit", "piece"), [(65536, 8192), (2112, 2048)])
def test_pieces_are_below_the_eager_limit(
    mpi: Mpi, large_collectives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, piece: int
) -> None:
    """A broadcast of 300,000 bytes crosses to each other site in pieces that Open MPI sends without asking: of 8 KiB, or
    as many bytes as the MPI says that it sends so over TCP, less its header.
    """
    if mpi.name != "openmpi":
        pytest.skip("monitoring of messages is Open MPI's")
    monkeypatch.setenv("OMPI_MCA_btl_tcp_eager_limit", str(limit))
    few, many = (
        monitored(large_collectives, str(rounds), "bcast", tmp_path, settings(SITES)) for rounds in (3, 5)
    )
    # As each segment begins a piece, its last one is short: 75,000 bytes each.
    assert many - few == 2 * (len(set(SITES)) - 1) * 4 * -(-75_000 // piece)
