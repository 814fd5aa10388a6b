"""`topolane mpi run`: the program runs as it would by itself, and what is wrong is said before it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mpis import AROUND, TOPOLANE, Mpi
from topolane._engine import InputError
from topolane.mpi import build, launch, matrix
from waiting import DEADLINE


def run(*words: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    around = os.environ | AROUND | (environment or {})
    command = [*TOPOLANE, "mpi", "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=around, timeout=DEADLINE)


def test_output_and_exit_code_are_the_programs(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """What is printed and what the command ends with is as without the library."""
    out = tmp_path / "m.csv"
    plain = mpi.plain(kernels, "ring", 5)
    done = run("--out", out, "--", *mpi.launch(kernels, "ring", 5))
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, "")
    done = run("--out", out, "--", mpi.launch(kernels)[0], "-n", 1, "sh", "-c", "exit 3")
    assert done.returncode == 3
    assert "no rank reported" in done.stderr and "?" not in done.stderr


def test_first_use_says_that_it_compiles(mpi: Mpi, tmp_path: Path) -> None:
    """The first use prints one line to standard error before it compiles; the second prints nothing."""
    words = ["--out", tmp_path / "m.csv", "--mpicc", f"mpicc.{mpi.name}", "--", "true"]
    first, second = (run(*words, environment={"XDG_CACHE_HOME": str(tmp_path)}) for _ in range(2))
    assert first.stderr.splitlines()[0].startswith("topolane: compiling the MPI library for mpicc.")
    assert second.stderr == first.stderr.split("\n", 1)[1]


def test_rankfile_with_slots_that_the_host_lacks(tmp_path: Path) -> None:
    """Open MPI ends without a word; the command names the file, the line and the slot."""
    if shutil.which("mpiexec.openmpi") is None:
        pytest.skip("mpiexec.openmpi missing: on Debian, apt-get install openmpi-bin")
    ranks = tmp_path / "ranks"
    ranks.write_text("rank 0=localhost slot=0\nrank 1=localhost slot=999999\n")
    words = ["--out", tmp_path / "m.csv", "--", "mpiexec.openmpi", "-n", 2, "--rankfile", ranks, "hostname"]
    done = run(*words)
    assert done.returncode == 1
    assert f"{ranks}:2: slot 999999: this host has slots 0 to " in done.stderr
    assert not (tmp_path / "m.csv").exists()


def test_name_and_receiver_over_tcp(mpi: Mpi, kernels: Path, tmp_path: Path) -> None:
    """Ranks reach the receiver over TCP with a token that only they know; --name is the program's."""
    out = tmp_path / "m.csv"
    done = run(
        "--out", out, "--name", "mine", "--listen", "127.0.0.1:0", "--", *mpi.launch(kernels, "ring", 5)
    )
    assert done.returncode == 0, done.stderr
    assert matrix.read(out).about.name == "mine"


def test_what_the_launchers_are_given(mpi: Mpi) -> None:
    """Only the ranks load the library where the launcher allows it; each part of Open MPI's command has it."""
    command = [f"mpiexec.{mpi.name}", "-n", "1", "a", ":", "-n", "1", "b"]
    words, around = launch.with_library(command, Path("/lib.so"), {"X": "1"})
    assert "LD_PRELOAD" not in around or around["LD_PRELOAD"] == os.environ.get("LD_PRELOAD")
    assert around["X"] == "1"
    assert " ".join(words).count("/lib.so") == (2 if mpi.name == "openmpi" else 1)


def test_other_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """srun exports to its tasks; a script has it in its environment; what is in the way is refused."""
    for name in ("srun", "job.sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LD_PRELOAD", "")
    library = Path("/lib.so")
    assert launch.with_library(["srun", "a"], library, {})[0] == [
        "srun",
        "--export=ALL,LD_PRELOAD=/lib.so",
        "a",
    ]
    assert launch.with_library(["job.sh"], library, {})[1]["LD_PRELOAD"] == "/lib.so"
    with pytest.raises(InputError, match="--export"):
        launch.with_library(["srun", "--export=NONE", "a"], library, {})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--", "no-such-launcher", "a"], "no-such-launcher"),
        (["--mpicc", "no-such-mpicc", "--", "sh"], "no-such-mpicc"),
        (["--mpicc", "cc", "--", "sh"], "mpi.h"),
        (["--out", "/no/such/directory/m.csv", "--", "sh"], "--out"),
        (["--out", "/proc/m.csv", "--", "sh"], "--out"),
        (["--out", "/tmp", "--", "sh"], "is a directory"),
        (["--seconds", "nan", "--", "sh"], "nan"),
        (["--mpicc", "true", "--", "sh"], "made nothing"),
        (["--manager", "nowhere", "--", "sh"], "nowhere"),
        (["--manager", "unix:/x", "--listen", "127.0.0.1:0", "--", "sh"], "--listen"),
        (["--listen", "0.0.0.0:0", "--", "sh"], "an address that leads to this one"),
    ],
)
def test_bad_input(words: list[str], sentence: str) -> None:
    """One sentence on standard error and exit code 2; nothing is started."""
    if (mpicc := shutil.which("mpicc")) is not None:
        build.library(mpicc)  # else the first run says that it compiles
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert sentence in done.stderr and len(lines) == 1


def test_library_is_compiled_once(mpi: Mpi, tmp_path: Path) -> None:
    """The same sources and MPI are the same file, which stays as it was; it is the launcher's MPI."""
    mpicc = build.mpicc_for([f"mpiexec.{mpi.name}"])
    assert os.path.basename(mpicc) == f"mpicc.{mpi.name}"
    first = build.library(mpicc, tmp_path)
    written = first.stat().st_mtime_ns
    assert build.library(mpicc, tmp_path) == first
    assert first.stat().st_mtime_ns == written
    assert [path.name for path in first.parent.iterdir()] == [build.LIBRARY]
    if shutil.which("ldd"):
        needed = subprocess.run(["ldd", str(first)], capture_output=True, text=True).stdout
        assert ("libmpich.so" in needed) == (mpi.name == "mpich")
