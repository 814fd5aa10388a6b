"""The APIs of a cloud in this process by HTTP on loopback, for commands that use openstacksdk.

Imported where `nova_cloud` is. Served only while a command runs, as are all green threads there.
"""

from __future__ import annotations

import os
import sys
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import eventlet
import eventlet.wsgi
from eventlet.green import subprocess
from waiting import DEADLINE


def served(nova: Any, placement: Any) -> dict[str, str]:
    """The URLs of servers for the fixtures' applications. Every caller is an administrator."""
    from placement import deploy

    return {
        "compute": _served(nova.app()) + urllib.parse.urlsplit(nova.base_url).path,
        "placement": _served(deploy.loadapp(placement.conf_fixture.conf)),
    }


def command(urls: Mapping[str, str], words: Sequence[str], directory: str) -> tuple[int, str, str]:
    """Runs Python with these words, so that openstacksdk finds that cloud: exit code, output and errors."""
    clouds = Path(directory, "clouds.yaml")
    endpoints = "".join(f"    {name}_endpoint_override: {url}\n" for name, url in urls.items())
    clouds.write_text(f"clouds:\n  here:\n    auth_type: none\n{endpoints}")
    child = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"OS_CLIENT_CONFIG_FILE": str(clouds), "OS_CLOUD": "here"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    output, errors = child.communicate(timeout=DEADLINE)
    return child.returncode, output, errors


def _served(application: Callable[..., Any]) -> str:
    """The URL of a server for the application, on loopback."""

    # What the fixtures of Placement and of Nova's API take for a user.
    administrator = {
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_X_AUTH_USER": "admin",
        "HTTP_X_AUTH_PROJECT_ID": "admin",
        "HTTP_X_ROLES": "admin,member,reader",
    }

    def as_administrator(environment: dict[str, Any], start: Callable[..., Any]) -> Any:
        return application(environment | administrator, start)

    socket = eventlet.listen(("127.0.0.1", 0))
    eventlet.spawn(eventlet.wsgi.server, socket, as_administrator, log_output=False)
    return f"http://127.0.0.1:{socket.getsockname()[1]}"
