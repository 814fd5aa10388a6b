"""Every test runs with each MPI that is here; those of one that is missing are skipped by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpis import AROUND, EVERY, HERE, Mpi
from topolane.mpi import build


@pytest.fixture(scope="session", params=EVERY, ids=lambda one: one.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    one: Mpi = request.param
    if one.missing:
        pytest.skip(
            f"{', '.join(one.missing)} missing: on Debian, apt-get install {one.name} lib{one.name}-dev"
        )
    build.library(build.mpicc_for([f"mpiexec.{one.name}"]))  # else the first run says that it compiles
    return one


@pytest.fixture(autouse=True)
def around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Open MPI start, and more ranks than there are cores."""
    for name, value in AROUND.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def kernels(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs in kernels/, as one."""
    made = tmp_path_factory.mktemp(f"kernels-{mpi.name}") / "kernels"
    return mpi.compile(sorted((HERE / "kernels").glob("*.c")), made)
