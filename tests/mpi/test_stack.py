"""A watched program finds on its stack what the calls leave there without the library (native/mpi/calls/on_own_stack.h)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mpis import AROUND, HERE, TOPOLANE, Mpi

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
            command, cwd=tmp_path, env=os.environ | AROUND, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "  240 tests completed and passed residual checks." in done.stdout
