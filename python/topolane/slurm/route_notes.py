"""Notes that prologues and epilogues of jobs leave at once for other processes, as one file per fact in
`OUT.jobs`.

`JOB.ending` exists while the nodes still end a job's processes, then `JOB.ended`. `JOB.task` says that a task
of an array has the links that the plugin's file still lists under the array.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from topolane import files
from topolane.cluster.allocation import Allocation

ENDING, ENDED, TASK = "ending", "ended", "task"
KINDS = (ENDING, ENDED, TASK)


class Notes:
    """The notes next to a file of tables."""

    def __init__(self, out: Path) -> None:
        self._folder = Path(f"{out}.jobs")

    def is_ending(self, job: int) -> None:
        """Notes that the nodes are still ending the job's processes."""
        self._make_folder()
        (self._folder / f"{job}.{ENDING}").touch()

    def has_ended(self, job: int) -> None:
        """Notes that the job's nodes are free."""
        (self._folder / f"{job}.{ENDED}").touch()
        (self._folder / f"{job}.{ENDING}").unlink(missing_ok=True)

    def is_of_task(self, task: int, array: int, own: Allocation) -> None:
        """Notes that the array's entry in the plugin's file belongs to this task, and no longer to another
        task.
        """
        for other, (of, _) in self._tasks().items():
            if of == array and other != task:
                self._forget(other, TASK)
        self._make_folder()
        files.write(self._folder / f"{task}.{TASK}", f"{array} {_mark(own)}\n", mode=0o644)

    def task_of(self, array: int, own: Allocation) -> int | None:
        """The task that owns the array's entry in the plugin's file; None if unknown."""
        found = (task for task, known in self._tasks().items() if known == (array, _mark(own)))
        return next(found, None)

    def forget(self, job: int) -> None:
        """Removes all notes on a job."""
        for what in KINDS:
            self._forget(job, what)

    def by_job(self, owned: Mapping[int, Allocation]) -> dict[int, Allocation]:
        """The plugin's entries by job, with an array's entry under the number of the task that owns it."""
        jobs = dict(owned)
        for task, (array, mark) in self._tasks().items():
            if task not in owned and array in jobs and _mark(jobs[array]) == mark:
                jobs[task] = jobs.pop(array)
        return jobs

    def ending(self) -> set[int]:
        """The jobs whose nodes are still ending their processes."""
        return self._jobs(ENDING)

    def ended(self) -> set[int]:
        """The jobs whose nodes are free."""
        return self._jobs(ENDED)

    def jobs(self) -> set[int]:
        """The jobs with any note."""
        return {job for kind in KINDS for job in self._jobs(kind)}

    def _jobs(self, kind: str) -> set[int]:
        names = [path.name.partition(".") for path in self._folder.glob(f"*.{kind}")]
        return {int(number) for number, _, what in names if number.isdigit() and what == kind}

    def _tasks(self) -> dict[int, tuple[int, str]]:
        """By task: its array, and a digest of the task's nodes and links."""
        return dict(self._read_tasks())

    def _read_tasks(self) -> Iterator[tuple[int, tuple[int, str]]]:
        for task in sorted(self._jobs(TASK)):
            # Another process may have removed the file.
            with contextlib.suppress(OSError, ValueError):
                array, mark = (self._folder / f"{task}.{TASK}").read_text().split()
                yield task, (int(array), mark)

    def _forget(self, job: int, what: str) -> None:
        (self._folder / f"{job}.{what}").unlink(missing_ok=True)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o755, exist_ok=True)


def _mark(own: Allocation) -> str:
    """A digest that differs for other nodes or links."""
    return hashlib.sha256(json.dumps([sorted(own.nodes), own.links]).encode()).hexdigest()
