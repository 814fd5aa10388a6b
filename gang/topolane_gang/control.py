"""The protocol of an agent's daemon: a Unix socket, one line of JSON each way, and open files passed with it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from topolane._engine import InputError
from topolane.parsing import parse_json

from topolane_gang import agent_files

LONGEST = 1 << 22
"""Most bytes of a line: an environment may be long."""
PATIENCE = 30.0
"""Seconds. A job may take its grace period to end."""


def default_socket() -> str:
    """The default socket of this user's agent."""
    return str(agent_files.directory() / "control")


def ask(path: str, request: dict[str, Any], files: Sequence[int] = ()) -> Any:
    """The daemon's answer. Raises InputError if it refuses, or if no daemon listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        try:
            connection.connect(path)
        except OSError as error:
            raise InputError(
                f"{path}: no agent listens there ({error.strerror}): start one with `topolane gang run`"
            ) from error
        try:
            line = json.dumps(request).encode() + b"\n"
            rest = line[socket.send_fds(connection, [line], files) :]
            if rest:
                connection.sendall(rest)
            answer = parse_json(received(connection, b"").decode(), path)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: the agent did not answer: {error}") from error
    if "refused" in answer:
        raise InputError(answer["refused"])
    return answer.get("answer")


def received(connection: socket.socket, so_far: bytes) -> bytes:
    """The rest of a line. Raises ValueError if it is too long."""
    while not so_far.endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            break
        so_far += part
        if len(so_far) > LONGEST:
            raise ValueError("the line is too long")
    return so_far


def listening(path: str) -> socket.socket:
    """A socket that only this user may open. Raises InputError if another agent already listens on it."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        if _answers(path):
            raise InputError(f"{path}: another agent listens there: add jobs to it, or give another --socket")
        with contextlib.suppress(FileNotFoundError):
            if Path(path).is_socket():
                os.unlink(path)
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(f"{path}: cannot be listened on: {error.strerror or error}") from error
    except BaseException:  # an interrupt must not leave the socket open
        listener.close()
        raise
    return listener


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as trying:
        return trying.connect_ex(path) == 0


def user_of(connection: socket.socket) -> int:
    """The user id at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
