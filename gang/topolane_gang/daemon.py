"""The daemon of an agent: serves requests until its jobs have ended or a request stops it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topolane._engine import InputError
from topolane.parsing import parse_json

from topolane_gang import control, xen
from topolane_gang.agent import Agent, AgentJob
from topolane_gang.control_groups import OwnGroup
from topolane_gang.status import agent_status

_CLIENT_PATIENCE = 10.0


class Daemon:
    """Answers requests to an agent on a socket."""

    def __init__(self, agent: Agent, listener: socket.socket) -> None:
        self._agent, self._listener = agent, listener
        self.stopping = threading.Event()
        """Set when a client has asked the agent to end."""
        threading.Thread(target=self._accept, name="gang-control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed: the daemon ends
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        files: list[int] = []
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_CLIENT_PATIENCE)
            try:
                if control.user_of(connection) not in (os.geteuid(), 0):
                    raise InputError("the agent is another user's")
                line, files, _, _ = socket.recv_fds(connection, 65536, 8)
                request = parse_json(control.received(connection, line).decode(), "request")
                answer = {"answer": self._answer(request, files)}
            except InputError as error:
                answer = {"refused": str(error)}
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                answer = {"refused": f"the request cannot be understood: {error!r}"}
            finally:
                for file in files:
                    os.close(file)
            connection.settimeout(_CLIENT_PATIENCE)
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict[str, Any], files: list[int]) -> Any:
        match request["do"]:
            case "show":
                return agent_status(self._agent)
            case "add":
                return self._add(request, files).id
            case "stop" if request.get("job") is None:
                self.stopping.set()
                return []
            case "stop":
                jobs = list(self._named(request["job"]))
                for job in jobs:
                    self._agent.end(job, request.get("grace", 5.0))
                return [job.name for job in jobs]
            case other:
                raise InputError(f"the agent knows no request {other!r}")

    def _add(self, request: dict[str, Any], files: list[int]) -> AgentJob:
        name, weight = str(request["name"]), float(request["weight"])
        threads = request.get("threads")
        if "domain" in request:
            return self._agent.adopt_domain(name, xen.domain(str(request["domain"])), weight=weight)
        if "tids" in request:
            tids = [int(tid) for tid in request["tids"]]
            return self._agent.adopt(name, threads=tids, count=threads, weight=weight)
        if "groups" in request:
            groups = [OwnGroup(Path(group)) for group in request["groups"]]
            return self._agent.adopt_groups(name, groups, count=threads, weight=weight)
        if "pids" in request:
            pids = [int(pid) for pid in request["pids"]]
            return self._agent.adopt(name, pids, count=threads or len(self._agent.cores), weight=weight)
        return self._agent.start(
            name,
            [str(word) for word in request["command"]],
            threads=int(threads or len(self._agent.cores)),
            weight=weight,
            directory=request["directory"],
            environment=request["environment"],
            whole_environment=True,
            output=files[0],
            errors=files[1],
            watch=bool(request.get("watch", False)),
        )

    def _named(self, name: str) -> Iterator[AgentJob]:
        """Jobs by name or number. Raises InputError if there is none."""
        found = [one for one in self._agent.jobs() if name in (one.name, str(one.id))]
        if not found:
            raise InputError(f"no job is called {name!r}")
        for one in found:
            with contextlib.suppress(KeyError):
                yield self._agent.job(one.id)
