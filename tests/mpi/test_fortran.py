"""Programs in Fortran are counted as those in C, by whichever of its three interfaces they call MPI."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mpis import HERE, Mpi
from test_matrix_closed_form import RANKS, sent


@pytest.mark.parametrize("interface", ["include", "module", "module_2008"])
def test_fortran(mpi: Mpi, tmp_path: Path, interface: str) -> None:
    """4 x 5 messages of 4 bytes to the next rank, 5 of 8 to the other rank of the half, one sum of 4 bytes.

    The program counts what came back wrong: handles, statuses, constants such as MPI_IN_PLACE. That number is the same
    with the library as without (it is not 0 for MPICH 4.0's mpi_f08, which numbers requests from 0).
    """
    if shutil.which(f"mpifort.{mpi.name}") is None or shutil.which("gfortran") is None:
        pytest.skip(f"mpifort.{mpi.name} or gfortran missing: on Debian, apt-get install gfortran")
    program = mpi.compile([HERE / "fortran" / f"{interface}.f90"], tmp_path / interface, compiler="mpifort")
    plain = mpi.plain(program)
    assert plain.returncode == 0
    out, recorded = mpi.printed(program)
    assert out == plain.stdout
    assert mpi.name == "mpich" or out.split() == ["wrong", "0"]
    expected = {(rank, (rank + 1) % RANKS): (20, 80, 0) for rank in range(RANKS)}
    expected |= {(rank, (rank + 2) % RANKS): (5, 40, 5) for rank in range(RANKS)}
    assert sent(recorded) == expected
    partners = {(rank, rank ^ bit) for rank in range(RANKS) for bit in (1, 2)}
    assert sent(recorded, "modelled") == {pair: (1, 4, 1) for pair in partners}
