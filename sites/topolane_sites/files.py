"""Reads the sites file, the configuration of a manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from topolane._engine import InputError, site_policies
from topolane.mpi.address import Address
from topolane.reading import MOST_CORES, FileTable, read

from topolane_sites.model import Guest, Host, Site, WanLink
from topolane_sites.movers import DRIVERS, WANT_ADDRESS
from topolane_sites.processor import LEAST_SPEED, MOST_SPEED


@dataclass(frozen=True)
class Config:
    """A sites file."""

    sites: tuple[Site, ...]
    links: tuple[WanLink, ...]
    guests: tuple[Guest, ...]
    """Guests that no host daemon reports."""
    listen: tuple[Address, ...]
    """Addresses of the HTTP interface."""
    programs: tuple[Address, ...]
    """Addresses where programs report."""
    state: str
    """URL of the database."""
    policy: str = "predicted-time"
    act: bool = False
    """Whether plans are carried out; otherwise they are only proposed."""
    interval: float = 5.0
    """Seconds between two looks."""
    silence: float = 30.0
    """Seconds without a report after which a host counts as silent. Also the seconds without a connected rank
    after which a program counts as ended.
    """
    at_once: int = 1
    """How many moves may run at once."""
    keep: float = 30.0
    """Days for which ended programs, guests and moves are kept."""
    token: str | None = None
    """Token for all requests of the HTTP interface."""
    report_token: str | None = None
    """Token for programs, and for reports of hosts and guests only."""
    read_token: str | None = None
    """Token for GET only."""
    certificate: str | None = None
    key: str | None = None

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of all sites."""
        return tuple(host for site in self.sites for host in site.hosts)


def read_config(path: str | Path) -> Config:
    """Reads a sites file. Raises InputError for invalid content."""
    top = read(path)
    sites = _sites(top)
    links = tuple(_link(table, {site.name for site in sites}) for table in top.tables("link"))
    hosts = {host.name: host for site in sites for host in site.hosts}
    guests = _guests(top, hosts)
    table = top.table("manager")
    folder = Path(path).resolve().parent
    listen = table.words("listen", ("unix:/run/topolane/sites.sock",))
    programs = table.words("programs", ("unix:/run/topolane/programs.sock",))
    policy = table.word("policy", "predicted-time")
    known = [name for name, _ in site_policies()]
    if policy not in known:
        raise table.refuse("policy", f"{policy!r} is not known; there are {', '.join(known)}")
    certificate, key = table.word("certificate", ""), table.word("key", "")
    config = Config(
        sites=sites,
        links=links,
        guests=guests,
        listen=tuple(_address(table, "listen", one) for one in listen),
        programs=tuple(_address(table, "programs", one) for one in programs),
        state=_database(table, folder),
        policy=policy,
        act=table.flag("act", False),
        interval=table.number("interval", 0.05, 3600, 5.0),
        silence=table.number("silence", 1, 86400, 30.0),
        at_once=table.whole("moves-at-once", 1, 64, 1),
        keep=table.number("keep", 0, 36500, 30.0),
        token=_token(table, "token-file", folder),
        report_token=_token(table, "report-token-file", folder),
        read_token=_token(table, "read-token-file", folder),
        certificate=str(folder / certificate) if certificate else None,
        key=str(folder / key) if key else None,
    )
    table.done()
    top.done()
    _check_listeners(config, table)
    return config


def _sites(top: FileTable) -> tuple[Site, ...]:
    sites: list[Site] = []
    before = 0
    seen: set[str] = set()
    for table in top.tables("site"):
        name = table.word("name")
        if name in {site.name for site in sites}:
            raise table.refuse("name", f"{name!r} is a site already")
        tables = table.tables("host", before)
        before += len(tables)
        hosts = []
        for one in tables:
            host = _host(one, name)
            if host.name in seen:
                raise one.refuse("name", f"{host.name!r} is a host already")
            seen.add(host.name)
            hosts.append(host)
        driver, address = _driver(table)
        table.done()
        sites.append(Site(name, tuple(hosts), driver, address))
    if not sites:
        raise top.refuse(None, "no [[site]] is described")
    return tuple(sites)


def _host(table: FileTable, site: str) -> Host:
    name = table.name("name")
    cores, memory = table.whole("cores", 1, MOST_CORES), table.size("memory")
    driver, address = _driver(table)
    given = table.peek("speed") is not None
    speed = table.number("speed", LEAST_SPEED, MOST_SPEED, 1.0)
    table.done()
    return Host(name, site, cores, memory, driver, address, speed, given)


def _driver(table: FileTable) -> tuple[str, str]:
    """The driver and the address of a host, or of a site whose hosts report themselves."""
    driver, address = table.word("driver", "dry-run"), table.word("address", "")
    if driver not in DRIVERS:
        raise table.refuse("driver", f"{driver!r} is not known; there are {', '.join(DRIVERS)}")
    if driver in WANT_ADDRESS and not address:
        raise table.refuse("driver", f"{driver!r} wants an address: {WANT_ADDRESS[driver]}")
    return driver, address


def _link(table: FileTable, sites: set[str]) -> WanLink:
    between = table.words("between")
    if len(between) != 2 or between[0] == between[1] or not sites.issuperset(between):
        raise table.refuse("between", f"must name two of the sites, not {list(between)!r}")
    window = table.size("window", 0)
    link = WanLink(
        between=(between[0], between[1]),
        latency=table.number("latency", 0, 10),
        bandwidth=table.number("bandwidth", 1, 1e15),
        window=float(window) if window else None,
    )
    table.done()
    return link


def _guests(top: FileTable, hosts: Mapping[str, Host]) -> tuple[Guest, ...]:
    guests: dict[str, Guest] = {}
    for table in top.tables("guest"):
        guest = _guest(table, hosts)
        if guest.name in guests:
            raise table.refuse("name", f"{guest.name!r} is a guest already")
        guests[guest.name] = guest
    return tuple(guests.values())


def _guest(table: FileTable, hosts: Mapping[str, Host]) -> Guest:
    dirty = table.size("dirty", 0)
    guest = Guest(
        name=table.name("name"),
        cluster=table.word("cluster", ""),
        cores=table.whole("cores", 1, MOST_CORES),
        memory=table.size("memory"),
        host=table.word("host"),
        address=table.word("address", ""),
        dirty=float(dirty) if dirty else None,
    )
    host = hosts.get(guest.host or "")
    if host is None:
        raise table.refuse("host", f"{guest.host!r} is no host of this file")
    if guest.cores > host.cores:
        raise table.refuse(
            "cores", f"of guest {guest.name!r} are {guest.cores}; host {host.name!r} has {host.cores}"
        )
    if guest.memory > host.memory:
        raise table.refuse(
            "memory", f"of guest {guest.name!r} is {guest.memory} bytes; host {host.name!r} has {host.memory}"
        )
    table.done()
    return guest


def _address(table: FileTable, key: str, text: str) -> Address:
    try:
        return Address.parse(text)
    except InputError as error:
        raise table.refuse(key, f"= {error}") from error


def _database(table: FileTable, folder: Path) -> str:
    """The URL of the database. A path names an SQLite file."""
    text = table.word("state", "sites.db")
    if urlsplit(text).scheme.startswith("postgresql"):
        return text.replace("postgresql://", "postgresql+psycopg://", 1)
    name = text.removeprefix("sqlite:///")
    if "://" in name:
        raise table.refuse("state", "is neither a file nor a URL that begins with postgresql://")
    return f"sqlite:///{folder / name}"


def _token(table: FileTable, key: str, folder: Path) -> str | None:
    name = table.word(key, "")
    if not name:
        return None
    path = folder / name
    try:
        token = path.read_text(encoding="ascii").strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise table.refuse(key, f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise table.refuse(key, f"{path}: not ASCII text") from error
    if len(token) < 16 or not token.isprintable():
        raise table.refuse(key, f"{path}: a token has at least 16 characters, in one line")
    if mode & 0o077:
        raise table.refuse(key, f"{path}: others than its owner may read it (chmod 600)")
    return token


def _check_listeners(config: Config, table: FileTable) -> None:
    if config.read_token is not None and config.read_token in (config.token, config.report_token):
        raise table.refuse("read-token-file", "holds a token that allows more; it needs one of its own")
    for address in config.listen:
        if address.path is None and config.token is None:
            raise table.refuse(
                "listen", f"{address}: any user of this machine reaches a TCP port; it needs a token-file"
            )
        if not address.is_local and (config.certificate is None or config.key is None):
            raise table.refuse("listen", f"{address}: beyond this machine certificate and key are needed")
    for address in config.programs:
        if address.path is None and config.report_token is None:
            raise table.refuse(
                "programs",
                f"{address}: any user of this machine reaches a TCP port; it needs a report-token-file",
            )
