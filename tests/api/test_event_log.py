"""The log that drivers and shadows append to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from topolane.cluster.log import EventLog, events


@pytest.mark.parametrize("cut", ['{"time": 2, "ev', '{"time": 2, "event": "b"}'])
def test_a_log_goes_on_after_a_line_that_was_cut_short(tmp_path: Path, cut: str) -> None:
    """A line without its end is skipped, and what is written later is lines of its own."""
    log = tmp_path / "log"
    log.write_text('{"time": 1, "event": "a"}\n' + cut)
    assert [event["event"] for _, event in events(log)] == ["a"]
    EventLog(str(log)).write("c", job=7)
    assert [event["event"] for _, event in events(log)] == ["a", "c"]
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["a", "c"]


def test_a_log_of_one_cut_line_begins_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"time": 1')
    EventLog(str(log)).write("a")
    assert [event["event"] for _, event in events(log)] == ["a"]
