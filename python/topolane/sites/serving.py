"""Serving a manager: its HTTP interface beside its loop, until a signal ends both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from topolane._engine import InputError
from topolane.mpi.address import Address, bound_socket
from topolane.sites.api import create
from topolane.sites.files import Config
from topolane.sites.manager import Manager
from topolane.sites.state import State
from topolane.sites.unhurried import Unhurried


class _Server(uvicorn.Server):
    """One that leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(config: Config, *, dry_run: bool = False) -> None:
    """Runs a manager until SIGTERM or SIGINT. Raises InputError where it cannot begin."""
    state = State(config.state)
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Unhurried())) as runner:
            runner.run(_serve(config, state, dry_run))
    finally:
        state.close()


async def _serve(config: Config, state: State, dry_run: bool) -> None:
    stopping = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, stopping.set)
    manager = Manager(config, state, dry_run=dry_run, say=_say)
    servers = [_server(manager, address) for address in config.listen]
    serving = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in servers]
    try:
        await manager.run(stopping)
    finally:
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        for address in config.listen:
            if address.path is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(address.path)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(line, file=sys.stderr, flush=True)


def _server(manager: Manager, address: Address) -> tuple[_Server, socket.socket]:
    config = manager.config
    is_tcp = address.path is None
    app = create(
        manager,
        token=config.token if is_tcp else None,
        report_token=config.report_token,
        loopback=is_tcp and address.is_local,
    )
    try:
        settings = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=3,
            ssl_certfile=config.certificate if is_tcp else None,
            ssl_keyfile=config.key if is_tcp else None,
        )
        settings.load()
    except OSError as error:
        raise InputError(
            f"certificate {config.certificate}, key {config.key}: {error.strerror or error}"
        ) from error
    return _Server(settings), _bound(address)


def _bound(address: Address) -> socket.socket:
    try:
        if address.path is not None:
            return bound_socket(address.path)  # whoever may open it may move machines
        return socket.create_server(
            (address.host, address.port), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
        )
    except OSError as error:
        raise InputError(f"{address}: nothing can listen there: {error.strerror}") from error
