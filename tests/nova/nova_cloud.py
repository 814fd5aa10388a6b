"""A whole Nova in one process: its API, conductor, scheduler and Placement as they are, computes that pretend.

Built on the fixtures of Nova's own functional tests. Imported only by the process that `cloud_process` starts,
because nova.tests changes the interpreter that it is loaded into.
"""

from __future__ import annotations

import copy
import importlib.metadata
import itertools
import json
import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import nova.conf
import nova_http
import nova_specs
import sqlalchemy as sa
from cloud_process import Refused
from nova import context
from nova.api.openstack.compute.migrations import MigrationsController
from nova.db.api import api as api_db
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api.client import OpenStackApiException
from placement.db_api import get_placement_engine
from topolane.nova import config, members, plugin, request
from topolane.nova.concurrent_requests import ConcurrentRequests
from topolane.nova.refusal_table import REFUSALS
from topolane.nova.request import HostAnswer, NovaRequest
from topolane.nova.shared_claims import CLAIMS, VERSION
from waiting import until

CONF = nova.conf.CONF
FLAVORS = {"whole": 8192, "quarter": 2048}
"""Memory in MB of the VMs: a host has 8192, so that one or four of them fill it."""
SETTINGS: dict[str, dict[str, Any]] = {
    "DEFAULT": {"reserved_host_memory_mb": 0, "reserved_host_disk_mb": 0, "service_down_time": 3600},
    # a new connection would be a new, empty database in memory
    **{base: {"connection_recycle_time": -1} for base in ("database", "api_database")},
    "notifications": {"notification_format": "unversioned"},
    "quota": {"instances": -1, "cores": -1, "ram": -1, "server_groups": -1, "server_group_members": -1},
}
UNFINISHED = {"accepted", "pre-migrating", "preparing", "queued", "running", "migrating", "post-migrating"}
"""Of the states of a migration."""
Settings = Mapping[str, Mapping[str, Any]]
"""Options of nova.conf by group."""


def _refusals_are_written() -> None:
    """Waits for what the scheduler writes in the background, some seconds later."""
    if plugin.plugin.cache_info().currsize:
        counts = plugin.plugin().refusals
        until(lambda: counts.waiting == 0, "all refusals written")


def _forget_process() -> None:
    """A new process knows nothing of the old one's requests. What the old one counted is written first: it would be
    added while a later test counts."""
    _refusals_are_written()
    plugin.plugin.cache_clear()
    request.CONCURRENT = ConcurrentRequests()
    members.IN_FLIGHT = members.InFlightHosts()


class Cloud(integrated_helpers.ProviderUsageBaseTestCase):  # type: ignore[misc]
    """Driven by calls; not a test case to run."""

    compute_driver = "fake.MediumFakeDriver"

    def __init__(self, hosts: Sequence[str], cells: int = 1) -> None:
        """The hosts are in as many cells, each of which has an equal share of them in their order."""
        super().__init__("start")
        self.NUMBER_OF_CELLS = cells
        self._hosts = hosts
        self._urls: dict[str, str] = {}
        self._held: dict[str, threading.Event] = {}
        self._scheduled: Settings = {}
        self._flavors: set[str] = set()

    def start(self) -> None:
        self.setUp()
        logging.getLogger().setLevel(logging.INFO)  # Nova's tests would format every debug line
        for index, host in enumerate(self._hosts):
            self._start_compute(host, f"cell{1 + index * self.NUMBER_OF_CELLS // len(self._hosts)}")
        for name, memory in FLAVORS.items():
            self.flavor(name, memory)

    def setUp(self) -> None:
        files = importlib.metadata.files("nova") or []
        paste = next(file for file in files if file.name == "api-paste.ini")
        self.flags(api_paste_config=str(paste.locate()), group="wsgi")
        self._set(SETTINGS)
        if "response_validation" in CONF.api:  # not in older releases
            self.flags(response_validation="ignore", group="api")
        super().setUp()
        # Nor may Placement's connection be a new one after an hour, and its fixture takes no option for that.
        get_placement_engine().pool._recycle = -1

    def _set(self, settings: Settings) -> None:
        for group, options in settings.items():
            self.flags(**options, group=None if group == "DEFAULT" else group)

    def schedule_by(self, settings: Settings) -> None:
        """Has the scheduler started with such options, and all others as they are by default."""
        if settings == self._scheduled:
            return
        for group, options in self._scheduled.items():
            for option in options:
                CONF.clear_override(option, None if group == "DEFAULT" else group)
        if "topolane" in settings:
            config.register(CONF)
            _forget_process()
        self._set(settings)
        self.scheduler_service.stop()
        self.scheduler_service = self.start_service("scheduler")
        self._scheduled = settings

    def flavor(
        self,
        name: str,
        memory: int,
        extra_specs: Mapping[str, str] | None = None,
        microversion: str = "latest",
        disk: int = 0,
    ) -> None:
        """One that takes a VCPU, memory in MB and a disk in GB; made once."""
        if name not in self._flavors:
            self._create_flavor(name, name, memory, 1, disk, 0)
            self._flavors.add(name)
        if extra_specs:
            self._post(f"/flavors/{name}/os-extra_specs", {"extra_specs": dict(extra_specs)}, microversion)

    def _post(self, path: str, body: Mapping[str, Any], microversion: str) -> Any:
        api = copy.copy(self.api)
        api.microversion = microversion
        try:
            return api.api_post(path, body).body
        except OpenStackApiException as refused:
            raise Refused(f"{refused.response.status_code}: {refused}") from None

    def devices(self, host: str, resource: str, count: int) -> None:
        """Gives a host `count` devices, under a provider of their own as PCI devices have."""
        self.placement.put(f"/resource_classes/{resource}", {}, version="1.7")
        parent = self._get_provider_uuid_by_host(host)
        made = {"name": f"{host}_{resource}", "parent_provider_uuid": parent}
        own = self.placement.post("/resource_providers", made, version="1.20").body["uuid"]
        inventory = {"resource_provider_generation": 0, "inventories": {resource: {"total": count}}}
        self.placement.put(f"/resource_providers/{own}/inventories", inventory, version="1.20")

    def report(self, host: str, **resources: object) -> None:
        """The hypervisor of this host reports these resources instead of its own from now on; none: its own again."""
        manager = self.computes[host].manager
        manager.driver.__dict__.pop("get_available_resource", None)
        if resources:
            usual = manager.driver.get_available_resource
            manager.driver.get_available_resource = lambda node: usual(node) | resources
        manager.update_available_resource(context.get_admin_context())

    def group(self, name: str, policy: str = "anti-affinity", rules: Mapping[str, int] | None = None) -> str:
        wanted = {"name": name, "policy": policy} | ({} if rules is None else {"rules": dict(rules)})
        return str(self.api.post_server_groups(wanted)["id"])

    def aggregate(self, name: str, metadata: Mapping[str, str], hosts: Collection[str]) -> int:
        aggregate = int(self._create_aggregate(name))
        for host in hosts:
            self.api.add_host_to_aggregate(aggregate, host)
        self.describe(aggregate, metadata)
        return aggregate

    def aggregates(self) -> list[int]:
        """All, in the order in which they were made."""
        return sorted(made["id"] for made in self.api.api_get("/os-aggregates").body["aggregates"])

    def describe(self, aggregate: int, metadata: Mapping[str, str | None]) -> None:
        """Sets metadata of an aggregate; None takes a key away."""
        self.api.post_aggregate_action(aggregate, {"set_metadata": {"metadata": dict(metadata)}})

    def include(self, aggregate: int, host: str, inside: bool = True) -> None:
        """Puts a host into an aggregate, or takes it out."""
        change = self.api.add_host_to_aggregate if inside else self.api.remove_host_from_aggregate
        change(aggregate, host)

    def drop(self, aggregate: int) -> None:
        found = self.api.api_get(f"/os-aggregates/{aggregate}").body["aggregate"]
        for host in found["hosts"]:
            self.include(aggregate, host, False)
        self.api.delete_aggregate(aggregate)

    def ask(
        self,
        count: int,
        group: str | None = None,
        flavor: str = "whole",
        hints: Mapping[str, Any] | None = None,
        microversion: str = "latest",
        zone: str | None = None,
        host: str | None = None,
        name: str | None = None,
    ) -> str:
        """One request for servers: its reservation. Several servers are called NAME-1, NAME-2, ..."""
        wanted = self._build_server(
            flavor_id=flavor,
            networks="none",
            image_uuid=self.glance.image1["id"],
            az=zone,
            host=host,
            name=name,
        )
        wanted |= {"min_count": count, "max_count": count, "return_reservation_id": True}
        every = dict(hints or {}) | ({} if group is None else {"group": group})
        body = {"server": wanted, "os:scheduler_hints": every}
        return str(self._post("/servers", body, microversion)["reservation_id"])

    def placed(self, reservation: str, count: int) -> dict[str, str]:
        """The hosts of the servers of a request, in the order of their names."""
        asked = {"reservation_id": reservation}

        def settled() -> bool:
            ready = (self.api.get_servers(False, asked | {"status": s}) for s in ("ACTIVE", "ERROR"))
            return sum(map(len, ready)) == count

        until(settled, f"{count} servers")
        servers = self.api.get_servers(search_opts=asked)
        if any(server["status"] == "ERROR" for server in servers):
            fault = self.api.get_server(servers[0]["id"]).get("fault", {})
            self.delete([server["id"] for server in servers])
            raise Refused(str(fault.get("message")))
        servers.sort(key=lambda server: int(server["name"].partition("-")[2] or 0))
        return {server["id"]: server["OS-EXT-SRV-ATTR:host"] for server in servers}

    def boot(self, count: int, *arguments: Any, **named: Any) -> dict[str, str]:
        """The hosts of servers that are asked for in one request."""
        return self.placed(self.ask(count, *arguments, **named), count)

    def hosts(self, servers: Collection[str]) -> dict[str, str]:
        """Where servers are now."""
        return {server: str(self.api.get_server(server)["OS-EXT-SRV-ATTR:host"]) for server in servers}

    def rank(self, server: str) -> int:
        """Which of its request a server was."""
        return int(self.api.get_server(server)["OS-EXT-SRV-ATTR:launch_index"])

    def delete(self, servers: Collection[str]) -> None:
        for server in servers:
            self.api.delete_server(server)
        gone = set(servers)
        until(lambda: not gone & {s["id"] for s in self.api.get_servers(detail=False)}, "servers deleted")

    def migrate(self, server: str, host: str | None = None) -> str:
        """Live, to the host or where the scheduler says."""
        target = {} if host is None else {"host": host}  # which older releases' helper does not know
        self._live_migrate({"id": server}, **target)
        return self.hosts([server])[server]

    def resize(self, server: str, flavor: str) -> str:
        """To another flavor, where the scheduler says."""
        self.act(server, "resize", {"flavorRef": flavor})
        self.act(server, "confirmResize")
        return self.hosts([server])[server]

    def act(
        self, server: str, action: str, body: Mapping[str, object] | None = None
    ) -> tuple[str, str | None]:
        """What the server is and on which host, after an action of the API has ended, well or not."""
        self._post(f"/servers/{server}/action", {action: body}, "latest")
        return self.settled(server)

    def settled(self, server: str) -> tuple[str, str | None]:
        """What the server is and on which host, once Nova does not work on it."""

        def state() -> tuple[str, str | None] | None:
            # Nova says first that a server has left its host, or has been evacuated, and changes the host's name after that.
            # So the migrations are read first: one that ends in between has its server on the new host.
            moves = self._migrations(server) & UNFINISHED
            found = self.api.get_server(server)
            status, host = str(found["status"]), found["OS-EXT-SRV-ATTR:host"]
            leaves = status == "SHELVED_OFFLOADED" and host is not None
            works = found["OS-EXT-STS:task_state"] is not None or moves
            return None if leaves or works else (status, host)

        return until(state, f"{server} settled")

    def begin_migration(self, server: str) -> str:
        """Begins a live migration which its source holds until `end_migration`: the target."""
        self._hold(server, self.computes[self.hosts([server])[server]].manager.driver, "live_migration")
        self._post(
            f"/servers/{server}/action",
            {"os-migrateLive": {"host": None, "block_migration": "auto"}},
            "latest",
        )
        until(lambda: self._running(server) is not None, f"the migration of {server} runs")
        return str(self._running(server))

    def begin_evacuation(self, server: str) -> str:
        """Begins one whose target has ended the task, and has not yet said that the server is there: the target. It
        does so after `end_evacuation`."""
        for compute in self.computes.values():
            self._hold(server, compute.manager.rt, "finish_evacuation")
        self._post(f"/servers/{server}/action", {"evacuate": {}}, "latest")
        until(
            lambda: self.api.get_server(server)["OS-EXT-STS:task_state"] is None,
            f"the task of {server} ended",
        )
        found = [one for one in self.api.get_migrations() if one["instance_uuid"] == server]
        return str(next(one["dest_compute"] for one in found if one["status"] in UNFINISHED))

    def end_evacuation(self, server: str) -> None:
        self._held[server].set()
        self.settled(server)
        for compute in self.computes.values():
            compute.manager.rt.__dict__.pop("finish_evacuation", None)

    def end_evacuation_when_asked(self, server: str) -> None:
        """Ends it as soon as a command asks Nova for migrations of this server, before the answer is made."""
        asked = MigrationsController._index

        def index(controller: MigrationsController, request: Any, *words: Any, **named: Any) -> Any:
            if request.GET.get("instance_uuid") == server:
                MigrationsController._index = asked
                self.end_evacuation(server)
            return asked(controller, request, *words, **named)

        MigrationsController._index = index

    def _hold(self, server: str, holder: Any, method: str) -> None:
        """Lets the next call of a method wait for `_held[server]`."""
        held, go_on = self._held.setdefault(server, threading.Event()), getattr(holder, method)
        held.clear()

        def wait(*arguments: Any, **named: Any) -> None:
            holder.__dict__.pop(method, None)
            until(held.is_set, f"{method} of {server} may go on")
            go_on(*arguments, **named)

        setattr(holder, method, wait)

    def _migrations(self, server: str) -> set[str]:
        return {str(one["status"]) for one in self.api.get_migrations() if one["instance_uuid"] == server}

    def _running(self, server: str) -> str | None:
        """Where a migration of the server goes that its source carries out."""
        found = [one for one in self.api.get_migrations() if one["instance_uuid"] == server]
        return next((one["dest_compute"] for one in found if one["status"] == "running"), None)

    def end_migration(self, server: str) -> str:
        """Lets a live migration end: where the server is."""
        self._held.pop(server).set()
        return str(self.settled(server)[1])

    def break_down(self, host: str) -> None:
        """A host that is down, and known to be."""
        self.computes[host].stop()
        self._force_down(host, True)

    def recover(self, host: str) -> None:
        self.computes[host] = self.restart_compute_service(self.computes[host])
        until(lambda: not self._evacuations(host), f"{host} has seen what was evacuated")
        self._force_down(host, False)

    def _evacuations(self, host: str) -> list[str]:
        """Those that the host, started again, has not cleaned up after."""
        found = self.api.get_migrations()
        return [one["uuid"] for one in found if (one["source_compute"], one["status"]) == (host, "done")]

    # Nova's own helpers give up after five seconds, which a busy machine may need.
    def _wait_for_migration_status(self, *words: object) -> object:
        wait = super()._wait_for_migration_status
        return until(lambda: wait(*words), f"migration {words}", passing=(AssertionError,))

    def _wait_for_server_parameter(self, *words: object, **named: object) -> object:
        wait = super()._wait_for_server_parameter
        return until(lambda: wait(*words, **named), f"server {words}", passing=(AssertionError,))

    def evacuate(self, server: str) -> str:
        self._evacuate_server({"id": server})
        return self.hosts([server])[server]

    def _force_down(self, host: str, down: bool) -> None:
        service = self.api.get_services(host=host, binary="nova-compute")[0]["id"]
        self.api.put_service_force_down(service, down)

    def disable(self, host: str, disabled: bool = True) -> None:
        """Takes the host out of service, or back."""
        service = self.api.get_services(host=host, binary="nova-compute")[0]["id"]
        self.api.put_service(service, {"status": "disabled" if disabled else "enabled"})

    def dissolve(self, group: str) -> None:
        """Deletes a server group; its servers stay."""
        self.api.delete_server_group(group)

    def image(self, number: int) -> str:
        """The id of one of two images."""
        return str((self.glance.image1, self.glance.image2)[number]["id"])

    def clear(self) -> None:
        """No server and no group is left."""
        self.delete([server["id"] for server in self.api.get_servers(detail=False)])
        for group in self.api.get_server_groups():
            self.api.delete_server_group(group["id"])

    def forget_requests(self) -> None:
        """What the schedulers so far have given and planned counts no more. Schedulers would wait for it for minutes."""
        _forget_process()
        engine = api_db.get_engine()
        if sa.inspect(engine).has_table(CLAIMS.name):
            with engine.begin() as connection:
                connection.execute(CLAIMS.delete())

    def spoil_claims(self) -> None:
        """The table of the claims' version is another one, which cannot be used, until `mend_claims`."""
        engine = api_db.get_engine()
        VERSION.drop(engine, checkfirst=True)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE TABLE {VERSION.name} (id INTEGER)")

    def mend_claims(self) -> None:
        VERSION.drop(api_db.get_engine())

    def break_requests(self, after: int = 0) -> None:
        """Topolane decides this often, and then every decision ends with an error, until `mend_requests`."""
        self._ask, left = NovaRequest.ask, itertools.count(after, -1)

        def broken(request: NovaRequest, hosts: list[Any]) -> HostAnswer:
            if next(left) <= 0:
                raise RuntimeError("broken by the test")
            return self._ask(request, hosts)

        NovaRequest.ask = broken

    def mend_requests(self) -> None:
        NovaRequest.ask = self._ask

    def schedule(self, *arguments: Any) -> list[str]:
        return nova_specs.schedule(*arguments)

    def have_cpu(self, hosts: Collection[str], cpu: Mapping[str, object] | None) -> None:
        """The computes of these hosts report such a CPU from now on; None for the driver's own."""
        for host in hosts:
            self.report(host, **({} if cpu is None else {"cpu_info": json.dumps(cpu)}))

    def wait_for_log(self, containing: str, more_than: int = 0) -> None:
        """Lets what runs in the background run until there are more lines than that with such words."""
        until(lambda: len(self.log(containing)) > more_than, f"{containing!r} in the log")

    def refusals(self) -> dict[str, int]:
        """What schedulers have written of refusals so far, by reason."""
        _refusals_are_written()
        engine = api_db.get_engine()
        if not sa.inspect(engine).has_table(REFUSALS.name):
            return {}
        with engine.connect() as connection:
            return {row.kind: row.requests for row in connection.execute(sa.select(REFUSALS))}

    def log(self, containing: str) -> list[str]:
        """All lines so far with such words."""
        return [line for line in str(self.stdlog.logger.output).splitlines() if containing in line]

    def command(self, *words: str, directory: str) -> tuple[int, str, str]:
        """Runs `topolane nova` against this cloud by HTTP: exit code, output and errors."""
        return self.python("from topolane.cli import main; main()", "nova", *words, directory=directory)

    def python(self, code: str, *words: str, directory: str) -> tuple[int, str, str]:
        """Runs a program likewise."""
        if not self._urls:
            self._urls = nova_http.served(self.api_fixture, self.placement.fixture)
        return nova_http.command(self._urls, ["-c", code, *words], directory)
