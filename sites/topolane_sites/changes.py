"""Builds a virtual cluster, lets it grow and shrink, and takes it down: what `sites up` and `sites down` do.

A cluster is held at the manager while it is changed, so none of its guests is moved and no other command
changes it. What runs is found on the hosts, not in a record, so a command that was killed can be given again.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from topolane._engine import InputError
from topolane.units import clean, plural

from topolane_sites import builders, relay
from topolane_sites.clusters import VirtualCluster, read_cluster
from topolane_sites.holding import holding
from topolane_sites.model import Guest
from topolane_sites.remote import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from topolane_sites.client import Client
    from topolane_sites.files import Config

    Tell = Callable[[str], None]

FIXED = ("cores", "memory", "address")
"""What of a guest cannot change while it runs."""
OLD = 30.0
"""Seconds after which a daemon's last report says nothing of a guest that no host reports."""


def up(manager: Client, file: str, config: Config, *, remove: bool, tell: Tell) -> VirtualCluster:
    """Builds the missing parts of the cluster that the file describes.

    remove: end guests that the file does not name any more; otherwise they are an error. Raises InputError if
    the cluster cannot be built; then everything that was built is taken down again.
    """
    described = read_cluster(file, config.hosts, links=config.links)
    with holding(manager, described.name, tell) as owner:
        known = _Known(manager, described.name, owner)
        running = _located(described)
        _check_hosts(file, described, [guest for guest in known.guests if guest.name not in running])
        _check_unchanged(file, described, known, running)
        lost = [guest for guest in known.guests if guest.name not in {one.name for one in described.guests}]
        if lost and not remove:
            names = [guest.name for guest in lost]
            raise InputError(
                f"{file} no longer names {', '.join(names)} of {described.name}: to end "
                f"{'it' if len(names) == 1 else 'them'}, run 'sites down {file} --guests {','.join(names)}' or "
                "'sites up --remove'"
            )
        _check_ended(known, lost, tell)
        cluster = _read_to_build(manager, file, config, running)
        for guest in lost:
            tell(f"{file} no longer names {guest.name}: it is ended")
        if lost:
            _take(cluster, known, lost, tell)
        _build(manager, cluster, known, running, tell)
    for said in relay.sentences(cluster, config.hosts, config.links):
        tell(said)
    return cluster


def down(manager: Client, file: str, config: Config, tell: Tell) -> VirtualCluster:
    """Takes down the cluster that the file describes. Raises InputError if a part of it is left."""
    cluster = read_cluster(file, config.hosts)
    with holding(manager, cluster.name, tell) as owner:
        known = _existing(manager, file, cluster, owner)
        unnamed = {guest.name for guest in known.guests} - {guest.name for guest in cluster.guests}
        if unnamed:
            raise InputError(
                f"{file}: {', '.join(sorted(unnamed))} of {cluster.name}, as the manager knows it, is not in this "
                "file: list every guest to end in it, or end these first with --guests"
            )
        _check_hosts(file, cluster, known.guests)
        if left := builders.down(cluster, tell):
            raise InputError(f"{cluster.name} is not down: {'; '.join(left)}")
        known.drop()
    return cluster


def take(
    manager: Client, file: str, config: Config, names: Sequence[str], *, force: bool, tell: Tell
) -> VirtualCluster:
    """Takes some guests away from the cluster that the file describes, which need not name them any more.

    force: also guests whose program still runs. Returns the cluster. Raises InputError if a guest is left.
    """
    cluster = read_cluster(file, config.hosts)
    with holding(manager, cluster.name, tell) as owner:
        known = _existing(manager, file, cluster, owner)
        guests = {guest.name: guest for guest in known.guests}
        for name in names:
            if name not in guests:
                raise InputError(
                    f"--guests {name}: {cluster.name} has no such guest; it has {', '.join(sorted(guests))}"
                )
        if guests.keys() == set(names):
            raise InputError(
                f"--guests {','.join(names)}: no guest of {cluster.name} would be left; without --guests, the "
                "cluster is taken down"
            )
        taken = [guests[name] for name in dict.fromkeys(names)]
        _check_hosts(file, cluster, taken)
        if not force:
            _check_ended(known, taken, tell)
        _take(cluster, known, taken, tell)
    return cluster


class _Known:
    """A cluster as the manager knows it, while this command holds it."""

    def __init__(self, manager: Client, name: str, owner: str) -> None:
        self._manager, self._path = manager, f"/clusters/{name}?owner={quote(owner)}"
        self.body: dict[str, Any] | None = manager.get("/clusters").get(name)
        listed = [one for one in manager.get("/guests") if one["cluster"] == name]
        self.guests = _guests(listed)
        self.programs: dict[str, list[dict[str, str]]] = {one["name"]: one["programs"] for one in listed}
        """The running programs by guest."""
        self.reports: dict[str, Any] = {one["name"]: one.get("report") for one in listed}
        """The last report of each guest's daemon."""

    def put(self, body: dict[str, Any]) -> None:
        """Replaces it."""
        self._manager.put(self._path, body)

    def drop(self) -> None:
        """Deletes it."""
        self._manager.delete(self._path)

    def restore(self, body: dict[str, Any] | None) -> None:
        """Makes it what it was."""
        with contextlib.suppress(InputError):  # the manager may be away, or know nothing of it yet
            if body is None:
                self.drop()
            else:
                self.put(body)

    def shrink(self, names: Collection[str]) -> None:
        """Takes guests out of it."""
        if self.body is not None:
            left = [guest for guest in self.body.get("guests", ()) if guest["name"] not in names]
            self.body = self.body | {"guests": left}
            self.put(self.body)
        self.guests = [guest for guest in self.guests if guest.name not in names]


def _existing(manager: Client, file: str, cluster: VirtualCluster, owner: str) -> _Known:
    known = _Known(manager, cluster.name, owner)
    if known.body is None:
        raise InputError(f"{file}: the manager knows no cluster {cluster.name}")
    return known


def _located(cluster: VirtualCluster) -> dict[str, str]:
    try:
        return builders.located(cluster)
    except CommandFailed as error:
        raise InputError(f"{cluster.name} is not changed: {error}") from error


def _check_hosts(file: str, cluster: VirtualCluster, guests: Sequence[Guest]) -> None:
    """Raises InputError if a guest runs on a host that the file does not name."""
    hosts = {host.name for host in cluster.hosts}
    for guest in guests:
        if guest.host is not None and guest.host not in hosts:
            raise InputError(
                f"{file}: {guest.name} of {cluster.name} runs on {guest.host}, as the manager knows it, which is no "
                "[[host]] of this file that the cluster may use: add it"
            )


def _check_unchanged(file: str, cluster: VirtualCluster, known: _Known, running: dict[str, str]) -> None:
    """Raises InputError if the file describes what runs in another way than it was built."""
    body = known.body or {}
    if running and body.get("network", cluster.network) != cluster.network:
        raise InputError(
            f"{file}: network is {body['network']} while {cluster.name} runs, not {cluster.network}: take the cluster "
            "down first"
        )
    built = {one["name"]: one for one in body.get("guests", ())}
    for guest in cluster.guests:
        for key in FIXED if guest.name in running else ():
            before = built.get(guest.name, {}).get(key, getattr(guest, key))
            if before != getattr(guest, key):
                raise InputError(
                    f"{file}: {key} of {guest.name} is {before} while it runs, not {getattr(guest, key)}: take it away "
                    f"first with 'sites down {file} --guests {guest.name}'"
                )


def _read_to_build(manager: Client, file: str, config: Config, running: dict[str, str]) -> VirtualCluster:
    return read_cluster(file, config.hosts, _guests(manager.get("/guests")), running, config.links)


def _guests(listed: Sequence[dict[str, Any]]) -> list[Guest]:
    fields = Guest.__dataclass_fields__
    return [Guest.of({key: one[key] for key in fields}) for one in listed]


def _check_ended(known: _Known, guests: Sequence[Guest], tell: Tell) -> None:
    """Raises InputError if a program that the manager watches still runs in one of these guests, or a rank of MPI that the
    guest's daemon reports. Says which guests have no daemon.
    """
    for guest in guests:
        if programs := known.programs.get(guest.name):
            named = ", ".join(f"{one['name']} ({one['id']})" for one in programs)
            raise InputError(
                f"{guest.name} still runs program {named}: end it, or take the guest away with "
                f"'sites down --guests {guest.name} --force'"
            )
        report = known.reports.get(guest.name)
        if guest.host is None and isinstance(report, dict) and time.time() - report.get("time", 0.0) > OLD:
            continue  # neither its host nor its daemon reports it: it has ended
        if not isinstance(report, dict) or not isinstance(report.get("ranks"), list):
            tell(
                f"{guest.name} has no daemon that reports its ranks: only programs that are watched were looked for"
            )
        elif ranks := report["ranks"]:
            names = {clean(one.get("name", "")) for one in ranks if isinstance(one, dict)}
            raise InputError(
                f"{guest.name} still runs {plural(len(ranks), 'rank')} of MPI ({', '.join(sorted(names)[:3])}), as its "
                "daemon reported last: end the program, or take the guest away with "
                f"'sites down --guests {guest.name} --force'"
            )


def _take(cluster: VirtualCluster, known: _Known, guests: Sequence[Guest], tell: Tell) -> None:
    if left := builders.take(cluster, guests, tell):
        raise InputError(f"{cluster.name} is not changed as asked: {'; '.join(left)}")
    known.shrink({guest.name for guest in guests})


def _build(
    manager: Client, cluster: VirtualCluster, known: _Known, running: dict[str, str], tell: Tell
) -> None:
    """Asks the policy for hosts, informs the manager, and builds what is missing. Leaves all as it was if that fails,
    but the manager keeps the guests that may still run.
    """
    before = known.body
    try:
        if waiting := {guest.name for guest in known.guests} - running.keys():
            # They do not run: the manager must not keep room for them while their hosts are chosen.
            known.shrink(waiting)
        if (wanted := cluster.wanted(running)) is not None:
            cluster = cluster.on(manager.post("/place", wanted)["hosts"], running)
        known.put(cluster.description())
        builders.up(cluster, running, tell)
    except BaseException as error:  # an interrupt must not leave half a cluster either
        left = error.guests if isinstance(error, builders.LeftBehind) else {}
        known.restore(_with_guests(before, cluster.description(), left))
        if left:
            names = ",".join(left)
            raise InputError(
                f"{cluster.name} cannot be built: {error}. What was built is taken down again, but not "
                f"{'; '.join(left.values())}. The manager keeps {names} as a part of the cluster: once this is mended, "
                f"run 'sites up' again, or 'sites down --guests {names}'"
            ) from error
        if isinstance(error, CommandFailed):
            raise InputError(
                f"{cluster.name} cannot be built; the parts that were built are taken down again: {error}"
            ) from error
        raise


def _with_guests(
    body: dict[str, Any] | None, described: dict[str, Any], names: Collection[str]
) -> dict[str, Any] | None:
    """A cluster as the manager knew it, with these guests as they were described to it; None if there is none of both."""
    if not names:
        return body
    before = [guest for guest in (body or {}).get("guests", ()) if guest["name"] not in names]
    return {
        **(body or described),
        "guests": before + [guest for guest in described["guests"] if guest["name"] in names],
    }
