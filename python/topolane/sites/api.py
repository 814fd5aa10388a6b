"""The HTTP interface of a manager; its pages /docs and /openapi.json describe it."""

from __future__ import annotations

import asyncio
import dataclasses
import hmac
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from topolane.sites import shown
from topolane.sites.arriving import Arrival, like
from topolane.sites.manager import Manager
from topolane.sites.metrics import exposition
from topolane.sites.state import StateError

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Answer = dict[str, Any]


class GuestOnHost(BaseModel):
    """A guest, as its host sees it."""

    model_config = ConfigDict(extra="allow")
    name: str
    cores: int = Field(gt=0)
    memory: int = Field(gt=0, description="bytes")
    cluster: str = ""
    state: str = "running"
    address: str = ""
    dirty: float | None = Field(None, ge=0, description="bytes of memory rewritten a second")


class HostReport(BaseModel):
    """What a host says of itself. More fields are kept and shown."""

    model_config = ConfigDict(extra="allow")
    site: str
    cores: int = Field(gt=0)
    memory: int = Field(gt=0, description="bytes")
    driver: str = "dry-run"
    address: str = ""
    guests: list[GuestOnHost] = []


class Remaining(BaseModel):
    """How long a program is expected to run on."""

    seconds: float = Field(ge=0, lt=1e10)


class Wanted(BaseModel):
    """A cluster that is about to be built."""

    guests: int = Field(gt=0, le=100_000)
    cores: int = Field(gt=0, description="of each guest")
    memory: int = Field(gt=0, lt=1 << 62, description="bytes of each guest")
    sites: list[str] = Field([], description="those it may use; none for all")
    like: str = Field("", description="name of a program that was watched before")
    remaining: float = Field(3600.0, ge=0, lt=1e10, description="seconds it is expected to run")


def create(manager: Manager, *, token: str | None, report_token: str | None, loopback: bool) -> FastAPI:
    """The application. With a token, whoever asks must show it; for reports, `report_token` will do as well.

    loopback: answers only to names of this machine, so that no page in a browser here can ask by another name.
    """
    app = FastAPI(title="Topolane sites", version="1")
    if loopback:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]", "::1"])
    operator = [Depends(_shows(token))] if token else []
    reporter = [Depends(_shows(token, report_token))] if token else []
    app.include_router(_looks(manager), dependencies=operator)
    app.include_router(_orders(manager), dependencies=operator)
    app.include_router(_clusters(manager), dependencies=operator)
    app.include_router(_reports(manager), dependencies=reporter)
    app.add_exception_handler(StateError, _state_failed)
    return app


def _shows(*tokens: str | None) -> Callable[[Bearer], None]:
    def check(bearer: Bearer) -> None:
        given = (bearer.credentials if bearer else "").encode()
        if not any(token and hmac.compare_digest(given, token.encode()) for token in tokens):
            raise HTTPException(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})

    return check


def _state_failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": f"the database: {error}"}, 503)


def _looks(manager: Manager) -> APIRouter:
    router = APIRouter(tags=["look"])

    @router.get("/status")
    async def status() -> Answer:
        """How the manager fares, what it does and what has happened last."""
        return shown.status(manager)

    @router.get("/sites")
    async def sites() -> list[Answer]:
        """Hosts, cores, guests and links of every site."""
        return shown.sites(manager)

    @router.get("/hosts")
    async def hosts() -> list[Answer]:
        """Every host with its newest report."""
        return shown.hosts(manager)

    @router.get("/guests")
    async def guests() -> list[Answer]:
        """Every guest, where it is, and its newest report."""
        return shown.guests(manager)

    @router.get("/programs")
    async def programs(ended: bool = False) -> list[Answer]:
        """The programs that run; with `ended`, those as well that are kept."""
        known = manager.receiver.programs
        answer = [shown.program(manager, one) for one in known.values() if ended or one.ended is None]
        if ended:
            answer += [_kept(row) for row in manager.state.programs() if row["id"] not in known]
        return answer

    @router.get("/programs/{id}")
    async def program(id: str) -> Answer:
        """One program in figures."""
        return shown.program(manager, _program(manager, id))

    @router.get("/programs/{id}/matrix", response_class=PlainTextResponse)
    async def matrix(id: str, kind: int | None = None, recent: bool = False) -> str:
        """Who sent to whom, as CSV that `topolane traffic` reads; with `recent`, each second now."""
        one = _program(manager, id)
        return await asyncio.to_thread((one.rates(kind) if recent else one.matrix(kind)).csv)

    @router.get("/explain/{id}")
    async def explain(id: str) -> Answer:
        """Why a program runs where it runs."""
        return shown.explain(manager, _program(manager, id))

    @router.get("/plans")
    async def plans() -> list[Answer]:
        """The plans that can be applied, the newest first."""
        return [plan.json() for plan in sorted(manager.plans.values(), key=lambda one: -one.made)]

    @router.get("/moves")
    async def moves(limit: int = 100) -> list[Answer]:
        """The journal of moves, the newest first."""
        running = {move.id: move for move in manager.moves.under_way}
        return [
            {**dataclasses.asdict(running.get(move.id, move)), "changed": changed}
            for move, changed in manager.state.moves(limit)
        ]

    @router.get("/events")
    async def events(limit: int = 100) -> list[Answer]:
        """What has happened, the newest first."""
        return manager.journal.newest(limit)

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """For Prometheus."""
        body, kind = exposition(manager)
        return Response(body, media_type=kind)

    return router


def _orders(manager: Manager) -> APIRouter:
    router = APIRouter(tags=["order"])

    @router.post("/plan")
    async def plan() -> Answer:
        """Makes a plan now and keeps it to be applied; moves nothing."""
        return (await manager.propose()).json()

    @router.post("/plans/{id}/apply")
    async def apply(id: str) -> Answer:
        """Journals the moves of a plan; they are made from the next look on."""
        if id not in manager.plans:
            raise HTTPException(404, f"no plan is called {id}")
        if manager.dry_run:
            raise HTTPException(409, "this manager runs dry: it moves nothing")
        return {"moves": manager.apply(manager.plans[id])}

    @router.post("/place")
    async def place(wanted: Wanted) -> Answer:
        """Hosts for the guests of a cluster that is about to be built. Builds and books nothing."""
        unknown = set(wanted.sites) - set(manager.inventory.sites)
        if unknown:
            raise HTTPException(422, f"{min(unknown)!r} is no site of this manager")
        cut = like(manager.receiver.programs.values(), wanted.like)
        fields = wanted.model_dump(exclude={"like", "sites"})
        hosts = await manager.place(Arrival(**fields, sites=tuple(wanted.sites), cut=cut))
        if not hosts:
            raise HTTPException(409, f"there is no room for {wanted.guests} such guests now")
        return {"hosts": hosts}

    @router.post("/pause")
    async def pause() -> Answer:
        """Plans no more and starts no move; those that run go on."""
        manager.pause(True)
        return {"paused": True}

    @router.post("/resume")
    async def resume() -> Answer:
        """Goes on."""
        manager.pause(False)
        return {"paused": False}

    @router.put("/programs/{id}/remaining")
    async def remaining(id: str, body: Remaining) -> Answer:
        """Declares how long a program will run on; else as long as it has run."""
        manager.declare(_program(manager, id).id, body.seconds)
        return {"seconds": body.seconds}

    return router


def _clusters(manager: Manager) -> APIRouter:
    router = APIRouter(prefix="/clusters", tags=["clusters"])
    inventory = manager.inventory

    @router.get("")
    async def clusters() -> Answer:
        """All clusters by name."""
        return inventory.clusters

    @router.get("/{name}")
    async def cluster(name: str) -> Answer:
        """One cluster as it was put."""
        if name not in inventory.clusters:
            raise HTTPException(404, f"no cluster is called {name}")
        return inventory.clusters[name]

    @router.put("/{name}")
    async def put(name: str, body: dict[str, Any]) -> Answer:
        """Keeps a cluster; its `guests` (name, cores, memory, host, address) are known from now on."""
        try:
            inventory.put_cluster(name, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HTTPException(422, f"cluster {name}: {error}") from error
        return body

    @router.delete("/{name}")
    async def drop(name: str) -> Answer:
        """Forgets a cluster and its guests."""
        if not inventory.drop_cluster(name):
            raise HTTPException(404, f"no cluster is called {name}")
        return {"dropped": name}

    return router


def _reports(manager: Manager) -> APIRouter:
    router = APIRouter(tags=["report"])

    @router.post("/hosts/{name}/report")
    async def host(name: str, report: HostReport) -> Answer:
        """Taken from the daemon of a host, every few seconds."""
        try:
            told = manager.inventory.host_report(name, report.model_dump())
        except (KeyError, TypeError, ValueError) as error:
            raise HTTPException(422, f"host {name}: {error}") from error
        for text in told:
            manager.journal.tell("host", name, text)
        return {"taken": True}

    @router.post("/guests/{name}/report")
    async def guest(name: str, report: dict[str, Any]) -> Answer:
        """Taken from the daemon in a guest: what runs there."""
        if manager.inventory.guest_of(name) is None:
            raise HTTPException(404, f"no guest is called {name}")
        manager.inventory.guest_report(name, report)
        return {"taken": True}

    return router


def _program(manager: Manager, id: str) -> Any:
    found = manager.program(id)
    if found is None:
        raise HTTPException(404, f"no program is called {id}")
    return found


def _kept(row: dict[str, Any]) -> Answer:
    return {key: row[key] for key in ("id", "name", "ranks", "started", "ended", "mpi", "epoch")}
