"""The programs of `native/gang`: they do the work that their options ask for, and log all of it."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from quiet_cores import QuietCores
from topolane_gang.study import gang_programs as programs
from topolane_gang.study.gang_programs import Barrier, Coevp, Independent, Mpi, ProgramLine, ProgramRun
from waiting import DEADLINE, until

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-O2")
THREADS = 2


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return programs.build(tmp_path_factory.mktemp("work"))
    except programs.Missing as missing:
        pytest.skip(f"the workloads: {missing}")


@pytest.fixture(scope="module")
def rate(program: Path) -> float:
    return programs.measured_rate(program)


def run(program: Path, words: Sequence[object]) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)


def logged(
    program: Path, one: ProgramRun, rate: float, folder: Path, trace: Path | None = None
) -> list[ProgramLine]:
    """The log of a run of threads."""
    file = folder / "log"
    done = run(program, [*one.words(rate, file, trace), "--threads", THREADS])
    assert done.returncode == 0, done.stderr
    return programs.log(file)


def whole(lines: Sequence[ProgramLine], threads: int) -> list[list[ProgramLine]]:
    """The lines of each thread: every thread is there, and each iteration starts where the one before it ended."""
    each = [[line for line in lines if line.thread == thread] for thread in range(threads)]
    assert sum(map(len, each)) == len(lines)
    for own in each:
        assert own
        assert all(line.start <= line.end for line in own)
        assert [line.start for line in own[1:]] == [line.end for line in own[:-1]]
    return each


def test_every_thread_logs_every_iteration(program: Path, rate: float, tmp_path: Path) -> None:
    """With `--iterations N` each thread has N lines, one after another."""
    for workload in (Independent(0.002), Barrier(0.001), Barrier(0.001, spin=False), Coevp(0.001, 4, 0.001)):
        each = whole(logged(program, ProgramRun(workload, iterations=7), rate, tmp_path), THREADS)
        assert [len(own) for own in each] == [7, 7]


@pytest.mark.parametrize("imbalance", [0.0, 0.5])
def test_seconds_of_work_are_seconds_of_cpu(
    imbalance: float, program: Path, rate: float, tmp_path: Path, quiet_cores: QuietCores
) -> None:
    """200 intervals of 2 ms on two threads are 0.8 s of CPU, balanced or not; a core that shares its units with
    another may take twice as long."""

    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = cpu()
    logged(program, ProgramRun(Barrier(0.002, False, imbalance), iterations=200), rate, tmp_path)
    used = cpu() - before
    quiet_cores.judge(0.4 < used < 2.4, used)


def test_a_barrier_job_alone_does_seconds_over_interval_iterations(
    program: Path, rate: float, tmp_path: Path, quiet_cores: QuietCores
) -> None:
    """In one second 5 ms fit 200 times, a little more if the core has become faster. It ends
    with the iteration in which one of the threads is a second past its own start."""
    each = whole(logged(program, ProgramRun(Barrier(0.005), seconds=1.0), rate, tmp_path), THREADS)
    assert len(each[0]) == len(each[1])
    assert max(own[-1].end for own in each) - min(own[0].start for own in each) >= 1.0
    quiet_cores.judge(10 <= len(each[0]) <= 300, len(each[0]))


def test_no_thread_leaves_a_barrier_before_the_last_has_come(
    program: Path, rate: float, tmp_path: Path
) -> None:
    """The iterations of one number overlap: no thread's ends before another's starts."""
    for spin in (True, False):
        one = ProgramRun(Barrier(0.001, spin, 0.9), iterations=100)
        for first, second in zip(*whole(logged(program, one, rate, tmp_path), THREADS)):
            assert max(first.start, second.start) <= min(first.end, second.end)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_coevp_does_all_tasks_of_every_step_once(
    spread: float, program: Path, rate: float, tmp_path: Path
) -> None:
    """The threads' tasks of a step add up to `--tasks`, and each step lasts at least its wait."""
    one = ProgramRun(Coevp(0.001, 9, 0.001, spread, 0.01), iterations=5)
    for step in zip(*whole(logged(program, one, rate, tmp_path), THREADS)):
        assert sum(line.tasks for line in step) == 9
        assert all(line.end - line.start >= 0.01 for line in step)


def test_a_trace_covers_the_work_and_nothing_else(
    program: Path, rate: float, tmp_path: Path, quiet_cores: QuietCores
) -> None:
    """Times on a core lie in the run, follow each other, and add up to no less than half of the work, since a core
    may have become faster. While all wait for communication no thread is on a core."""
    lines = logged(
        program, ProgramRun(Coevp(0.01, 4, 0.01, 0.0, 0.05), iterations=4), rate, tmp_path, tmp_path / "trace"
    )
    on_core = programs.trace(tmp_path / "trace")
    cores = os.cpu_count() or 1
    assert all(0 <= line.core < cores for line in on_core)
    for thread in range(THREADS):
        own = [line for line in on_core if line.thread == thread]
        assert all(before.end <= after.start for before, after in itertools.pairwise(own))
    for step in (line for line in lines if line.thread == 0):
        asleep = step.end - 0.01  # well inside the last 50 ms
        assert not [line for line in on_core if line.start <= asleep - 0.03 and line.end >= asleep]
    worked = sum(line.end - line.start for line in on_core)
    quiet_cores.judge(worked > 0.5 * 4 * (0.01 + 4 * 0.01), worked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "the first word says what to do: independent, barrier, coevp or rate"),
        ("sing", "sing is none of independent, barrier, coevp, rate"),
        ("barrier --seconds 1", "--threads is missing"),
        ("barrier --threads 2", "give one of --seconds and --iterations"),
        ("barrier --threads 2 --seconds 1 --iterations 3", "give one of --seconds and --iterations"),
        ("barrier --threads 0 --seconds 1", "--threads 0: not a whole number from 1 to 1024"),
        ("barrier --threads 1.5 --seconds 1", "--threads 1.5: not a whole number from 1 to 1024"),
        ("barrier --threads 2 --seconds nan", "--seconds nan: not a number from 0.001 to 1e+06"),
        ("barrier --threads 2 --seconds 1s", "--seconds 1s: not a number from 0.001 to 1e+06"),
        ("barrier --threads", "--threads needs a value"),
        ("barrier --threads 2 --seconds 1 --log", "--log needs a file"),
        ("coevp --threads 2 --seconds 1 --spin", "--spin is no option of this kind"),
        (
            "independent --threads 2 --seconds 1 --xen-clock",
            "--xen-clock: Xen does not count the time of that number of processors here",
        ),
        ("coevp --threads 2 --seconds 1 --loud", "--loud is no option"),
        (
            "barrier --threads 2 --seconds 1 --log /nowhere/at/all",
            "/nowhere/at/all: No such file or directory",
        ),
    ],
)
def test_bad_words_end_in_one_sentence_and_code_2(words: str, said: str, program: Path) -> None:
    done = run(program, words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"work: {said}\n")


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


def test_a_run_that_is_asked_to_end_writes_what_it_has(program: Path, rate: float, tmp_path: Path) -> None:
    """SIGTERM ends a run after the iteration that it is in; its log is whole."""
    words = ProgramRun(Barrier(0.001), seconds=600.0).words(rate, tmp_path / "log")
    with subprocess.Popen([program, *words, "--threads", str(THREADS)]) as process:
        try:
            until(lambda: catches(process.pid, signal.SIGTERM), "it has begun")
            process.terminate()
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
    each = whole(programs.log(tmp_path / "log"), THREADS)
    assert len(each[0]) == len(each[1])


@pytest.mark.parametrize("compiler", ["gcc", "mpicc.mpich", "mpicc.openmpi"])
def test_the_sources_compile_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} not found")
    form = [] if compiler == "gcc" else ["-DWITH_MPI"]
    sources = sorted(programs.SOURCES.glob("*.c"))
    command = [compiler, *STRICT, *form, *sources, "-o", tmp_path / "work", "-lm", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("mpi", programs.mpis() or [None], ids=lambda mpi: mpi.mpicc if mpi else "none")
def test_ranks_do_as_threads_do(mpi: Mpi | None, tmp_path: Path) -> None:
    """Each kind on two ranks: every iteration of every rank is logged, and all tasks are done once."""
    if mpi is None:
        pytest.skip("no MPI: on Debian, apt-get install mpich libmpich-dev or openmpi-bin libopenmpi-dev")
    program = programs.build_mpi(tmp_path, mpi)
    file = tmp_path / "log"
    for workload in (
        Independent(0.002),
        Barrier(0.001),
        Barrier(0.001, False, 0.5),
        Coevp(0.001, 9, 0.001, 1.0, 0.01),
    ):
        words = ProgramRun(workload, iterations=7).words(5e8, file)
        done = subprocess.run(
            mpi.command(program, 2, words),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=os.environ | programs.ENVIRONMENT,
        )
        assert done.returncode == 0, done.stderr
        each = whole(programs.log(file), 2)
        assert [len(own) for own in each] == [7, 7]
        if isinstance(workload, Coevp):
            assert [sum(line.tasks for line in step) for step in zip(*each)] == [9] * 7


@pytest.mark.parametrize("mpi", programs.mpis() or [None], ids=lambda mpi: mpi.mpicc if mpi else "none")
def test_ranks_refuse_threads(mpi: Mpi | None, tmp_path: Path) -> None:
    """The number of threads is no option of an MPI program: one sentence, by one rank, and exit code 2."""
    if mpi is None:
        pytest.skip("no MPI: on Debian, apt-get install mpich libmpich-dev or openmpi-bin libopenmpi-dev")
    program = programs.build_mpi(tmp_path, mpi)
    done = subprocess.run(
        mpi.command(program, 2, ["barrier", "--threads", "2", "--seconds", "1"]),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | programs.ENVIRONMENT,
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("work: ")]
    assert said == ["work: --threads: an MPI program has the number that its launcher starts"]
