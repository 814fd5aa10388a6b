"""A Nova cloud in a process of its own, so that what Nova's test fixtures change reaches no other test."""

from __future__ import annotations

import importlib.util
import logging
import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from waiting import DEADLINE

LOG = logging.getLogger(__name__)
NEEDED = ("nova.tests", "placement", "oslotest", "requests_mock", "ddt", "wsgi_intercept", "testtools")
HOSTS = [f"node{number:02}" for number in range(1, 73)]
LEAVES = [HOSTS[start : start + 18] for start in range(0, 72, 18)]
"""Of the host aggregates; the first two are a pod, and the others."""


class Refused(Exception):
    """What Nova said of servers that it did not place, or of a request that it did not take."""


def missing() -> list[str]:
    """Modules that cannot be had, found without importing them."""
    return [name for name in NEEDED if importlib.util.find_spec(name.partition(".")[0]) is None]


class CloudProcess:
    """Calls the methods of a `nova_cloud.Cloud` there."""

    def __init__(self, hosts: Sequence[str], log: Path, cells: int = 1) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._log = log
        self._process = context.Process(
            target=_serve, args=(other, tuple(hosts), str(log), cells), daemon=True
        )
        self._process.start()
        other.close()
        self._answer()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: object, **named: object) -> Any:
            self._pipe.send((name, arguments, named))
            return self._answer()

        return call

    def _answer(self) -> Any:
        try:
            if not self._pipe.poll(2 * DEADLINE):
                raise TimeoutError(f"no answer within {2 * DEADLINE:g} s, see {self._log}")
            answer, error = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"the cloud is gone:\n{self._log.read_text()[-4000:]}") from None
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        self._pipe.close()
        self._process.join(2 * DEADLINE)
        self._process.kill()


def _serve(pipe: Connection, hosts: Sequence[str], log: str, cells: int) -> None:
    """In the other process: calls until the pipe is closed."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
    import nova.tests.functional  # patches what must be patched before all other imports  # noqa: F401
    from nova_cloud import Cloud

    cloud = Cloud(hosts, cells)
    cloud.start()
    pipe.send((None, None))
    while True:
        try:
            name, arguments, named = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((getattr(cloud, name)(*arguments, **named), None))
        except Refused as refused:
            pipe.send((None, refused))
        except Exception:
            LOG.exception("%s failed", name)
            pipe.send((None, RuntimeError(traceback.format_exc())))
    # Threads and sockets of 72 services need not stop one by one.
    os._exit(0)
