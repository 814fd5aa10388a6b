"""A watched program finds on its stack what the calls leave there without the library (native/mpi/calls/on_own_stack.h)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mpis import AROUND, HERE, TOPOLANE, Mpi
from test_two_level import across, counted, settings
from topolane.mpi.build import SOURCES
from waiting import DEADLINE

XDLU = Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/xdlu")


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="wrappers have a stack of their own on x86-64 only"
)
def test_mpi_runs_as_deep_as_without_the_library(mpi: Mpi, tmp_path: Path) -> None:
    """MPI calls the program's operation at the same depth of the stack, and the results are right."""
    program = mpi.compile([HERE / "programs" / "depth.c"], tmp_path / "depth")
    plain = mpi.plain(program, ranks=2)
    assert plain.stdout.count("wrong 0") == 2 and "allreduce 0\n" not in plain.stdout
    out, _ = mpi.printed(program, ranks=2)
    assert sorted(out.splitlines()) == sorted(plain.stdout.splitlines())


@pytest.mark.parametrize("language", ["c", "c++"])
def test_an_error_handler_may_leave_mpi(
    mpi: Mpi, tmp_path: Path, language: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The program's error handler leaves a call by longjmp, or by an exception in C++. The rank goes on as the others do:
    all sums are right, and each is counted in two levels. MPI then runs as deep as without the library.
    """
    rounds, sites = 10, (0, 1, 0)
    compiler = {"c": "mpicc", "c++": "mpicxx"}[language]
    if shutil.which(f"{compiler}.{mpi.name}") is None:
        pytest.skip(f"{compiler}.{mpi.name} missing: on Debian, apt-get install g++ lib{mpi.name}-dev")
    source, made = HERE / "programs" / "left_by_longjmp.c", tmp_path / "left_by_longjmp"
    program = mpi.compile([source], made, compiler, language)
    plain = mpi.plain(program, rounds, ranks=3)
    assert plain.returncode == 0 and plain.stdout.count("scan ") == 2, plain
    code, recorded = mpi.watched(program, rounds, ranks=3, environment=settings(sites))
    printed = capfd.readouterr()
    assert (code, printed.out) == (0, plain.stdout), printed
    assert across(counted(recorded), sites) == 2 * rounds


def test_a_fiber_calls_mpi_within_a_call(mpi: Mpi, tmp_path: Path) -> None:
    """MPI switches to a user-level thread within a call, and that thread calls MPI on a stack of its own: its calls are part
    of the one that runs, which goes on where it was.
    """
    program = mpi.compile([HERE / "programs" / "fibers.c"], tmp_path / "fibers")
    plain = mpi.plain(program, ranks=1)
    assert plain.returncode == 0, plain
    code, _ = mpi.watched(program, ranks=1)
    assert code == 0


def test_frames_that_cannot_be_followed_are_looked_at_once(mpi: Mpi, tmp_path: Path) -> None:
    """Of 100 calls after one that was left by longjmp, in a program without unwind tables, one looks at the frames."""
    source, made = HERE / "programs" / "no_frames.c", tmp_path / "no_frames"
    flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-rdynamic"]
    program = mpi.compile([source], made, more=flags)
    out, _ = mpi.printed(program, 100, ranks=1)
    assert out == "looked 1\n"


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="wrappers have a stack of their own on x86-64 only"
)
@pytest.mark.parametrize("mode", ["never", "always"])
def test_only_two_levels_need_a_stack_as_large_as_the_threads(mpi: Mpi, tmp_path: Path, mode: str) -> None:
    """The program's stack may have 64 MiB: so has the library's if the program's operations may run on it, else 8 MiB."""
    program = mpi.compile([HERE / "programs" / "stack_bytes.c"], tmp_path / "stack_bytes")
    out, _ = mpi.printed(program, ranks=2, environment=settings((0, 1), mode))
    if not out:
        pytest.skip("the system gives no stack of 64 MiB")
    bytes_ = int(out.removeprefix("bytes "))
    assert bytes_ == 8 << 20 if mode == "never" else 63 << 20 < bytes_ <= 64 << 20


def test_threads_that_get_no_stack_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Threads that ask for a stack at once, where the system has no memory for one, share nothing that they write."""
    made, source = tmp_path / "no_room", HERE / "programs" / "no_room_for_stacks.c"
    flags = ["-D_GNU_SOURCE", "-O1", "-fsanitize=thread", f"-I{SOURCES}", "-pthread", "-o", str(made)]
    built = subprocess.run(["cc", *flags, str(source), str(SOURCES / "stack.c")], capture_output=True)
    if built.returncode:
        pytest.skip("cc has no -fsanitize=thread")
    done = subprocess.run([made], capture_output=True, text=True, timeout=DEADLINE)
    if done.returncode == 3:
        pytest.skip("the system does not limit memory")
    assert done.returncode == 0, done.stderr


def test_program_that_reads_what_it_never_wrote(tmp_path: Path) -> None:
    """ScaLAPACK 2.2.1 compares with an estimate that it never set, and its processes must decide alike (pdlacon.f).

    It works without the library, so it works with it; on a stack of another shape 8 of 10 runs fail.
    """
    if not XDLU.exists():
        pytest.skip(f"{XDLU} missing: on Debian, apt-get install scalapack-mpi-test")
    if shutil.which("mpicc.openmpi") is None:
        pytest.skip("mpicc.openmpi missing: on Debian, apt-get install libopenmpi-dev")
    shutil.copy(XDLU.with_name("LU.dat"), tmp_path)
    command = [*TOPOLANE, "mpi", "run", "--out", "m.csv", "--", "mpiexec.openmpi", "-n", "4", str(XDLU)]
    for _ in range(4):
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | AROUND, capture_output=True, text=True, timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "  240 tests completed and passed residual checks." in done.stdout
