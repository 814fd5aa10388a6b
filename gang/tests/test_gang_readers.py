"""The readers of gangs under garbage: each answers with a value or with one sentence, whatever it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from mutated_files import Readers, files_of, mutations, name_of, read, read_mutated, some_cases
from topolane_gang.jobs_file import read as read_jobs

CORPUS = Path(__file__).parent / "corpus"


def _jobs(path: Path) -> Any:
    return read_jobs(path)


READERS: Readers = {
    "jobs": (
        _jobs,
        "jobs.toml",
        (
            '[[job]]\nname = "solver"\ncommand = ["mpiexec", "./solver"]\nthreads = 2\nweight = 2.0\nwatch = true\n'
            'environment = { OMP_NUM_THREADS = "1" }\n[[job]]\nname = "other"\ncommand = "true"\n'
        ),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_the_files_that_are_mutated_are_good(name: str, tmp_path: Path) -> None:
    """A mutation of what is refused anyway would find nothing."""
    assert read(READERS[name], tmp_path) is None


@pytest.mark.parametrize("name", READERS)
@some_cases
@given(changes=mutations)
def test_a_mutated_file_gets_a_value_or_a_sentence(name: str, changes: Any, tmp_path: Path) -> None:
    """A user who gives a damaged or hostile file gets one sentence, never a traceback."""
    read_mutated(READERS[name], changes, tmp_path)


@pytest.mark.parametrize("file", files_of(CORPUS), ids=name_of)
def test_what_once_broke_a_reader_gets_a_sentence(file: Path, tmp_path: Path) -> None:
    """A file that once ended in a traceback ends in one sentence, or is read."""
    read(READERS[file.parent.name], tmp_path, file.read_bytes())
