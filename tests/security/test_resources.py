"""What a command says when the system gives it no more space, descriptors or memory: one sentence, exit code 2, nothing half written."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import DEADLINE

COMMAND = "import sys; from topolane.cli import main; sys.argv[0] = 'topolane'; sys.exit(main())"
LIMITED = """
import resource, sys
from topolane.cli import main
limit, value = sys.argv.pop(1), int(sys.argv.pop(1))
if limit == "AS":
    value += int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (value, value))
sys.argv[0] = "topolane"
main()
"""
"""Runs a command under a limit: of memory (AS), in bytes beyond what Python has taken, or of descriptors (NOFILE)."""
FULL = """
mount -t tmpfs -o size=16k tmpfs "$0" && head -c 4000 /dev/zero >"$0/other" || exit 99
"$@"; code=$?
ls -A "$0" >"$0/../left"
exit $code
"""
SIMULATE = ("simulate", "--limit", "300", "--failures", "none")
WIDE = """\
name = "wide"
[[site]]
name = "core"
children = [10, 100, 1000]
"""


def ended(*words: object) -> tuple[int, str]:
    """The exit code and the standard error of a program."""
    found = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=DEADLINE)
    return found.returncode, found.stderr


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a program started with `FULL` sees as a full disk."""
    folder = tmp_path_factory.mktemp("full") / "disk"
    folder.mkdir()
    if ended("unshare", "-rm", "sh", "-c", FULL, folder, "true")[0]:
        pytest.skip("no file system can be mounted here")
    return folder


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((*SIMULATE, "--out", "DISK/out"), "--out DISK/out: cannot be written: "),
        (("compare", *SIMULATE[1:3], "--policies", "first-fit", "--out", "DISK/out"), "--out DISK/out: cannot be written: "),
        (("machine", "convert", "cab", "--to", "ibnetdiscover", "--out", "DISK/m"), "--out DISK/m: cannot be written: "),
        (("workload", "make", "exp-16", "--out", "DISK/w"), "--out DISK/w: cannot be written: "),
    ],
)  # fmt: skip
def test_a_full_disk_is_named(full: Path, words: tuple[str, ...], named: str) -> None:
    """The sentence names the option and the path. What was on the disk is still there, and nothing else."""
    given = [word.replace("DISK", str(full)) for word in words]
    code, said = ended("unshare", "-rm", "sh", "-c", FULL, full, sys.executable, "-c", COMMAND, *given)
    assert (code, said) == (2, f"topolane: {named.replace('DISK', str(full))}No space left on device\n")
    assert (full / "../left").read_text().split() == ["other"]


@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_disk_behind_standard_output_is_named(full: Path, buffered: bool) -> None:
    """What is printed into a file of a full disk ends with a sentence about standard output, also where Python has no buffer."""
    unbuffered = "" if buffered else "-u"
    inside = f'unset PYTHONUNBUFFERED; exec {sys.executable} {unbuffered} -c "{COMMAND}" workload make exp-16 >"$0/printed"'
    code, said = ended("unshare", "-rm", "sh", "-c", FULL, full, "sh", "-c", inside, full)
    assert (code, said) == (2, "topolane: standard output: No space left on device\n")


@pytest.mark.parametrize("most", [3, 5, 6, 12, 13, 14, 16])
def test_too_many_open_files_are_said_in_a_sentence(tmp_path: Path, most: int) -> None:
    """Whatever cannot be opened, the command ends with one sentence that says so, and leaves nothing."""
    words = ("NOFILE", most, *SIMULATE, "--no-report", "--out", tmp_path / "out")
    code, said = ended(sys.executable, "-c", LIMITED, *words)
    if code:
        assert code == 2 and said.count("\n") == 1 and "too many open files" in said.lower()
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mebibytes", [1, 8, 64])
def test_a_machine_that_is_too_large_for_the_memory_is_said_in_a_sentence(
    tmp_path: Path, mebibytes: int
) -> None:
    """If the engine gets no memory, however little or much it asks for, the command says one sentence. With a few MiB it cannot even
    start a thread."""
    file = tmp_path / "wide.toml"
    file.write_text(WIDE)
    said = ended(sys.executable, "-c", LIMITED, "AS", mebibytes << 20, "machine", "show", file)
    code, text = said
    assert code == 2 and text.startswith("topolane: not enough memory") and text.count("\n") == 1, said
    assert text == "topolane: not enough memory for this input\n" or mebibytes < 64, said


@pytest.mark.parametrize("mebibytes", [2, 24, 100])
def test_a_run_that_gets_no_memory_is_said_in_a_sentence(tmp_path: Path, mebibytes: int) -> None:
    """A thread that cannot start, or a package that cannot be loaded, ends in one sentence too, and nothing is half written."""
    words = (*SIMULATE, "--out", tmp_path / "out")
    code, said = ended(sys.executable, "-c", LIMITED, "AS", mebibytes << 20, *words)
    assert code == 2 and said.count("\n") == 1
    assert "not enough memory" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mebibytes", [40, 60])
def test_a_month_that_gets_no_memory_leaves_nothing(tmp_path: Path, mebibytes: int) -> None:
    """The engine runs out of memory in the midst of a run: the draft of the output is removed."""
    words = ("simulate", "--failures", "none", "--out", tmp_path / "out")
    said = ended(sys.executable, "-c", LIMITED, "AS", mebibytes << 20, *words)
    assert said == (2, "topolane: not enough memory for this input\n")
    assert not list(tmp_path.iterdir())


def test_another_program_with_the_engine_is_not_ended_by_it(tmp_path: Path) -> None:
    """Only a command ends with the sentence. In another program the engine aborts as any Rust code does, and says nothing for it."""
    file = tmp_path / "wide.toml"
    file.write_text(WIDE)
    program = LIMITED.replace("from topolane.cli import main", "import topolane").replace(
        "main()", "topolane.machine(sys.argv[1])"
    )
    code, said = ended(sys.executable, "-c", program, "AS", 8 << 20, file)
    assert code in (-signal.SIGABRT, 1) and "topolane: " not in said
    assert resource.getrlimit(resource.RLIMIT_AS) == (resource.RLIM_INFINITY,) * 2
