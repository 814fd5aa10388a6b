"""How tests wait."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from waiting import until, until_async, until_opened


def test_what_holds_in_the_end_is_returned_though_it_could_not_be_asked_before() -> None:
    answers = iter([OSError("not yet"), 0, "", None, "so"])

    def holds() -> object:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert until(holds) == "so"
    answers = iter([0, "so"])
    assert asyncio.run(until_async(holds)) == "so"


def test_at_the_deadline_it_is_said_what_was_waited_for_and_what_was_seen_last() -> None:
    with pytest.raises(AssertionError, match="not within 0 s: the file; last seen: FileNotFoundError"):
        until(Path("/nowhere/at/all").stat, "the file", deadline=0)
    with pytest.raises(AssertionError, match="until.lambda: 0, deadline=0.; last seen: 0"):
        until(lambda: 0, deadline=0)
    with pytest.raises(ZeroDivisionError):
        until(lambda: 1 // 0)


def test_a_file_that_is_opened_is_seen(tmp_path: Path) -> None:
    file, ends = tmp_path / "file", threading.Event()
    file.touch()

    def read() -> None:
        while not ends.wait(0.01):
            file.read_text()

    reader = threading.Thread(target=read)
    reader.start()
    until_opened(file)
    ends.set()
    reader.join()
