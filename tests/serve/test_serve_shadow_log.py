"""The log of a shadow as a source of the live page, read while it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from topolane import InputError
from topolane.serve.shadow import ShadowSource

MACHINE = 'name = "m"\n[[site]]\nname = "s"\nchildren = [2, 2]\n'
BEGINS = {"time": 5.0, "event": "shadow", "machine": MACHINE, "policy": "first-fit"}
HOLDS = {
    "time": 9.0,
    "event": "holds",
    "id": 1,
    "job": "1",
    "nodes": None,
    "submit": 6,
    "start": 7,
    "walltime": 60,
}


def test_a_damaged_line_leaves_what_was_read(tmp_path: Path) -> None:
    """As long as the log is damaged every look says so, and the past that was read before can be looked at."""
    log = tmp_path / "shadow.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in (BEGINS, HOLDS)))
    shadow = ShadowSource(str(log), None, 1.0)
    assert shadow.span() == (5.0, 9.0)
    with log.open("a") as file:
        file.write('{"time": 12.0, "event": "start"}\n')
    for _ in range(2):
        with pytest.raises(InputError, match=r"shadow.jsonl:3: not an event of a shadow"):
            shadow.now()
    assert shadow.span() == (5.0, 9.0) and len(shadow.at(6.5).waiting) == 1
    log.unlink()
    with pytest.raises(InputError, match="No such file"):
        shadow.now()


@pytest.mark.parametrize("start", [5, 9.0])
def test_the_first_and_the_last_start_are_drawn(tmp_path: Path, start: float) -> None:
    """Hops of a start count though its system reports whole seconds and the log begins within one, and at the last moment of the log. The
    wait of a job that ran long before is at no point."""
    log = tmp_path / "shadow.jsonl"
    placed = {"nodes": "m[1-2]", "aph": 1.0, "shares_with": 0}
    began = HOLDS | {"event": "start", "start": start, "submit": 4, **placed, "policy": placed | {"aph": 0.5}}
    before = HOLDS | {"id": 2, "job": "2", "start": 1, "submit": 0, "time": 5.5}
    log.write_text("".join(json.dumps(event) + "\n" for event in (BEGINS | {"time": 5.4}, before, began)))
    lines = ShadowSource(str(log), None, 1.0).series().lines
    assert [[value for value in line.hops if value is not None] for line in lines] == [[1.0], [0.5]]
    assert [value for value in lines[0].wait if value is not None] == [start - 4]


def test_a_job_that_has_ended_is_gone_at_once(tmp_path: Path) -> None:
    """The end of a job may be given more precisely than the time of its line. It is at the last moment of the log all the same."""
    log = tmp_path / "shadow.jsonl"
    began = HOLDS | {"nodes": "m[1-2]"}
    ends = {"time": 12.345, "event": "ends", "id": 1, "at": 12.3454}
    log.write_text("".join(json.dumps(event) + "\n" for event in (BEGINS, began, ends)))
    shadow = ShadowSource(str(log), None, 1.0)
    assert not shadow.now().running and len(shadow.at(12.3).running) == 1


def test_a_clock_that_is_set_back_keeps_the_order_of_the_log(tmp_path: Path) -> None:
    """After the clock was set back the last moment of the log is now: a job that runs is shown, one that has ended is not, and what
    was before lies as far back as it was."""
    log = tmp_path / "shadow.jsonl"
    runs = HOLDS | {"nodes": "m[1-2]"}
    events = (
        BEGINS | {"time": 1000.0},
        runs | {"time": 1010.0, "start": 1010.0, "submit": 1005.0},
        runs | {"time": 1020.0, "start": 1020.0, "submit": 1005.0, "id": 2, "job": "2"},
        {"time": 1030.0, "event": "ends", "id": 1, "at": 1030.0},
        {"time": 430.0, "event": "service", "out": ""},
        {"time": 440.0, "event": "ends", "id": 3, "at": 440.0},
    )
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    shadow = ShadowSource(str(log), None, 1.0)
    assert shadow.span() == (400.0, 440.0)
    assert [job.id for job in shadow.now().running] == [2]
    assert [job.id for job in shadow.at(425.0).running] == [1, 2]
    assert [job.id for job in shadow.at(1015.0).running] == [2]
