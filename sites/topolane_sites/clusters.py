"""Reads the file of a virtual cluster: its guests, its network, and how to reach its hosts."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topolane.reading import FileTable, read

from topolane_sites import relay
from topolane_sites.model import Guest, Host
from topolane_sites.overlay import OverlayMember

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topolane_sites.model import WanLink

DRIVERS = ("qmp", "libvirt")
"""Drivers that can build guests, not only move them."""


@dataclass(frozen=True)
class Boot:
    """The boot files of a guest: a kernel and an initramfs, or a disk image that all its hosts see."""

    kernel: str = ""
    initramfs: str = ""
    append: str = ""
    """The kernel's command line; `{name}`, `{address}` and `{prefix}` are filled in."""
    image: str = ""
    accelerator: str = ""
    """`kvm` or `tcg`; by default whatever the host supports."""


@dataclass(frozen=True)
class VirtualCluster:
    """A virtual cluster."""

    name: str
    network: str
    """Its network, such as `10.42.0.0/24`."""
    hosts: tuple[Host, ...]
    members: tuple[OverlayMember, ...]
    """The same hosts and any others that take part in the network."""
    guests: tuple[Guest, ...]
    """Its guests, each with the host that it is built on."""
    boots: tuple[Boot, ...]
    """The boot files of the guests, in their order."""
    sites: tuple[str, ...] = ()
    """The sites that it may use; empty for all sites of its hosts."""
    named: frozenset[str] = frozenset()
    """The guests whose host its file names."""
    relay: str | None = None
    """The member that those behind NAT connect to; None if no member is behind NAT."""

    @property
    def prefix(self) -> int:
        """The prefix length of the network."""
        return ipaddress.ip_network(self.network).prefixlen

    def host(self, name: str) -> Host:
        """The host of that name."""
        return next(host for host in self.hosts if host.name == name)

    def member(self, name: str) -> OverlayMember:
        """The member of that name, which says how to reach it."""
        return next(member for member in self.members if member.name == name)

    def wanted(self, running: Mapping[str, str] = {}) -> dict[str, Any] | None:
        """The request for the manager's policy, if the guests to build have one size and none names its host;
        otherwise None.

        running: the hosts of the guests that run already.
        """
        new = [guest for guest in self.guests if guest.name not in running]
        sizes = {(guest.cores, guest.memory) for guest in new}
        if len(sizes) != 1 or any(guest.name in self.named for guest in new):
            return None
        ((cores, memory),) = sizes
        return {
            "guests": len(new),
            "cores": cores,
            "memory": memory,
            "sites": sorted({host.site for host in self.hosts}),
            "like": self.name,
            "beside": sorted(running.values()),
        }

    def on(self, hosts: Sequence[str], running: Mapping[str, str] = {}) -> VirtualCluster:
        """The cluster with the guests to build on these hosts, in their order; unchanged if one of them is not
        its host.
        """
        if not {host.name for host in self.hosts}.issuperset(hosts):
            return self
        left = iter(hosts)
        guests = (
            guest if guest.name in running else replace(guest, host=next(left)) for guest in self.guests
        )
        return replace(self, guests=tuple(guests))

    def description(self) -> dict[str, Any]:
        """The data for the manager: guests and network, but nothing that is executed on a host."""
        guests = [asdict(guest) for guest in self.guests]
        return {"name": self.name, "network": self.network, "sites": list(self.sites), "guests": guests}


def read_cluster(
    path: str | Path,
    hosts: Sequence[Host],
    guests: Sequence[Guest] | None = None,
    running: Mapping[str, str] = {},
    links: Sequence[WanLink] = (),
) -> VirtualCluster:
    """Reads a cluster's file.

    hosts: all known hosts. guests: those that already take room on them; None if the cluster will not be
    built, so neither room nor boot files are needed. running: the hosts of its own guests that run; they
    stay there. links: the WAN, by which the relay is chosen. Raises InputError, with file, line and value, for
    invalid content, and for a guest that fits on no host.
    """
    top = read(path)
    name = top.plain("name")
    network = _network(top)
    members = tuple(_member(table) for table in top.tables("host"))
    known = {host.name: host for host in hosts}
    used = tuple(known[member.name] for member in members if member.name in known)
    for host in used:
        if host.driver not in DRIVERS:
            raise top.refuse(
                "host", f"{host.name} is driven by {host.driver}; guests are built by {', '.join(DRIVERS)}"
            )
    hub = _relay(top, members, {host.name: host.site for host in hosts}, links)
    sites = top.words("sites", ())
    for site in sites:
        if site not in {host.site for host in hosts}:
            raise top.refuse("sites", f"{site!r} is no site of the sites file")
    used = tuple(host for host in used if not sites or host.site in sites)
    if not used:
        raise top.refuse("host", "none of them is a host of the sites file, on a site that is allowed")
    others = None if guests is None else [guest for guest in guests if guest.cluster != name]
    drafts: list[_Draft] = []
    for table in top.tables("guest"):
        drafts.append(_guest(table, name, network, [draft.guest for draft in drafts], others))
    if not drafts:
        raise top.refuse(None, "no [[guest]] is described")
    top.done()
    return VirtualCluster(
        name,
        str(network),
        used,
        members,
        tuple(_placed(drafts, used, running, others)),
        tuple(draft.boot for draft in drafts),
        sites,
        frozenset(draft.guest.name for draft in drafts if draft.wanted),
        hub,
    )


Network = ipaddress.IPv4Network


def _network(top: FileTable) -> Network:
    text = top.word("network")
    try:
        return Network(text)
    except ValueError as error:
        raise top.refuse("network", f"{text!r} is no network such as 10.42.0.0/24: {error}") from error


def _member(table: FileTable) -> OverlayMember:
    tunnel = table.word("tunnel")
    try:
        ipaddress.IPv4Address(tunnel)
    except ValueError as error:
        raise table.refuse("tunnel", f"{tunnel!r} is no IPv4 address") from error
    own = table.word("own", "")
    try:
        ipaddress.IPv4Interface(own or "0.0.0.0")
    except ValueError as error:
        raise table.refuse("own", f"{own!r} is no address with a prefix length") from error
    member = OverlayMember(
        table.word("name"), table.words("run", ()), tunnel, table.flag("behind-nat", False), own or None
    )
    table.done()
    return member


def _relay(
    top: FileTable, members: Sequence[OverlayMember], site_of: Mapping[str, str], links: Sequence[WanLink]
) -> str | None:
    wanted = top.word("relay", "")
    hidden = [member.name for member in members if member.behind_nat]
    open_ = [member.name for member in members if not member.behind_nat]
    if wanted and wanted not in open_:
        why = (
            "is behind NAT, so no other host can reach it"
            if wanted in hidden
            else "is no [[host]] of this file"
        )
        raise top.refuse("relay", f"{wanted!r} {why}")
    if not hidden:
        return None
    if not open_:
        raise top.refuse(
            "host",
            f"{', '.join(hidden)}: all hosts are behind NAT, so none can be a relay; add a [[host]] that is not",
        )
    return wanted or relay.nearest(open_, hidden, site_of, links)


@dataclass(frozen=True)
class _Draft:
    """A guest of the file that has no host yet."""

    table: FileTable
    guest: Guest
    boot: Boot
    wanted: str
    """The host that the file names, or nothing."""


def _guest(
    table: FileTable,
    cluster: str,
    network: Network,
    before: Sequence[Guest],
    others: Sequence[Guest] | None,
) -> _Draft:
    name = table.plain("name")
    if name == "host":
        raise table.refuse("name", "'host' is what a host's own file is called")
    if any(guest.name == name for guest in (*before, *(others or ()))):
        raise table.refuse("name", f"{name!r} is a guest already")
    address = table.word("address")
    try:
        inside = ipaddress.IPv4Address(address) in network
    except ValueError as error:
        raise table.refuse("address", f"{address!r} is no IPv4 address") from error
    if not inside or any(guest.address == address for guest in before):
        raise table.refuse("address", f"{address} is {'taken' if inside else f'not in {network}'}")
    cores, memory, wanted = table.whole("cores", 1, 1024), table.size("memory"), table.word("host", "")
    boot = Boot(*(table.word(key, "") for key in ("kernel", "initramfs", "append", "image", "accelerator")))
    if others is not None:
        _check(table, boot)
    table.done()
    return _Draft(table, Guest(name, cluster, cores, memory, None, address), boot, wanted)


def _placed(
    drafts: Sequence[_Draft],
    hosts: Sequence[Host],
    running: Mapping[str, str],
    others: Sequence[Guest] | None,
) -> list[Guest]:
    """The guests on their hosts: where they run, else where the file says, else where most cores are free."""
    placed = {
        draft.guest.name: replace(draft.guest, host=running[draft.guest.name])
        for draft in drafts
        if draft.guest.name in running
    }
    for draft in drafts:
        if draft.guest.name not in placed:
            taken = [*placed.values(), *(others or ())]
            host = _host(draft, hosts, taken, unlimited=others is None)
            placed[draft.guest.name] = replace(draft.guest, host=host)
    return [placed[draft.guest.name] for draft in drafts]


def _host(draft: _Draft, hosts: Sequence[Host], taken: Sequence[Guest], *, unlimited: bool) -> str:
    guest, table = draft.guest, draft.table
    allowed = [host for host in hosts if not draft.wanted or host.name == draft.wanted]
    if not allowed:
        raise table.refuse("host", f"= {draft.wanted!r} is no host that the cluster may use")
    wants = (guest.cores, guest.memory)
    with_room = [
        host
        for host in allowed
        if unlimited or all(free >= needed for free, needed in zip(_free(host, taken), wants))
    ]
    if not with_room:
        raise table.refuse(
            "name", f"{guest.name}: no host has {guest.cores} cores and {guest.memory} bytes free for it"
        )
    return max(with_room, key=lambda host: _free(host, taken)[0]).name


def _check(table: FileTable, boot: Boot) -> None:
    if bool(boot.kernel) == bool(boot.image):
        raise table.refuse(None, "a guest starts from a kernel or from an image")
    for key in ("kernel", "initramfs", "image"):
        file = getattr(boot, key)
        if file and not Path(file).is_file():
            raise table.refuse(key, f"{file}: there is no such file")
    try:
        boot.append.format(name="", address="", prefix=0)
    except (LookupError, ValueError, AttributeError) as error:
        raise table.refuse(
            "append", f"{boot.append!r}: only {{name}}, {{address}} and {{prefix}} are filled in"
        ) from error
    if boot.accelerator not in ("", "kvm", "tcg"):
        raise table.refuse("accelerator", f"{boot.accelerator!r} is neither kvm nor tcg")


def _free(host: Host, guests: Sequence[Guest]) -> tuple[int, int]:
    """Free cores and bytes of memory."""
    here = [guest for guest in guests if guest.host == host.name]
    return host.cores - sum(one.cores for one in here), host.memory - sum(one.memory for one in here)
