"""A client of the API server with persistent connections, and a watch of pods."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from control_plane import TOKEN, Body, ControlPlane

THREADS = 8
ATTEMPTS = 60
"""The most attempts of a call, a second apart, while the API server is away."""
LOST = (OSError, http.client.HTTPException)


class StatusError(Exception):
    """An HTTP answer with an error status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:200]}")
        self.status = status


class Api:
    """Makes calls to the API server of a control plane. Any thread may use it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.local = threading.local()
        self.headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}

    def connection(self, timeout: float | None = 30) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.plane.port, timeout=timeout, context=self.plane.tls
        )

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer as JSON. If no API server answers, the call is repeated."""
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        for attempt in range(ATTEMPTS):
            try:
                if not hasattr(self.local, "connection"):
                    self.local.connection = self.connection()
                self.local.connection.request(method, path, data, self.headers | {"Content-Type": kind})
                answer = self.local.connection.getresponse()
                text = answer.read()
            except LOST:
                with contextlib.suppress(AttributeError):
                    del self.local.connection
                if attempt + 1 == ATTEMPTS:
                    raise
                time.sleep(1 if attempt else 0)
                continue
            if answer.status < 300:
                return json.loads(text)
            if answer.status < 500 and answer.status != 429:
                raise StatusError(answer.status, text.decode(errors="replace"))
            time.sleep(0.5)
        raise StatusError(answer.status, text.decode(errors="replace"))

    def post(self, path: str, body: Body) -> None:
        """Creates an object. An existing object is no error, because a repeated call may have created it."""
        try:
            self.call("POST", path, body)
        except StatusError as error:
            if error.status != 409:
                raise

    def patch(self, path: str, body: Body) -> None:
        self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, query: str = "") -> None:
        try:
            self.call("DELETE", path + query, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        except StatusError as error:
            if error.status != 404:
                raise

    def items(self, path: str) -> list[Body]:
        return list(self.call("GET", path)["items"])

    def each(self, function: Callable[[Any], Any], over: Iterable[Any]) -> None:
        """Calls a function for all items, several at a time."""
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(function, over):
                pass


class Watch:
    """Calls a function in a separate thread for each change of a pod that the API server reports."""

    def __init__(self, api: Api, changed: Callable[[str, Body], None]) -> None:
        self.api, self.changed = api, changed
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.done.set()

    def _follow(self) -> None:
        while not self.done.is_set():
            try:
                for event in self._events():
                    if self.done.is_set():
                        return
                    self.changed(event["type"], event["object"])
            except (*LOST, ValueError, KeyError):
                self.done.wait(0.5)

    def _events(self) -> Iterator[Body]:
        listed = self.api.call("GET", "/api/v1/pods?resourceVersion=0")
        yield {"type": "LISTED", "object": listed}
        version = listed["metadata"]["resourceVersion"]
        connection = self.api.connection(timeout=None)
        path = f"/api/v1/pods?watch=1&resourceVersion={version}"
        connection.request("GET", path, headers=self.api.headers)
        for line in connection.getresponse():
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            yield event
