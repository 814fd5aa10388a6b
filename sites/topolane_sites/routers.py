"""The HTTP routes that change a manager: orders, clusters, reports."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field
from topolane.mpi.counts import WatchedProgram
from topolane.reading import MOST_CORES

from topolane_sites.arrivals import ClusterArrival, like
from topolane_sites.gate import OPERATOR
from topolane_sites.manager import Manager
from topolane_sites.report_parsing import MOST_GUESTS, MOST_TUNNELS, check_measured

Answer = dict[str, Any]


class GuestOnHost(BaseModel):
    """A guest, as its host reports it."""

    model_config = ConfigDict(extra="allow")
    name: str
    cores: int = Field(gt=0)
    memory: int = Field(gt=0, description="bytes")
    cluster: str = ""
    state: str = "running"
    address: str = ""
    dirty: float | None = Field(None, ge=0, description="bytes of memory rewritten a second")
    # Also features, cpu (busy cores), sent and received (bytes a second): see `check_measured`.


class Tunnel(BaseModel):
    """A cluster's tunnel that ends on a host."""

    cluster: str = Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=255)
    runs: bool
    restarts: int = Field(ge=0, description="how often it was started again since the last `sites up`")


class HostReport(BaseModel):
    """The report of a host. Additional fields are stored and shown."""

    model_config = ConfigDict(extra="allow")
    site: str
    cores: int = Field(gt=0)
    memory: int = Field(gt=0, description="bytes")
    driver: str | None = Field(None, description="if given, it must be the one of the sites file")
    guests: list[GuestOnHost] = Field([], max_length=MOST_GUESTS)
    tunnels: list[Tunnel] = Field([], max_length=MOST_TUNNELS)


class Remaining(BaseModel):
    """How long a program is expected to run on."""

    seconds: float = Field(ge=0, lt=1e10)


class Wanted(BaseModel):
    """A cluster that is about to be built."""

    guests: int = Field(gt=0, le=100_000)
    cores: int = Field(gt=0, le=MOST_CORES, description="of each guest")
    memory: int = Field(gt=0, lt=1 << 62, description="bytes of each guest")
    sites: list[str] = Field([], description="those it may use; none for all")
    like: str = Field("", description="name of a program that was watched before")
    remaining: float = Field(3600.0, ge=0, lt=1e10, description="seconds it is expected to run")
    beside: list[str] = Field(
        [], max_length=100_000, description="hosts of the cluster's guests that run already, one for each"
    )


class Hold(BaseModel):
    """A command that changes a cluster."""

    owner: str = Field(min_length=1, max_length=255)
    seconds: float = Field(gt=0, le=60, description="how long, unless it is asked for again")


def orders(manager: Manager) -> APIRouter:
    """Routes that make the manager do something."""
    router = APIRouter(tags=["order"])

    @router.post("/plan")
    async def plan() -> Answer:
        """Makes a plan and stores it to be applied. Moves nothing."""
        return (await manager.propose()).json()

    @router.post("/plans/{id}/apply")
    async def apply(id: str) -> Answer:
        """Journals the moves of a plan. They start at the next look."""
        if id not in manager.plans:
            raise HTTPException(404, f"no plan is called {id}")
        if manager.dry_run:
            raise HTTPException(409, "this manager runs dry: it moves nothing")
        return {"moves": manager.apply(manager.plans[id])}

    @router.post("/place")
    async def place(wanted: Wanted) -> Answer:
        """Hosts for the guests of a cluster that is about to be built. Builds and reserves nothing."""
        hosts = await manager.place(_arrival(manager, wanted))
        if not hosts:
            raise HTTPException(409, f"there is no room for {wanted.guests} such guests now")
        return {"hosts": hosts}

    @router.post("/room")
    async def room(wanted: Wanted) -> Answer:
        """A stored plan, after whose moves such a cluster fits on one site (`room`). Moves nothing."""
        return (await manager.make_room(_arrival(manager, wanted))).json()

    @router.post("/pause")
    async def pause() -> Answer:
        """Pauses planning and starting moves. Running moves continue."""
        manager.pause(True)
        return {"paused": True}

    @router.post("/resume")
    async def resume() -> Answer:
        """Resumes planning and starting moves."""
        manager.pause(False)
        return {"paused": False}

    @router.put("/programs/{id}/remaining")
    async def remaining(id: str, body: Remaining) -> Answer:
        """Declares how long a program will run on [default: as long as it has run]."""
        manager.declare(program_named(manager, id).id, body.seconds)
        return {"seconds": body.seconds}

    return router


def _arrival(manager: Manager, wanted: Wanted) -> ClusterArrival:
    """Raises HTTPException for a site that is not known."""
    unknown = set(wanted.sites) - set(manager.inventory.sites)
    if unknown:
        raise HTTPException(422, f"{min(unknown)!r} is no site of this manager")
    cut = like(manager.receiver.programs.values(), wanted.like)
    fields = wanted.model_dump(exclude={"like", "sites", "beside"})
    return ClusterArrival(**fields, sites=tuple(wanted.sites), cut=cut, cluster_hosts=tuple(wanted.beside))


def clusters(manager: Manager) -> APIRouter:
    """Routes of virtual clusters."""
    router = APIRouter(prefix="/clusters", tags=["clusters"])
    inventory = manager.inventory

    @router.get("")
    async def clusters() -> Answer:
        """All clusters by name."""
        return inventory.clusters

    @router.get("/{name}")
    async def cluster(name: str) -> Answer:
        """One cluster, as it was stored."""
        if name not in inventory.clusters:
            raise HTTPException(404, f"no cluster is called {name}")
        return inventory.clusters[name]

    @router.put("/{name}")
    async def put(name: str, body: dict[str, Any], owner: str = "") -> Answer:
        """Stores a cluster and its `guests` (name, cores, memory, host, address)."""
        _check_free(manager, name, owner)
        try:
            _check_kept(body)
            changes = inventory.put_cluster(name, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HTTPException(422, f"cluster {name}: {error}") from error
        for text in changes:
            manager.journal.tell("cluster", name, text)
        return body

    @router.delete("/{name}")
    async def drop(name: str, owner: str = "") -> Answer:
        """Deletes a cluster and its guests."""
        _check_free(manager, name, owner)
        if not inventory.drop_cluster(name):
            raise HTTPException(404, f"no cluster is called {name}")
        return {"dropped": name}

    @router.post("/{name}/hold")
    async def hold(name: str, body: Hold) -> Answer:
        """Holds a cluster for the command that changes it: no move of its guests begins, and other commands do
        not change it. Answers with the holder, and the guests whose moves had begun before.
        """
        manager.holds.take(name, body.owner, body.seconds)
        moving = [guest for guest in manager.moves.begun if _cluster_of(manager, guest) == name]
        return {"holder": manager.holds.holder(name), "moving": sorted(moving)}

    @router.delete("/{name}/hold")
    async def free(name: str, owner: str) -> Answer:
        """Ends a hold."""
        manager.holds.free(name, owner)
        return {"holder": manager.holds.holder(name)}

    return router


def _check_free(manager: Manager, cluster: str, owner: str) -> None:
    """Raises HTTPException if another command holds the cluster."""
    holder = manager.holds.holder(cluster)
    if holder not in (None, owner):
        raise HTTPException(409, f"cluster {cluster} is being changed by another command ({holder})")


def _cluster_of(manager: Manager, guest: str) -> str | None:
    found = manager.inventory.guests.get(guest)
    return found.cluster if found else None


def reports(manager: Manager) -> APIRouter:
    """Routes of reports from the daemons of hosts and guests."""
    router = APIRouter(tags=["report"])

    @router.post("/hosts/{name}/report")
    async def host(name: str, report: HostReport, request: Request) -> Answer:
        """Accepts the report of a host's daemon, every few seconds. The token for reports cannot add a new
        host.
        """
        inventory = manager.inventory
        try:
            fields = report.model_dump()
            check_measured(fields)
            _check_kept(fields)
            changes = inventory.host_report(name, fields, may_add=request.scope[OPERATOR])
        except PermissionError as error:
            raise HTTPException(403, f"host {name}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise HTTPException(422, f"host {name}: {error}") from error
        for text in changes:
            manager.journal.tell("host", name, text)
        await asyncio.to_thread(inventory.write)
        return {"taken": True}

    @router.post("/guests/{name}/report")
    async def guest(name: str, report: dict[str, Any]) -> Answer:
        """Accepts the report of a guest's daemon on what runs there."""
        if manager.inventory.guest_of(name) is None:
            raise HTTPException(404, f"no guest is called {name}")
        try:
            _check_kept(report)
        except ValueError as error:
            raise HTTPException(422, f"guest {name}: {error}") from error
        manager.inventory.guest_report(name, report)
        return {"taken": True}

    return router


def _check_kept(body: dict[str, Any]) -> None:
    """Raises ValueError for values that an answer cannot contain: the parser accepts more than JSON."""
    json.dumps(body, allow_nan=False, ensure_ascii=False).encode()


def program_named(manager: Manager, id: str) -> WatchedProgram:
    """A program by its id. Raises HTTPException if there is none."""
    found = manager.program(id)
    if found is None:
        raise HTTPException(404, f"no program is called {id}")
    return found
