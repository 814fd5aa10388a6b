"""Reads from Nova's databases the names and addresses by which a program may know the servers of a group."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as db
from nova.db.main import models

from topolane.nova.measured import ServerNames, plain_name


def of_running(context: Any, uuids: Sequence[str]) -> list[ServerNames]:
    """The names of servers that a cell knows, in the given order. If the cell does not answer, a server has
    only its id.
    """
    found: dict[str, ServerNames] = {}
    results = nova_context.scatter_gather_all_cells(context, lambda cell: _rows(cell, uuids))
    for rows in results.values():
        if not nova_context.is_cell_failure_sentinel(rows):
            for uuid, hostname, display_name, network in rows:
                found[uuid] = _server(uuid, (hostname, display_name), _addresses(network))
    return [found.get(uuid) or _server(uuid, (), ()) for uuid in uuids]


def of_waiting(context: Any, uuids: Collection[str], at_hand: str) -> list[ServerNames]:
    """The names of servers that are still to be built, in the order in which Nova places them: first those of
    the same request as the server `at_hand`.
    """
    requests = [_instance(row) for row in _build_requests(context, uuids)]
    own = next((one.get("reservation_id") for one in requests if one.get("uuid") == at_hand), None)

    def turn(one: dict[str, Any]) -> tuple[bool, str, int]:
        later = one.get("reservation_id") != own
        return later, str(one.get("created_at")) if later else "", int(one.get("launch_index") or 0)

    return [
        _server(one["uuid"], (one.get("hostname"), one.get("display_name")), ())
        for one in sorted(requests, key=turn)
        if "uuid" in one
    ]


@db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _rows(context: Any, uuids: Collection[str]) -> list[Any]:
    one, cache = models.Instance, models.InstanceInfoCache
    query = context.session.query(one.uuid, one.hostname, one.display_name, cache.network_info)
    return list(query.outerjoin(cache, cache.instance_uuid == one.uuid).filter(one.uuid.in_(list(uuids))))


@api_db.context_manager.reader  # type: ignore[untyped-decorator]
def _build_requests(context: Any, uuids: Collection[str]) -> list[Any]:
    one = api_models.BuildRequest
    return [row[0] for row in context.session.query(one.instance).filter(one.instance_uuid.in_(list(uuids)))]


def _instance(text: Any) -> dict[str, Any]:
    """The fields of the instance in a build request."""
    try:
        fields = json.loads(text)["nova_object.data"]
    except (TypeError, ValueError, KeyError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _addresses(network: Any) -> Iterable[str]:
    """The fixed and floating addresses in Nova's stored network information of a server."""
    try:
        return [
            str(one["address"])
            for port in json.loads(network or "[]")
            for subnet in port["network"]["subnets"]
            for ip in subnet["ips"]
            for one in (ip, *(ip.get("floating_ips") or ()))
        ]
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return []


def _server(uuid: str, names: Iterable[str | None], addresses: Iterable[str]) -> ServerNames:
    plain = (plain_name(name) for name in (uuid, *names) if name)
    return ServerNames(uuid, frozenset(plain) - {""}, frozenset(addresses))
