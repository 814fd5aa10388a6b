"""The log of a shadow as a source of the live page, read while it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from topolane import InputError
from topolane.serve.shadow import Shadow

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
    shadow = Shadow(str(log), None, 1.0)
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
    """Hops of a start count though its system tells whole seconds and the log begins within one, and at the last moment of the log. The
    wait of a job that ran long before is at no point."""
    log = tmp_path / "shadow.jsonl"
    placed = {"nodes": "m[1-2]", "aph": 1.0, "shares_with": 0}
    began = HOLDS | {"event": "start", "start": start, "submit": 4, **placed, "policy": placed | {"aph": 0.5}}
    before = HOLDS | {"id": 2, "job": "2", "start": 1, "submit": 0, "time": 5.5}
    log.write_text("".join(json.dumps(event) + "\n" for event in (BEGINS | {"time": 5.4}, before, began)))
    lines = Shadow(str(log), None, 1.0).series().lines
    assert [[value for value in line.hops if value is not None] for line in lines] == [[1.0], [0.5]]
    assert [value for value in lines[0].wait if value is not None] == [start - 4]


def test_a_job_that_has_ended_is_gone_at_once(tmp_path: Path) -> None:
    """The end of a job may be told more precisely than the time of its line. It is at the last moment of the log all the same."""
    log = tmp_path / "shadow.jsonl"
    began = HOLDS | {"nodes": "m[1-2]"}
    ends = {"time": 12.345, "event": "ends", "id": 1, "at": 12.3454}
    log.write_text("".join(json.dumps(event) + "\n" for event in (BEGINS, began, ends)))
    shadow = Shadow(str(log), None, 1.0)
    assert not shadow.now().running and len(shadow.at(12.3).running) == 1
