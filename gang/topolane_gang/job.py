"""A job of an agent, as its owner sees it."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane_gang.agent import Agent
    from topolane_gang.control_groups import OwnGroup
    from topolane_gang.xen import Taken

POLL = 0.02
"""Seconds between two checks."""


class AgentJob:
    """A job of an agent."""

    def __init__(
        self,
        agent: Agent,
        name: str,
        id: int,
        pid: int | None,
        process: Any = None,
        groups: Sequence[OwnGroup] = (),
        domain: Taken | None = None,
    ) -> None:
        self.name, self.id, self.pid, self.groups, self.domain = name, id, pid, tuple(groups), domain
        """pid: of its first process; None for threads, groups and domains. groups: those in which it was adopted.
        domain: of Xen, if it is one.
        """
        self._agent, self._process = agent, process

    @property
    def started(self) -> bool:
        """Whether the agent started it; otherwise it was adopted."""
        return self._process is not None

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for its end. Returns the exit code of its first process, as in `subprocess`; None if it was
        adopted.

        Raises TimeoutError after `timeout` seconds.

        """
        if self._process is not None:
            try:
                return int(self._process.wait(timeout))
            except subprocess.TimeoutExpired as error:
                raise TimeoutError(f"job {self.name} has not ended within {timeout} s") from error
        until = None if timeout is None else time.monotonic() + timeout
        while self.state() not in ("ended", "lost", "gone"):
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"job {self.name} has not ended within {timeout} s")
            time.sleep(POLL)
        return None

    def returned(self) -> int | None:
        """The exit code of its first process; None while it runs, or if it was adopted."""
        return None if self._process is None else self._process.poll()

    def state(self) -> str:
        """running, filling, stopped, released, ended, lost; or gone, if the agent no longer knows it."""
        return next((one.state for one in self._agent.jobs() if one.id == self.id), "gone")
