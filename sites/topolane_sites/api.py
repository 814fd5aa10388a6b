"""The HTTP interface of a manager; /openapi.json describes it."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from topolane.mpi.counts import KINDS

from topolane_sites import traffic_views, views
from topolane_sites.accuracy import summary
from topolane_sites.gate import ManagerGate
from topolane_sites.manager import Manager
from topolane_sites.metrics import exposition
from topolane_sites.routers import clusters, orders, program_named, reports
from topolane_sites.state import StateError

Answer = dict[str, Any]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Days = Annotated[float, Query(gt=0, le=36_500)]
Kind = Annotated[int, Query(ge=0, lt=len(KINDS))]


def create(
    manager: Manager, *, token: str | None, report_token: str | None, read_token: str | None, loopback: bool
) -> FastAPI:
    """The application, behind its `ManagerGate`.

    token: allows all requests; None for a socket that only its owner can open. report_token: allows reports
    only. read_token: allows GET only. loopback: answer only to names of this machine, so that a web page in a local browser cannot use
    another name.
    """
    # A browser cannot show a token, so there is no page to look at; /openapi.json is for programs.
    shown_in_schema = [Depends(HTTPBearer(auto_error=False))]
    app = FastAPI(
        title="Topolane sites", version="1", docs_url=None, redoc_url=None, dependencies=shown_in_schema
    )
    app.include_router(_looks(manager))
    app.include_router(orders(manager))
    app.include_router(clusters(manager))
    app.include_router(reports(manager))
    app.add_exception_handler(StateError, _state_failed)
    app.add_middleware(ManagerGate, token=token, report_token=report_token, read_token=read_token)
    if loopback:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]", "::1"])
    return app


def _state_failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": f"the database: {error}"}, 503)


def _looks(manager: Manager) -> APIRouter:
    router = APIRouter(tags=["look"])

    @router.get("/status")
    async def status() -> Answer:
        """The state of the manager, its present activity and its latest events."""
        return views.status(manager)

    @router.get("/sites")
    async def sites() -> list[Answer]:
        """Hosts, cores, guests and links of every site."""
        return views.sites(manager)

    @router.get("/hosts")
    async def hosts() -> list[Answer]:
        """Every host with its newest report."""
        return views.hosts(manager)

    @router.get("/guests")
    async def guests() -> list[Answer]:
        """Every guest, its host, and its newest report."""
        return views.guests(manager)

    @router.get("/programs")
    async def programs(ended: bool = False) -> list[Answer]:
        """The running programs; with `ended`, also the stored ones that have ended."""
        known = manager.receiver.programs
        answer = [views.program(manager, one) for one in known.values() if ended or one.ended is None]
        if ended:
            answer += [_kept(row) for row in manager.state.programs() if row["id"] not in known]
        return answer

    @router.get("/programs/{id}")
    async def program(id: str) -> Answer:
        """One program in figures."""
        return views.program(manager, program_named(manager, id))

    @router.get("/programs/{id}/matrix", response_class=PlainTextResponse)
    async def matrix(id: str, kind: Kind | None = None, recent: bool = False) -> str:
        """The communication matrix, as CSV that `topolane traffic` reads; with `recent`, the present rates
        per second.
        """
        one = program_named(manager, id)
        return await asyncio.to_thread((one.rates(kind) if recent else one.matrix(kind)).csv)

    @router.get("/accuracy")
    async def accuracy() -> Answer:
        """Predicted and measured gains of the moves that were made, oldest first, and the mean error."""
        return summary(manager.accuracy.comparisons)

    @router.get("/traffic")
    async def traffic(days: Days = 30) -> list[Answer]:
        """The programs that run, or ended in the last `days` days, newest first."""
        return traffic_views.rows(manager, time.time() - 86400 * days)

    @router.get("/traffic/{id}")
    async def traffic_of(id: str) -> Answer:
        """The bytes that the hosts of a program sent to each other."""
        return traffic_views.traffic(manager, program_named(manager, id))

    @router.get("/explain/{id}")
    async def explain(id: str) -> Answer:
        """Why a program runs where it runs."""
        return views.explain(manager, program_named(manager, id))

    @router.get("/plans")
    async def plans() -> list[Answer]:
        """The plans that can be applied, newest first."""
        return [plan.json() for plan in sorted(manager.plans.values(), key=lambda one: -one.made)]

    @router.get("/moves")
    async def moves(limit: Limit = 100) -> list[Answer]:
        """The journal of moves, newest first."""
        running = {move.id: move for move in manager.moves.under_way}
        return [
            {**dataclasses.asdict(running.get(move.id, move)), "changed": changed}
            for move, changed in manager.state.moves(limit)
        ]

    @router.get("/events")
    async def events(limit: Limit = 100) -> list[Answer]:
        """The events, newest first."""
        return manager.journal.newest(limit)

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        body, kind = exposition(manager)
        return Response(body, media_type=kind)

    return router


def _kept(row: dict[str, Any]) -> Answer:
    return {key: row[key] for key in ("id", "name", "ranks", "started", "ended", "mpi", "epoch")}
