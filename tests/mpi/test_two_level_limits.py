"""Two levels where programs go to the limits: threads, many communicators, wrong calls, deep stacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpis import HERE, Mpi
from test_two_level import across, counted, settings

SITES = (0, 1, 0)


def compiled(mpi: Mpi, name: str, folder: Path) -> Path:
    return mpi.compile([HERE / "programs" / f"{name}.c"], folder / name)


def test_threads_do_collectives_at_once(mpi: Mpi, tmp_path: Path) -> None:
    """MPI_THREAD_MULTIPLE: two threads, each with communicators of its own that it makes, uses in two levels and
    frees, get right results and hold no other up.
    """
    program = compiled(mpi, "threads_collect", tmp_path)
    code, recorded = mpi.watched(program, ranks=len(SITES), environment=settings(SITES))
    if code == 3:
        pytest.skip(f"{mpi.name} has no MPI_THREAD_MULTIPLE")
    assert code == 0
    assert across(counted(recorded), SITES) > 0


def test_communicators_give_back_what_they_take(mpi: Mpi, tmp_path: Path) -> None:
    """MPICH has 2,048 context ids and two levels take two for a communicator: 1,100 in turn work only if both are
    given back, and 250 at once, where most must stay flat, leave enough for the program.
    """
    program = compiled(mpi, "many_communicators", tmp_path)
    code, recorded = mpi.watched(program, 1100, 250, ranks=2, environment=settings((0, 1)))
    assert code == 0
    # An allreduce in two levels is one message each way; 100 communicators at once may have them.
    assert counted(recorded) == {(0, 1): 1200, (1, 0): 1200}


def test_wrong_calls_are_mpis_to_report(mpi: Mpi, tmp_path: Path) -> None:
    """Counts, types, roots and operations that are none: the class of error is the one MPI itself gives, and the
    communicator's own error handler hears of it as often.
    """
    if mpi.name == "mpich":
        pytest.skip("Debian's MPICH is built without checks of arguments, and crashes by itself")
    code, _ = mpi.watched(compiled(mpi, "same_errors", tmp_path), ranks=3, environment=settings((0, 1, 0)))
    assert code == 0


@pytest.mark.parametrize("count", [400, 2448], ids=["eager", "rendezvous"])
def test_what_an_error_leaves_is_written_nowhere(mpi: Mpi, tmp_path: Path, count: int) -> None:
    """A reduction fails at its root while another rank's part has still to come: when it comes, the memory that the root
    took meanwhile stays as it is, the rank that sends it ends its call, and the next reduction is right. The part is of
    3,200 bytes, which every MPI sends at once, or begins with pieces of 8 KiB, for which Open MPI asks on one host. (The
    last one, which is too long, it sends at once: Open MPI 4.1.4 writes behind the buffer of one that it asks for.)
    """
    program = compiled(mpi, "after_an_error", tmp_path)
    code, recorded = mpi.watched(program, count, ranks=3, environment=settings((0, 1, 2)))
    assert code == 0
    assert counted(recorded)


def test_an_error_in_a_segment_ends_for_the_whole_site(mpi: Mpi, tmp_path: Path) -> None:
    """An allreduce in segments fails at a representative: all ranks of its site end the call, and the next is right."""
    program = compiled(mpi, "error_in_a_segment", tmp_path)
    code, recorded = mpi.watched(program, ranks=4, environment=settings((0, 0, 1, 1)))
    assert code == 0
    assert counted(recorded)


def test_operations_have_as_much_stack_as_the_program(mpi: Mpi, tmp_path: Path) -> None:
    """A program that asked for a stack of 64 MiB may use 40 MiB of it in an operation, in two levels, too."""
    program = compiled(mpi, "deep_operation", tmp_path)
    code, recorded = mpi.watched(program, ranks=len(SITES), environment=settings(SITES))
    if code == 3:
        pytest.skip("the system gives no stack of 64 MiB")
    assert code == 0
    assert across(counted(recorded), SITES) > 0


@pytest.mark.parametrize("when", [0, 1, 2], ids=["before MPI_Init", "after MPI_Init", "both"])
def test_programs_may_use_the_tool_interface(mpi: Mpi, tmp_path: Path, when: int) -> None:
    """The library asks MPI's tool interface when two levels begin. A program that initialises it before MPI_Init, after
    it, or both, reads a variable as without the library. (MPICH 4.0.2 crashes if it is initialised again after its end.)
    """
    program = compiled(mpi, "tool_interface", tmp_path)
    assert mpi.plain(program, when, ranks=3).returncode == 0
    code, recorded = mpi.watched(program, when, ranks=len(SITES), environment=settings(SITES))
    assert code == 0
    assert across(counted(recorded), SITES) > 0


# MPI's levels below MPI_THREAD_MULTIPLE are 0 to 2 in both MPIs.
@pytest.mark.parametrize("wanted", range(3), ids=["single", "funneled", "serialized"])
def test_the_thread_level_is_the_one_that_was_given(mpi: Mpi, tmp_path: Path, wanted: int) -> None:
    """The library asks MPI's tool interface at a thread level of its own, and that must not become the process's: other
    libraries would call from several threads, for which Open MPI has set up no locks."""
    program = compiled(mpi, "thread_level", tmp_path)
    assert mpi.plain(program, wanted, ranks=3).returncode == 0
    code, recorded = mpi.watched(program, wanted, ranks=len(SITES), environment=settings(SITES))
    assert code == 0
    assert across(counted(recorded), SITES) > 0
