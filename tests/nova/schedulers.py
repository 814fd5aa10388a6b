"""Several scheduler processes with one set of Nova's databases, and rounds of groups that are requested at once."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from nova import context, objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from placements import Tree, crossed, tree, write
from scheduler_process import TAKEN, configure

HOSTS = [f"node{number:02}" for number in range(1, 25)]
TREE: Tree = tree([HOSTS[start : start + 2] for start in range(0, 24, 2)], leaves_in_pod=4)
"""3 pods of 8 hosts."""
SIZES = (7, 7, 4)
"""Each needs a pod of its own, and each pod can take each."""
FLAVOR = {"memory_mb": 8192, "vcpus": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0, "extra_specs": {}}
HOST: dict[str, Any] = {
    "instances": [],
    "aggregates": [],
    "free_ram_mb": 8192,
    "total_usable_ram_mb": 8192,
    "vcpus_total": 1,
    "vcpus_used": 0,
    "free_disk_mb": 0,
    "total_usable_disk_gb": 0,
    "ram_allocation_ratio": 1.0,
    "cpu_allocation_ratio": 1.0,
    "disk_allocation_ratio": 1.0,
}


class Round(NamedTuple):
    """How the groups of a round ended."""

    shared: bool
    """Whether two of them may use a link in common."""
    refused: int
    lost: int
    """Groups whose scheduler was killed."""


class Schedulers:
    """The processes; a context manager."""

    def __init__(self, count: int, directory: Path, api: str | None = None, **options: object) -> None:
        """api: the URL of an empty API database; by default SQLite in the directory, as the cell's is."""
        write(directory / "machine.conf", TREE)
        self._settings = {
            "api": api or f"sqlite:///{directory}/api.sqlite?timeout=60",
            "cell": f"sqlite:///{directory}/cell.sqlite?timeout=60",
            "topolane": {
                "machine_file": str(directory / "machine.conf"),
                "default_placement": "isolated",
                **options,
            },
        }
        self._log = open(directory / "log", "a")  # noqa: SIM115
        _make_databases(self._settings)
        self._processes = [self._start() for _ in range(count)]
        for process in self._processes:
            _wait_until_ready(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._log.close()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("scheduler_process.py")),
                json.dumps(self._settings),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def round(self, kill: bool) -> Round:
        """Groups that are requested at once, of different schedulers, one of which may be killed meanwhile."""
        chosen = random.sample(range(len(self._processes)), len(SIZES))
        requests = [_new_group(size) for size in SIZES]
        answers: list[list[str] | None] = [None] * len(SIZES)
        ended = [False] * len(SIZES)

        def ask(index: int) -> None:
            process = self._processes[chosen[index]]
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(requests[index]) + "\n")
            process.stdin.flush()
            if line := process.stdout.readline():
                answers[index] = json.loads(line)
                ended[index] = bool(process.stdout.readline())

        threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(SIZES))]
        for thread in threads:
            thread.start()
        killed = random.randrange(len(SIZES)) if kill else None
        if killed is not None:
            threads[killed].join(random.uniform(0.0, 0.6))
            self._processes[chosen[killed]].kill()
        for thread in threads:
            thread.join()
        if killed is not None:
            self._processes[chosen[killed]].wait()
            self._processes[chosen[killed]] = self._start()
            _wait_until_ready(self._processes[chosen[killed]])
        where = [crossed(TREE, hosts) for hosts in answers if hosts is not None]
        shared = any(one & other for one, other in itertools.combinations(where, 2))
        refused = sum(hosts is None and end for hosts, end in zip(answers, ended))
        _delete(requests)
        return Round(shared, refused, ended.count(False))


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == "ready"


def _make_databases(settings: Mapping[str, Any]) -> None:
    configure(dict(settings))
    api_models.BASE.metadata.create_all(api_db.get_engine())
    engine = main_db.get_engine()
    models.BASE.metadata.create_all(engine)
    TAKEN.metadata.create_all(engine)
    admin = context.get_admin_context()
    if objects.CellMappingList.get_all(admin):
        return
    for name, identity in (("cell0", objects.CellMapping.CELL0_UUID), ("cell1", str(uuid.uuid4()))):
        cell = objects.CellMapping(admin, name=name, uuid=identity, transport_url="none:///", disabled=False)
        cell.database_connection = settings["cell"]
        cell.create()


def _new_group(size: int) -> dict[str, Any]:
    """A request for a new group of `size` servers."""
    servers = [str(uuid.uuid4()) for _ in range(size)]
    group = objects.InstanceGroup(context.get_admin_context(), name="group", policy="anti-affinity")
    group.project_id = group.user_id = "someone"
    group.members = servers
    group.create()
    spec = {"flavor": FLAVOR, "num_instances": size, "is_bfv": False}
    return {"group": group.uuid, "servers": servers, "hosts": HOSTS, "host": HOST, "spec": spec}


def _delete(requests: Sequence[Mapping[str, Any]]) -> None:
    """All servers, as Nova leaves them: the cell keeps their rows, also of servers that found no host."""
    servers = [server for request in requests for server in request["servers"]]
    table = models.Instance.__table__
    with main_db.get_engine().begin() as connection:
        known = {
            row.uuid for row in connection.execute(sa.select(table.c.uuid).where(table.c.uuid.in_(servers)))
        }
        gone = [
            {"uuid": server, "deleted": 0, "vm_state": "error"} for server in servers if server not in known
        ]
        if gone:
            connection.execute(table.insert(), gone)
        connection.execute(
            table.update()
            .where(table.c.uuid.in_(servers))
            .values(deleted=table.c.id, host=None, task_state=None)
        )
        connection.execute(TAKEN.delete())
    for request in requests:
        objects.InstanceGroup.get_by_uuid(context.get_admin_context(), request["group"]).destroy()
