"""Numbers of jobs as squeue prints them, wherever a command takes one. No Slurm runs here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from room_records import FULL, NOW, look_at, runs, waits
from topolane import InputError
from topolane.slurm.explain import explain, tasks_named
from topolane.slurm.records import SlurmJob, task_id
from topolane.slurm.room_plan import make_plan


def task(array: int, number: int) -> SlurmJob:
    """A waiting task of an array of six-node jobs."""
    known = waits(array, 6, array=array)
    return dataclasses.replace(known, id=task_id(array, number), number=f"{array}_{number}")


JOBS = (
    *(task(97, number) for number in range(1, 10)),
    runs(98, "node[1-6]", 1, het_job=98, het_part=0),
    runs(99, "node[7-12]", 1, het_job=98, het_part=1),
    runs(3, "node[13-18]", 1),
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", ["3"]),
        (" 3\n", ["3"]),
        ("97", [f"97_{number}" for number in range(1, 10)]),
        ("97_3", ["97_3"]),
        ("97_[2-6%1]", ["97_2", "97_3", "97_4", "97_5", "97_6"]),
        ("97_[1,3,5-9:2%4]", ["97_1", "97_3", "97_5", "97_7", "97_9"]),
        ("97_[4]", ["97_4"]),
        ("97_[8-2000000000]", ["97_8", "97_9"]),
        ("97_[2,4,...]", [f"97_{number}" for number in range(1, 10)]),
        ("97_[2..4]", ["97_2", "97_3", "97_4"]),
        ("98", ["98"]),
        ("98+0", ["98"]),
        ("98+1", ["99"]),
        ("98+2", []),
        ("97_10", []),
        ("3_1", []),
        ("0+0", []),
        ("4", []),
    ],
)
def test_a_number_names_the_jobs_of_its_row_in_squeue(tmp_path: Path, text: str, numbers: list[str]) -> None:
    """A row of waiting tasks names these tasks; squeue writes `...` where it cuts a row short, which then names the whole array."""
    look = look_at(tmp_path, *JOBS)
    assert [job.number for job in tasks_named(look, text)] == numbers
    if numbers:
        assert explain(look, text).job == numbers[0]
    else:
        with pytest.raises(InputError, match="Slurm knows no job"):
            explain(look, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-3",
        "97_",
        "97_[",
        "97_[]",
        "97_[6-2]",
        "97_[2-6:0]",
        "97_[2-6%]",
        "97_[a]",
        "97+",
        "97_3+1",
        "97 98",
    ]
    + ["9" * 11, "97_[" + "1," * 4000 + "2]", "٣"],
)
def test_a_text_that_is_no_number_is_refused(tmp_path: Path, text: str) -> None:
    """One sentence names the option and the text, and how a number looks or what is wrong with its tasks."""
    look = look_at(tmp_path, *JOBS)
    for read, source in ((explain, "JOBID"), (make_plan, "--room-for")):
        with pytest.raises(
            InputError, match=rf"^{source}: .*(is no number of a job, such as|names no tasks)"
        ):
            read(look, text)


def test_a_plan_is_made_for_the_first_task_of_a_row(tmp_path: Path) -> None:
    """`topolane slurm plan --room-for '97_[2-6%1]'` makes room for task 2."""
    plan = make_plan(look_at(tmp_path, *FULL, *JOBS[:9]), "97_[2-6%1]")
    assert (plan.job, plan.time) == ("97_2", NOW)
