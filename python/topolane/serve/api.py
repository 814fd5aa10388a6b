"""The HTTP interface of the page. It is read-only: no request changes anything."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from topolane._engine import InputError
from topolane.cluster.accounts import SOCKET
from topolane.cluster.metrics import registry_of
from topolane.serve.feed import PageState, event, packed
from topolane.serve.gate import LOGIN, METRICS, WHO, PageAccess, PageGate, Rate
from topolane.serve.live import Busy, Live
from topolane.serve.metrics import metrics
from topolane.serve.outlook import KNOWN, ForecastQuestion
from topolane.serve.source import picture
from topolane.units import plural
from topolane.web.requests import same

PAGE = Path(__file__).parent / "static"
KEEP_ALIVE = 15.0
"""A viewer to which nothing was sent for this many seconds gets a comment, so that a lost connection is
noticed.
"""
METRICS_KEPT = 1.0
"""Seconds for which one set of metrics serves all scrapes."""
VIEWERS = 200
"""The most viewers at a time."""
VIEWERS_OF_A_USER = 8
"""The most viewers at a time for one user that a proxy names."""
SHARE_OF_A_CLIENT = 0.25
"""The fraction of the viewers' places that one client address may take; several users may share an address.
"""
LONGEST_HOURS = 24.0 * 366
MOST_NODES = 1_000_000
MOST_GPUS = 1024
"""The most GPUs of a node that a question may ask for."""

At = Annotated[float | None, Query(allow_inf_nan=False)]


class ForecastRequest(BaseModel):
    """A request for the forecast of a job that might be submitted."""

    nodes: int = Field(ge=1, le=MOST_NODES)
    hours: float = Field(gt=0, le=LONGEST_HOURS, allow_inf_nan=False)
    policy: str = Field(max_length=100)
    gpus: int | None = Field(default=None, ge=1, le=MOST_GPUS)
    partition: str | None = Field(default=None, max_length=100)
    reservation: str | None = Field(default=None, max_length=100)
    at: float | None = Field(default=None, allow_inf_nan=False)


class ViewerLogin(BaseModel):
    """The token that a viewer sends."""

    token: str = Field(max_length=1024)


def create(live: Live, access: PageAccess, *, viewers: int = VIEWERS) -> FastAPI:
    """The application with its access control (`PageGate`)."""
    app = FastAPI(title="Topolane", docs_url=None, redoc_url=None, openapi_url=None)
    facts = picture(live.source.machine) | _facts(live)
    machine = packed(facts)
    measured = registry_of(lambda: metrics(live, len(watching), viewers), METRICS_KEPT)
    looks, questions, guesses = Rate(40, 10), Rate(10, 1), Rate(5, 0.5)
    each = max(1, int(SHARE_OF_A_CLIENT * viewers))
    watching = Places(viewers, each if access.auth_header is None else min(VIEWERS_OF_A_USER, each))

    @app.get("/")
    async def page() -> Response:
        return Response((PAGE / "index.html").read_bytes(), media_type="text/html; charset=utf-8")

    @app.post(LOGIN)
    async def login(request: Request, shown: ViewerLogin) -> Response:
        # Only wrong tokens are counted, so that viewers who share an account with a guesser can still log in.
        # The limit only saves the server's time: a token is safe because it is long and random.
        if not same(shown.token, access.token):
            _counted(guesses, request.scope[WHO])
            raise HTTPException(401, "the token is wrong")
        return JSONResponse({"session": access.session}, headers={"Cache-Control": "no-store"})

    @app.get("/api/machine")
    async def whole_machine() -> Response:
        return _gzipped(machine)

    @app.get("/api/snapshot")
    async def snapshot(request: Request, at: At = None) -> Response:
        if at is None:
            return _gzipped(live.feed.packed())
        _counted(looks, request.scope[WHO])
        found = await _answered(live.past(at))
        return _gzipped(
            await asyncio.to_thread(lambda: packed(PageState(found, 0, live.source.machine).whole()))
        )

    @app.get("/api/events")
    async def events() -> Response:
        return Events(live, watching)

    @app.get("/api/series")
    async def series() -> Response:
        return _gzipped(await _answered(live.series()))

    @app.get("/api/outlook")
    async def outlook(request: Request, at: At = None) -> Response:
        if at is not None:
            _counted(looks, request.scope[WHO])
        return _gzipped(await _answered(live.outlook(at)))

    @app.get("/api/why")
    async def why(request: Request, job: Annotated[int, Query(ge=0, lt=2**64)], at: At = None) -> Response:
        _counted(looks, request.scope[WHO])
        return JSONResponse({"sentences": await _answered(live.why(job, at))})

    @app.post("/api/ask")
    async def ask(request: Request, asked: ForecastRequest) -> Response:
        _counted(questions, request.scope[WHO])
        if asked.policy not in KNOWN and asked.policy != live.source.policy:
            raise HTTPException(422, "this policy is not known here")
        if asked.partition is not None and asked.partition not in live.source.partitions:
            raise HTTPException(422, "there is no such partition")
        if asked.gpus is not None and asked.gpus > facts["gpus"]:
            raise HTTPException(422, f"no node has more than {facts['gpus']} GPUs")
        eligible = None if asked.partition is None else live.source.partitions[asked.partition]
        question = ForecastQuestion(
            *(asked.nodes, asked.hours * 3600.0, asked.policy, asked.gpus, eligible), asked.reservation or ""
        )
        return JSONResponse(await _answered(live.ask(question, asked.at)))

    @app.get(METRICS)
    async def exposition() -> Response:
        text = await asyncio.to_thread(generate_latest, measured)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    app.add_exception_handler(RequestValidationError, _not_understood)
    app.mount("/static", StaticFiles(directory=PAGE, check_dir=False), name="static")
    app.add_middleware(PageGate, access=access)
    return app


def _not_understood(_: Request, error: Exception) -> Response:
    """The error response to an invalid request. It does not repeat the request, which may not be valid JSON."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
    return JSONResponse({"detail": f"{place}: {first['msg']}"}, 422)


def _facts(live: Live) -> dict[str, Any]:
    source = live.source
    return {
        "title": source.title,
        "notes": list(source.notes),
        "epoch": source.epoch,
        "policy": source.policy,
        "queue": source.queue,
        "policies": sorted(KNOWN | {source.policy}),
        "interval": source.interval,
        "partitions": sorted(source.partitions),
    }


def _counted(rate: Rate, account: str) -> None:
    if wait := rate.take(account):
        raise HTTPException(
            429, "too many questions: wait a moment", {"Retry-After": str(max(1, round(wait)))}
        )


async def _answered(asked: Any) -> Any:
    try:
        return await asked
    except KeyError as error:
        raise HTTPException(404, "there is no such job or time") from error
    except Busy as error:
        raise HTTPException(
            503, "the engine is busy with other questions: try again", {"Retry-After": "2"}
        ) from error
    except InputError as error:
        raise HTTPException(422, str(error)) from error


def _gzipped(body: bytes) -> Response:
    headers = {"Content-Encoding": "gzip", "Cache-Control": "no-store"}
    return Response(body, media_type="application/json", headers=headers)


class Places:
    """A limited number of places for viewers, and a limit per account. Belongs to one event loop."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, account: str) -> HTTPException | None:
        """Takes a place. Returns None, or the refusal if no place is free."""
        if account != SOCKET and self._taken[account] >= self._each:
            return HTTPException(
                429, f"you watch already on {plural(self._each, 'page')}, the most for one viewer: close one"
            )
        if len(self) >= self._most:
            return HTTPException(503, f"{plural(self._most, 'viewer')} watch already: try again later")
        self._taken[account] += 1
        return None

    def free(self, account: str) -> None:
        """Returns a place."""
        self._taken -= Counter([account])


class Events(Response):
    """The stream of the feed's changes to one viewer, until the viewer disconnects."""

    def __init__(self, live: Live, watching: Places) -> None:
        super().__init__(media_type="text/event-stream")
        self._live, self._watching = live, watching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        account = scope[WHO]
        if refusal := self._watching.take(account):
            await JSONResponse({"detail": refusal.detail}, refusal.status_code)(scope, receive, send)
            return
        waits = (self._stream(send), _left(receive), self._live.ended.wait())
        tasks = [asyncio.ensure_future(one) for one in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._watching.free(account)
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await task
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, send: Send) -> None:
        feed = self._live.feed
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        version = feed.state.version if feed.state else 0
        text = event("hello", {"version": version})
        while True:
            await send({"type": "http.response.body", "body": text, "more_body": True})
            try:
                state = await asyncio.wait_for(feed.after(version), KEEP_ALIVE)
            except TimeoutError:
                text = b": \n\n"
                continue
            # A viewer that missed a change must read the whole snapshot again.
            missed = state.version != version + 1
            text = event("resync", {"version": state.version}) if missed else state.change
            version = state.version


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
