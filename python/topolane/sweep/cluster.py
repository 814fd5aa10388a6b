"""A sweep on a Dask cluster.

Workers get the content of the files that a task names, so they need none of them. If a worker ends, Dask runs
its tasks on another one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane import extras
from topolane._engine import InputError
from topolane.sweep import task_files
from topolane.sweep.build import build, version

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

PATIENCE = 30
"""Seconds to wait for the first worker."""


def answers(
    function: Callable[[Any], Any], tasks: Sequence[Any], executor: str, workers: int
) -> Generator[tuple[int, Any], None, None]:
    """Yields the answer of the function to each task when it is there, with the index of the task."""
    scheme, separator, host = executor.partition("://")
    if scheme != "dask" or not separator:
        raise InputError(f"executor {executor!r} is neither dask://HOST:PORT nor dask://")
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise extras.missing(f"executor {executor!r}", "dask", error) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        client = stack.enter_context(_client(distributed, host, workers, stack))
        _check_workers(client, host)
        names = {name for task in tasks for name in task_files.named(task)}
        content = client.submit(dict, task_files.read(sorted(names)), pure=False)
        places = {}
        for place, task in enumerate(tasks):
            sent = _absolute(task, names)
            places[client.submit(_on_worker, function, sent, content, build(), pure=False)] = place
        coming = distributed.as_completed(list(places))
        for future in coming:
            place = places.pop(future)
            yield place, _result(distributed, future, tasks[place], host)


def _client(distributed: Any, host: str, workers: int, stack: contextlib.ExitStack) -> Any:
    """A client of the scheduler at `host`; without a host, of a cluster on this machine that ends with the
    stack.
    """
    if not host:
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        return distributed.Client(stack.enter_context(cluster))
    try:
        return distributed.Client(f"tcp://{host}", timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {host}: {error}") from error


def _check_workers(client: Any, host: str) -> None:
    """Raises InputError if there is no worker, or if a worker has another build than this one. `_on_worker`
    checks workers that come later.
    """

    # Dask sends a nested function as code, so the worker need not have this module.
    def said() -> tuple[str, str] | None:
        try:
            from topolane.sweep.build import build, version
        except ImportError:
            return None
        return version(), build()

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        builds = client.run(said, on_error="return")
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"the Dask scheduler at {host} has no worker that answers within {PATIENCE} s"
        ) from error
    for worker, found in builds.items():
        if found is None:
            raise InputError(f"Dask worker {worker} has no Topolane of this version, {version()}")
        if isinstance(found, tuple):
            _check_build(worker, found[0], found[1], build())


def _check_build(worker: str, its_version: str, its_build: str, wanted: str) -> None:
    if its_build != wanted:
        raise InputError(
            f"Dask worker {worker} has another build of Topolane ({its_version}): its runs could differ; install the "
            "same build everywhere"
        )


def _absolute(task: Any, names: set[str]) -> Any:
    """The task with absolute paths for the files in `names`, and with the queue configuration next to the log
    given explicitly.
    """

    def place(name: str) -> str:
        path = os.path.abspath(name)
        return path if path in names else name

    return task_files.moved(dataclasses.replace(task, queue_config=task.config_of_queue()), place)


def _on_worker(function: Callable[[Any], Any], task: Any, content: dict[str, bytes], wanted: str) -> Any:
    """Runs a task on a worker, with files of this content."""
    from distributed import get_worker

    worker = get_worker()
    _check_build(worker.address, version(), build(), wanted)
    folder = _written(Path(worker.local_directory), content)
    try:
        return function(task_files.moved(task, lambda name: folder + name if name in content else name))
    except InputError as error:
        raise InputError(str(error).replace(folder, "")) from error


def _written(base: Path, content: dict[str, bytes]) -> str:
    """A folder of the worker with these files. The first task on the worker writes it."""
    digest = hashlib.sha256(repr(sorted(content.items())).encode()).hexdigest()
    folder = base / f"topolane-{digest}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=base) as draft:
            for name, data in content.items():
                path = Path(draft + "/files" + name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            Path(draft, "files").mkdir(exist_ok=True)
            with contextlib.suppress(OSError):  # another task of this worker has written it meanwhile
                os.rename(Path(draft, "files"), folder)
    return str(folder)


def _result(distributed: Any, future: Any, task: Any, host: str) -> Any:
    """The answer of a task that has ended. Raises InputError if the scheduler or the workers are gone."""
    import concurrent.futures

    run = f"{task.policy}, {task.queue}, seed {task.seed}"
    try:
        return future.result()
    except distributed.scheduler.KilledWorker as error:
        raise ChildProcessError(
            f"{run}: every Dask worker that ran it ended ({error.allowed_failures + 1} of them): too little memory?"
        ) from error
    except (concurrent.futures.CancelledError, OSError) as error:
        raise InputError(f"the Dask scheduler at {host or 'this machine'} went away: {error}") from error
    except (ImportError, AttributeError) as error:
        raise InputError(f"{run}: a Dask worker cannot run it: {error}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Dask's log messages about ended workers off standard error."""
    # Several of Dask's loggers have a level of their own.
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    before = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in before:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)
