"""The present sites, hosts and guests, from the sites file, from clusters, and from reports of daemons."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from topolane.reading import MOST_CORES

from topolane_sites.files import Config
from topolane_sites.model import Guest, GuestUse, Host, WanLink
from topolane_sites.report_parsing import (
    MOST_KNOWN,
    positive,
    reported_features,
    reported_guest,
    reported_name,
)
from topolane_sites.state import ManagerDatabase, StateError

_SETTLING = 10.0
"""Seconds after a move for which reports, which may be older, do not change the guest's host."""


class Inventory:
    """Sites, hosts and guests. Reports are stored in the database and read again after a restart."""

    def __init__(self, config: Config, state: ManagerDatabase) -> None:
        self.sites = [site.name for site in config.sites]
        self.links: tuple[WanLink, ...] = config.links
        self.hosts: dict[str, Host] = {host.name: host for host in config.hosts}
        self.guests: dict[str, Guest] = {guest.name: guest for guest in config.guests}
        self.clusters: dict[str, dict[str, Any]] = state.get("cluster")
        self.reports: dict[str, dict[str, Any]] = {}
        """The newest report of every host, in this run."""
        self.guest_reports: dict[str, dict[str, Any]] = {}
        self.away: set[str] = set()
        """Hosts that have gone silent."""
        self.moving: Callable[[], set[str]] = set
        """Guests that are being moved; reports do not change them."""
        self.held: Callable[[], set[str]] = set
        """Clusters that are being changed; their guests are not moved."""
        self._running: dict[str, set[str]] = {}
        self._state, self._silence = state, config.silence
        self._file, self._named = set(self.hosts), set(self.guests)
        self._nowhere: dict[str, float] = state.get("nowhere")
        """When guests that neither a file nor a cluster names stopped running, in seconds since 1970."""
        self._heard: dict[str, float] = {}
        self._moved: dict[str, float] = {}
        self._unwritten: set[tuple[str, str]] = set()
        """Kind and name of changes by reports that are not yet in the database."""
        self._writing = threading.Lock()
        """Held while a host or a guest is written, so that no older value is written after a newer one."""
        self._drives = {site.name: (site.driver, site.address) for site in config.sites}
        for name, fields in state.get("host").items():
            kept = Host.of(fields)
            if name in self._file:
                self.hosts[name] = _measured(self.hosts[name], kept.speed, kept.features)
            elif kept.site in self.sites:
                # What drives it is what the file says now.
                self.hosts[name] = self._driven(kept)
        for name, fields in state.get("guest").items():
            self.guests[name] = Guest.of(fields)

    def site_of(self, host: str | None) -> str | None:
        """The site of a host; None if it is unknown."""
        found = self.hosts.get(host) if host is not None else None
        return found.site if found else None

    def guest_of(self, name: str) -> Guest | None:
        """The guest that uses this name for itself: its name, with or without a domain, or its address."""
        found = self.guests.get(name) or self.guests.get(name.partition(".")[0])
        return found or next((one for one in self.guests.values() if one.address == name), None)

    def place_of(self, name: str) -> str | None:
        """The site of the guest or host that uses this name for itself."""
        guest = self.guest_of(name)
        if guest is not None:
            return self.site_of(guest.host)
        return self.site_of(name) or self.site_of(name.partition(".")[0])

    def host_report(self, name: str, report: Mapping[str, Any], *, may_add: bool) -> list[str]:
        """Processes the report of a host. Returns sentences on what has changed. `write` stores it.

        may_add: whether to accept an unknown host, or a new site or size of a known one; otherwise these
        raise PermissionError. A host's driver and address come only from the sites file.

        Fields: site, cores, memory (bytes), driver, speed, features, other_load; guests, a list of name,
        cluster, cores, memory, state, address, dirty, features, cpu, sent, received. Raises KeyError,
        ValueError or TypeError for an invalid report.
        """
        changes = []
        before = self.hosts.get(name)
        host = self._host(name, report) if name not in self._file else self.hosts[name]
        if before is None or host != replace(before, speed=host.speed, features=host.features):
            if not may_add:
                raise PermissionError("it is not known as it says it is, and this token brings no host in")
            changes.append(f"host {name} of {host.site}: {host.cores} cores, by {host.driver}")
        known = before or host
        host = _measured(host, report.get("speed", known.speed), reported_features(report) or known.features)
        if host != before:
            self.hosts[name] = host
            self._unwritten.add(("host", name))
        if name in self.away:
            self.away.discard(name)
            changes.append(f"host {name} is back")
        guests = [
            reported_guest(one, name)
            for one in report.get("guests", ())
            if one.get("state", "running") == "running"
        ]
        new = {guest.name for guest in guests}.difference(self.guests)
        if len(self.guests) + len(new) > MOST_KNOWN:
            raise ValueError(f"this manager knows no more than {MOST_KNOWN} guests")
        for guest in guests:
            changes += self._seen(guest)
        changes += self._gone(name, {guest.name for guest in guests})
        changes += _of_tunnels(self.reports.get(name, {}), report)
        self._heard[name] = time.monotonic()
        self.reports[name] = {**report, "time": time.time()}
        return changes

    def _host(self, name: str, report: Mapping[str, Any]) -> Host:
        site = str(report["site"])
        if site not in self.sites:
            raise ValueError(f"{site!r} is no site of this manager; there are {', '.join(self.sites)}")
        host = self._driven(
            Host(
                reported_name({"name": name}),
                site,
                positive(report, "cores", MOST_CORES),
                positive(report, "memory"),
            )
        )
        if report.get("driver") not in (None, host.driver):
            raise ValueError(
                f"it says driver {report['driver']!r}; for hosts of {site} that report themselves the sites file "
                f"gives {host.driver!r}: set driver and address of that [[site]]"
            )
        return host

    def _driven(self, host: Host) -> Host:
        """The host with the driver and the address in the sites file. Raises ValueError for an invalid name."""
        driver, address = self._drives[host.site]
        if "{host}" in address and not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", host.name):
            raise ValueError(
                f"its name has to be of letters, digits, dots, dashes and underscores, not {host.name!r}"
            )
        return replace(host, driver=driver, address=address.replace("{host}", host.name))

    def write(self) -> None:
        """Writes changes by reports in one transaction. Raises StateError; the changes are then written next
        time.

        This blocks: call it from a thread of its own.
        """
        with self._writing:
            keys, self._unwritten = self._unwritten, set()
            known: dict[str, Mapping[str, Host | Guest]] = {"host": self.hosts, "guest": self.guests}
            rows = [(kind, name, vars(found)) for kind, name in keys if (found := known[kind].get(name))]
            try:
                self._state.put_all(rows)
            except StateError:
                self._unwritten |= keys
                raise

    def _gone(self, host: str, there: set[str]) -> list[str]:
        """Guests of the host's previous report that are no longer on it, and that no other host has reported
        since.
        """
        before = self._running.get(host, set())
        self._running[host] = there
        changes = []
        for name in sorted(before - there):
            guest = self.guests.get(name)
            if guest is not None and guest.host == host and not self._in_motion(name):
                self._reported(replace(guest, host=None))
                changes.append(f"guest {name} runs on {host} no more")
        return changes

    def _in_motion(self, guest: str) -> bool:
        moved = self._moved.get(guest, -_SETTLING)
        return guest in self.moving() or time.monotonic() - moved < _SETTLING

    def _seen(self, guest: Guest) -> list[str]:
        before = self.guests.get(guest.name)
        if self._in_motion(guest.name):
            return []
        if before is not None:
            # A host may know less of a guest than the cluster's file.
            guest = replace(
                guest,
                cluster=guest.cluster or before.cluster,
                address=guest.address or before.address,
                dirty=before.dirty if guest.dirty is None else guest.dirty,
                features=guest.features or before.features,
            )
        if before == guest:
            return []
        self._reported(guest)
        if before is None:
            return [f"guest {guest.name} is on {guest.host}"]
        return (
            [f"guest {guest.name} is on {guest.host}, not on {before.host}"]
            if before.host != guest.host
            else []
        )

    def guest_report(self, name: str, report: Mapping[str, Any]) -> None:
        """Stores a guest's report of what runs in it."""
        guest = self.guest_of(name)
        self.guest_reports[guest.name if guest else name] = {**report, "time": time.time()}

    def other_load(self, host: str) -> float:
        """Cores of a host that are busy, but not with its guests; 0 if it does not report."""
        return float(self.reports.get(host, {}).get("other_load", 0.0))

    def use_of(self, guest: Guest) -> GuestUse | None:
        """What a guest uses, as its host reports it; None if it is not known."""
        rows = self.reports.get(guest.host or "", {}).get("guests", ())
        found = next((row for row in rows if row["name"] == guest.name and "cpu" in row), None)
        if found is None:
            return None
        return GuestUse(found["cpu"], found.get("sent"), found.get("received"))

    def silent(self) -> list[str]:
        """The hosts that have become silent since the last call."""
        now = time.monotonic()
        gone = [
            name
            for name, heard in self._heard.items()
            if now - heard > self._silence and name not in self.away
        ]
        self.away.update(gone)
        return gone

    def moved(self, guest: str, host: str | None) -> None:
        """Records that a guest now runs on another host, or on none."""
        self._moved[guest] = time.monotonic()
        if guest in self.guests:
            self._keep(replace(self.guests[guest], host=host))

    def put_cluster(self, name: str, cluster: dict[str, Any]) -> list[str]:
        """Keeps a cluster as it is given; its `guests` (name, cores, memory, host, address) are known from now on.

        Returns sentences on what has changed. Raises KeyError, ValueError or TypeError for guests that cannot be used.
        """
        guests = [
            reported_guest({**one, "cluster": name}, one.get("host")) for one in cluster.get("guests", ())
        ]
        self._state.put("cluster", name, cluster)
        self.clusters[name] = cluster
        named = {guest.name for guest in guests}
        known = {one.name for one in self.guests.values() if one.cluster == name}
        for old in known - named:
            self._drop(old)
        for guest in guests:
            # Where a guest runs now is what its host says, not what it was made with.
            before = self.guests.get(guest.name)
            if before:
                guest = replace(guest, host=before.host or guest.host, features=before.features)
            self._keep(guest)
        return [
            f"{', '.join(sorted(changed))} {word}"
            for changed, word in ((named - known, "added"), (known - named, "taken away"))
            if changed
        ]

    def drop_cluster(self, name: str) -> bool:
        """Forgets a cluster and its guests; whether there was one."""
        for guest in [one for one in self.guests.values() if one.cluster == name]:
            self._drop(guest.name)
        self.clusters.pop(name, None)
        return self._state.drop("cluster", name)

    def running_on(self, hosts: Iterable[str]) -> list[Guest]:
        """The guests of these hosts."""
        wanted = set(hosts)
        return [guest for guest in self.guests.values() if guest.host in wanted]

    def forget(self, before: float, now: float) -> None:
        """Deletes guests that neither a file nor a cluster names, and that stopped running before a time."""
        for name, guest in list(self.guests.items()):
            if guest.host is not None or name in self._named or guest.cluster in self.clusters:
                if self._nowhere.pop(name, None) is not None:
                    self._state.drop("nowhere", name)
            elif name not in self._nowhere:
                self._nowhere[name] = now
                self._state.put("nowhere", name, now)
            elif self._nowhere[name] < before:
                self._drop(name)

    def _reported(self, guest: Guest) -> None:
        self.guests[guest.name] = guest
        self._unwritten.add(("guest", guest.name))

    def _keep(self, guest: Guest) -> None:
        self.guests[guest.name] = guest
        with self._writing:
            self._state.put("guest", guest.name, vars(guest))

    def _drop(self, guest: str) -> None:
        self._moved[guest] = time.monotonic()  # a report that is on its way does not bring it back
        self.guests.pop(guest, None)
        self.guest_reports.pop(guest, None)
        with self._writing:
            self._state.drop("guest", guest)
        if self._nowhere.pop(guest, None) is not None:
            self._state.drop("nowhere", guest)


def _measured(host: Host, speed: float, features: tuple[str, ...]) -> Host:
    """The host with what was measured of it; a speed in the sites file wins."""
    return replace(host, speed=host.speed if host.speed_given else float(speed), features=features)


def _of_tunnels(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What has changed about the tunnels of a host since its last report."""
    known = {one["cluster"]: one for one in before.get("tunnels", ())}
    changes = []
    for one in now.get("tunnels", ()):
        last = known.get(one["cluster"], {"runs": True, "restarts": 0})
        what = f"the tunnel of cluster {one['cluster']}"
        if last["runs"] and not one["runs"]:
            changes.append(f"{what} has ended; it is started again")
        elif one["runs"] and not last["runs"]:
            changes.append(f"{what} runs again")
        elif one["runs"] and one["restarts"] > last["restarts"]:
            changes.append(f"{what} had ended and was started again")
    return changes
