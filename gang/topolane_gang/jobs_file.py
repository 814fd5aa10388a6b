"""The jobs file: TOML, a table [[job]] for each job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from topolane import reading
from topolane._engine import InputError

MOST_THREADS = 1 << 20
LEAST_WEIGHT, MOST_WEIGHT = 1e-3, 1e3


@dataclass(frozen=True)
class JobSpec:
    """The description of a job to start."""

    name: str
    command: tuple[str, ...]
    threads: int = 1
    weight: float = 1.0
    directory: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    watch: bool = False
    """Whether to count how often the ranks of an MPI program meet."""


def read(path: str | Path) -> list[JobSpec]:
    """The jobs of a file. Raises InputError that names the file, the line and the value."""
    top = reading.read(path)
    tables = top.tables("job")
    jobs: list[JobSpec] = []
    for table in tables:
        name = table.name("name")
        if any(job.name == name for job in jobs):
            raise table.refuse("name", f"{name!r} is the name of another job already")
        directory = table.word("directory", "") or None
        if directory is not None:
            directory = str(Path(path).parent / directory)
            if not Path(directory).is_dir():
                raise table.refuse("directory", f"{directory!r} is no directory")
        environment = table.texts("environment")
        if any("=" in key or "\0" in key + value for key, value in environment.items()):
            raise table.refuse(
                "environment", f"{environment!r} has a name or a value that no environment takes"
            )
        command = table.words("command")
        if not command:
            raise table.refuse("command", "must not be empty")
        threads = table.whole("threads", 1, MOST_THREADS, 1)
        weight = table.number("weight", LEAST_WEIGHT, MOST_WEIGHT, 1.0)
        watch = table.flag("watch", False)
        table.done()
        jobs.append(JobSpec(name, command, threads, weight, directory, environment, watch))
    top.done()
    if not jobs:
        raise InputError(f"{path}: has no job: give tables [[job]] with name and command")
    return jobs
