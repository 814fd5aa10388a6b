"""The API server of a cluster, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import httpx

from topolane._engine import InputError
from topolane.kubernetes.kubeconfig import ApiServerAccess, UserCredentials

PAGE = 1000
"""Objects in one answer."""
PATIENCE = 30.0
"""Seconds in which the API server answers."""


class ClusterError(InputError):
    """The API server does not answer, or refuses."""


class NotFoundError(ClusterError):
    """There is no such object."""


class ForbiddenError(ClusterError):
    """The user lacks the right to make this request."""


class ConflictError(ClusterError):
    """The object has changed, or another one has its name now."""


class BudgetError(ClusterError):
    """Not now: a PodDisruptionBudget forbids an eviction, or the server has too much to do."""


KINDS: dict[int, type[ClusterError]] = {
    httpx.codes.NOT_FOUND: NotFoundError,
    httpx.codes.FORBIDDEN: ForbiddenError,
    httpx.codes.CONFLICT: ConflictError,
    httpx.codes.TOO_MANY_REQUESTS: BudgetError,
}


class _Authorization(httpx.Auth):
    def __init__(self, login: UserCredentials) -> None:
        self._login = login

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        said = self._login.header()
        if said:
            request.headers["Authorization"] = said
        answer = yield request
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            again = self._login.header(renew=True)
            if again and again != said:
                request.headers["Authorization"] = again
                yield request


class KubernetesCluster:
    """A cluster. Raises ClusterError, in a sentence, for all that cannot be read."""

    def __init__(self, access: ApiServerAccess) -> None:
        self.server = access.server
        self._http = httpx.Client(
            base_url=access.server,
            verify=access.tls,
            auth=_Authorization(access.login),
            proxy=access.proxy,
            timeout=PATIENCE,
            transport=None if access.proxy else httpx.HTTPTransport(verify=access.tls, retries=1),
        )

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def get(self, path: str, **parameters: str | int) -> dict[str, Any]:
        """The object, or the page of a list, at a path."""
        return self._call("GET", path, parameters)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Makes an object, or a subresource such as an eviction."""
        return self._call("POST", path, {}, body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merges fields into an object: null takes one away, a list is replaced."""
        return self._call("PATCH", path, {}, body, "application/merge-patch+json")

    def _call(
        self,
        method: str,
        path: str,
        parameters: dict[str, str | int],
        body: dict[str, Any] | None = None,
        kind: str = "application/json",
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": kind})
        content = None if body is None else json.dumps(body).encode()
        try:
            answer = self._http.request(method, path, params=parameters, headers=headers, content=content)
        except httpx.HTTPError as error:
            raise ClusterError(f"the API server at {self.server} does not answer: {error}") from error
        try:
            said = answer.json()
        except ValueError:
            said = None
        if method == "GET" and answer.status_code == httpx.codes.NOT_FOUND:
            raise NotFoundError(f"the API server at {self.server} has no {path}")
        if answer.is_error or not isinstance(said, dict):
            why = said.get("message") if isinstance(said, dict) else None
            raise KINDS.get(answer.status_code, ClusterError)(
                f"the API server at {self.server} refuses {method} {path}: {why or f'HTTP {answer.status_code}'}"
            )
        return said

    def items(self, path: str) -> list[dict[str, Any]]:
        """All objects of a list; none if the server has no such kind."""
        found: list[dict[str, Any]] = []
        parameters: dict[str, str | int] = {"limit": PAGE}
        while True:
            try:
                page = self.get(path, **parameters)
            except NotFoundError:
                return found
            found += page.get("items") or []
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            parameters["continue"] = more
