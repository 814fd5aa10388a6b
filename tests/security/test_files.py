"""Files that are written: no link and no planted draft leads a command elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from topolane.cluster import room_files
from topolane.nova.migration_plan import MigrationPlan, read
from waiting import DEADLINE

MAIN = [sys.executable, "-c", "from topolane.cli import main; main()"]
SIMULATE = ("simulate", "--workload", "cab-aug", "--limit", "10", "--days", "1")
MATRIX = ("traffic", "ring", "--ranks", "4")


def topolane(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder."""
    return subprocess.run(
        [*MAIN, *words], cwd=folder, capture_output=True, text=True, timeout=DEADLINE, **more
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a refusal."""
    assert done.returncode == 2, done
    (sentence,) = done.stderr.splitlines()
    return sentence


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder with files that no command may touch."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "jobs.csv").write_text("precious")
    (folder / "fat-tree-1.svg").write_text("precious")
    (folder / "file").write_text("precious")
    return folder


def untouched(victim: Path) -> None:
    assert {file.name: file.read_text() for file in victim.iterdir()} == {
        "jobs.csv": "precious",
        "fat-tree-1.svg": "precious",
        "file": "precious",
    }


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link where a command writes a file cannot have another file written."""
    (tmp_path / "out.csv").symlink_to(victim / "file")
    sentence = refused(topolane(tmp_path, *MATRIX, "--out", "out.csv"))
    assert "--out out.csv: cannot be written: it is a symbolic link" in sentence
    untouched(victim)


def test_a_link_to_nothing_is_not_followed(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link to a file that is not there cannot have it made."""
    (tmp_path / "out.csv").symlink_to(victim / "new")
    refused(topolane(tmp_path, *MATRIX, "--out", "out.csv"))
    untouched(victim)


def test_a_picture_is_not_written_through_a_link(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link where a picture is drawn cannot have another file written."""
    from topolane.report.traffic_matrix import draw

    (tmp_path / "matrix.png").symlink_to(victim / "file")
    with pytest.raises(Exception, match="symbolic link"):
        draw(matrix(), str(tmp_path / "matrix.png"))
    untouched(victim)


def matrix() -> Any:
    import numpy as np
    from topolane.mpi.matrix import FIGURES, KINDS, Recorded, RunFacts

    about = RunFacts("p", "name", "mpi", 2, ["a", "b"], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], {}, [])
    counts = np.ones((1, len(KINDS), len(FIGURES)))
    return Recorded(about, np.array([0]), np.array([1]), counts)


def planting(name: Callable[[int], str], to: Path, folder: Path) -> Callable[[], None]:
    """A function that plants, in a new process, links under the draft's name that the process would use."""

    def plant() -> None:
        os.symlink(to, folder / name(os.getpid()))

    return plant


def test_a_planted_draft_of_a_file_is_not_followed(tmp_path: Path, victim: Path) -> None:
    """A user who guesses the name of a draft cannot have it written through a link."""
    words = [*MATRIX, "--out", "out.csv"]
    plant = planting(lambda pid: f".out.csv.{pid}", victim / "file", tmp_path)
    done = topolane(tmp_path, *words, preexec_fn=plant)
    assert done.returncode == 0, done.stderr
    untouched(victim)
    assert not (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "out.csv").read_text().startswith("# ranks: 4")


def test_a_planted_draft_of_a_plan_is_not_followed(tmp_path: Path, victim: Path) -> None:
    """A user who guesses the name of a plan's draft cannot have it written through a link."""
    (tmp_path / f".plan.json.{os.getpid()}").symlink_to(victim / "file")
    room_files.write(tmp_path / "plan.json", MigrationPlan([], {}))
    untouched(victim)
    assert read(tmp_path / "plan.json") == MigrationPlan([], {})


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link in place of the folder of `--out` cannot have files written or removed elsewhere."""
    (tmp_path / "out").symlink_to(victim)
    assert "--out out: cannot be written: it is a symbolic link" in refused(
        topolane(tmp_path, *SIMULATE, "--out", "out")
    )
    untouched(victim)


@pytest.mark.parametrize("planted", ["figures", "runs", "runs/x"])
def test_a_link_in_a_folder_is_not_followed(tmp_path: Path, victim: Path, planted: str) -> None:
    """A user who plants a link inside the folder of `--out` cannot have files written or removed elsewhere."""
    link = tmp_path / "out" / planted
    link.parent.mkdir(parents=True)
    if planted == "runs":
        (victim / "x").mkdir()
        (victim / "jobs.csv").rename(victim / "x" / "jobs.csv")
    link.symlink_to(victim)
    done = topolane(tmp_path, *SIMULATE, "--out", "out")
    if planted == "figures":
        assert "figures in it is a symbolic link" in refused(done)
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["figures"]
    else:
        assert done.returncode == 0, done.stderr
    if planted == "runs":
        (victim / "x" / "jobs.csv").rename(victim / "jobs.csv")
        (victim / "x").rmdir()
    untouched(victim)


def test_a_report_does_not_follow_a_link(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link in place of a report's figures cannot have files written or removed elsewhere."""
    draft = tmp_path / "out"
    draft.mkdir()
    (draft / "figures").symlink_to(victim)
    script = """
import sys, topolane
from topolane.report import MachinePicture, write_report
machine = topolane.machine("cab")
run = topolane.simulate(topolane.workload("cab-aug", machine.nodes, shape=topolane.Shape(limit=10)), machine)
write_report(sys.argv[1], [run], MachinePicture.of(machine))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(draft)], capture_output=True, text=True, timeout=DEADLINE
    )
    assert "symbolic link" in done.stderr, done
    untouched(victim)


def test_an_earlier_run_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    """A folder that holds an earlier run and other files keeps those alone."""
    out = tmp_path / "out"
    for name in ("notes.txt", "runs/a/jobs.csv", "runs/b/mine.txt", "runs/b/jobs.csv", "links.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("old")
    assert topolane(tmp_path, *SIMULATE, "--out", "out").returncode == 0
    assert (out / "notes.txt").read_text() == "old"
    assert (out / "runs/b/mine.txt").read_text() == "old"
    assert not (out / "runs/a").exists() and not (out / "runs/b/jobs.csv").exists()
    assert not (out / "links.csv").exists()
    assert (out / "jobs.csv").stat().st_size > 100 and (out / "figures").is_dir()
    assert not [file for file in tmp_path.rglob(".topolane-*")]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    """A random name for the draft does not make a file private that its user wants to share."""
    done = topolane(tmp_path, *MATRIX, "--out", "out.csv", umask=umask)
    assert done.returncode == 0
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == mode


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    """A user who made a file private finds it private after a command has replaced it."""
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "out.csv").chmod(0o600)
    assert topolane(tmp_path, *MATRIX, "--out", "out.csv").returncode == 0
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out.csv").read_text().startswith("# ranks")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_a_file_of_another_user_does_not_lend_its_mode(tmp_path: Path) -> None:
    """A user who plants a file that everybody may write to cannot write to what replaces it."""
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "out.csv").chmod(0o666)
    os.chown(tmp_path / "out.csv", 65534, 65534)
    assert topolane(tmp_path, *MATRIX, "--out", "out.csv", umask=0o022).returncode == 0
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o644


def test_a_device_and_a_pipe_are_written_to(tmp_path: Path) -> None:
    """What is no file is not replaced: a pipe with a name, standard output, a full device."""
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()), daemon=True)
    reader.start()
    assert topolane(tmp_path, *MATRIX, "--out", "pipe").returncode == 0
    reader.join(DEADLINE)
    assert read and read[0].startswith("# ranks: 4")
    assert topolane(tmp_path, *MATRIX, "--out", "/dev/null").returncode == 0
    assert "No space left" in refused(topolane(tmp_path, *MATRIX, "--out", "/dev/full"))
    with (tmp_path / "file").open("w") as file:
        done = subprocess.run([*MAIN, *MATRIX, "--out", "/dev/stdout"], stdout=file, timeout=DEADLINE)
    assert done.returncode == 0
    assert (tmp_path / "file").read_text().startswith("# ranks: 4")


def test_matrix_is_not_written_through_a_link_after_the_program(tmp_path: Path, victim: Path) -> None:
    """A user who plants a link in place of a program's matrix cannot have it followed; that is said before it runs."""
    (tmp_path / "matrix.csv").symlink_to(victim / "file")
    done = topolane(tmp_path, "mpi", "run", "--mpicc", "true", "--out", "matrix.csv", "--", "touch", "ran")
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()
    untouched(victim)


def test_a_log_cannot_name_code(tmp_path: Path) -> None:
    """A user who writes a shadow's log and a module next to it cannot have the module run by the user who replays the log."""
    (tmp_path / "planted.py").write_text(
        "import pathlib\npathlib.Path('ran').touch()\nfrom topolane import Policy\n\n\n"
        "class Own(Policy):\n    name = 'own'\n\n    def choose(self, request, state):\n        return None\n"
    )
    first = {"event": "shadow", "machine": 'name = "m"\n[[site]]\nname = "s"\nchildren = [4]\n'}
    first |= {"policy": "planted:Own"}
    (tmp_path / "log.jsonl").write_text(json.dumps(first) + "\n")
    sentence = refused(topolane(tmp_path, "slurm", "replay", "log.jsonl"))
    assert "log.jsonl:1: the policy was 'planted:Own', which is code" in sentence
    assert not (tmp_path / "ran").exists()
    assert topolane(tmp_path, "slurm", "replay", "log.jsonl", "--policy", "planted:Own").returncode == 0
    assert (tmp_path / "ran").exists()
