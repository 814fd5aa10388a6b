"""The cloud as the transcript sees it: aggregates, groups of servers, who is where, moves."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import openstack
from openstack.compute.v2.server import Server

DEADLINE = 600.0
T = TypeVar("T")


class Failure(Exception):
    """The cloud did not do what it was asked."""


def wait_for(what: str, ask: Callable[[], T | None]) -> T:
    end = time.monotonic() + DEADLINE
    while (answer := ask()) is None:
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {DEADLINE:.0f} s")
        time.sleep(0.5)
    return answer


class Cloud:
    """One flavor, which takes a whole host, and one image, for all servers."""

    def __init__(self, leaves: int, hosts_per_leaf: int) -> None:
        connection = openstack.connect()
        self.compute, self.placement = connection.compute, connection.placement
        self.leaves = {
            f"leaf{leaf + 1}": [f"host{leaf * hosts_per_leaf + n + 1:02d}" for n in range(hosts_per_leaf)]
            for leaf in range(leaves)
        }
        self.image = connection.image.find_image("empty") or connection.image.create_image(
            name="empty", disk_format="raw", container_format="bare", data=b"nothing"
        )
        self.flavor = self.compute.find_flavor("host") or self.compute.create_flavor(
            name="host", vcpus=2, ram=7168, disk=1
        )

    def make_aggregates(self) -> None:
        for leaf, hosts in self.leaves.items():
            if self.compute.find_aggregate(leaf):
                continue
            aggregate = self.compute.create_aggregate(name=leaf)
            self.compute.set_aggregate_metadata(aggregate, {"topolane:leaf": leaf})
            for host in hosts:
                self.compute.add_host_to_aggregate(aggregate, host)

    def leaf_of(self, host: str) -> str:
        return next(leaf for leaf, hosts in self.leaves.items() if host in hosts)

    def servers(self, group: str = "") -> list[Server]:
        return list(self.compute.servers(name=f"^{group}"))

    def where(self, group: str = "") -> Counter[str]:
        """How many servers of a group each host holds."""
        return Counter(server.compute_host for server in self.servers(group))

    def fill(self, hosts: list[str]) -> None:
        """Boots servers of another user, on these hosts and no other."""
        for host in hosts:
            self._create(f"other-{host}", host=host, max_count=1)
        self.settled("other")

    def group(self, name: str) -> str:
        return str(self.compute.create_server_group(name=name, policy="anti-affinity").id)

    def boot(self, name: str, group: str, count: int, placement: str) -> None:
        hints = {"group": group, "topolane:placement": placement}
        self._create(name, min_count=count, max_count=count, scheduler_hints=hints)
        self.settled(name)

    def _create(self, name: str, **how: object) -> None:
        self.compute.create_server(
            name=name, image_id=self.image.id, flavor_id=self.flavor.id, networks="none", **how
        )

    def settled(self, group: str) -> None:
        """Waits until all servers of a group are active and none is on its way."""

        def ask() -> bool | None:
            servers = self.servers(group)
            for server in servers:
                if server.status == "ERROR":
                    raise Failure(f"{server.name}: {(server.fault or {}).get('message', 'error')}")
            moving = (s for s in servers if s.status != "ACTIVE" or s.task_state)
            return None if next(moving, None) else True

        wait_for(f"servers of {group} active", ask)

    def migrate(self, server: Server) -> str:
        """Moves a server to a host of the scheduler's choice, and says which that was."""
        before = server.compute_host
        self.compute.live_migrate_server(server, host=None, block_migration="auto")

        def ask() -> str | None:
            now = self.compute.get_server(server.id)
            if now.status == "ERROR":
                raise Failure(f"{server.name}: the live migration failed")
            return now.compute_host if now.compute_host != before and not now.task_state else None

        return wait_for(f"live migration of {server.name}", ask)

    def extra_spec(self, key: str, value: str) -> tuple[int, str]:
        """What the API answers to an extra spec of the flavor; it looks at them from microversion 2.86 on."""
        address = f"/flavors/{self.flavor.id}/os-extra_specs"
        answer = self.compute.post(address, json={"extra_specs": {key: value}}, microversion="2.86")
        if answer.ok:
            self.compute.delete(f"{address}/{key}")
        return answer.status_code, answer.text

    def delete(self, group: str = "") -> None:
        """Ends servers, and waits until Placement has their hosts free."""
        servers = self.servers(group)
        for server in servers:
            self.compute.delete_server(server)

        def ask() -> bool | None:
            held = (self.placement.get(f"/allocations/{s.id}").json()["allocations"] for s in servers)
            return None if self.servers(group) or any(held) else True

        wait_for("servers deleted", ask)

    def clear(self) -> None:
        """No server and no group is left."""
        self.delete()
        for group in list(self.compute.server_groups()):
            self.compute.delete_server_group(group)

    def map(self, letters: dict[str, str]) -> Iterator[str]:
        """A line a leaf, a sign a host: a group's letter, x for other servers, a point for an empty host."""
        sign = {s.compute_host: letters.get(s.name.split("-")[0], "x") for s in self.servers()}
        for leaf, hosts in self.leaves.items():
            yield f"{leaf}  {''.join(sign.get(host, '.') for host in hosts)}"
