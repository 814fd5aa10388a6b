"""Network namespaces that stand for sites, joined by one that stands for the WAN."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

FAR = Path(__file__).resolve().parents[2] / "benches" / "mpi" / "wan.c"


class Wan:
    """Sites `a`, `b`, ... with the addresses 192.0.2.1, .2, ...; the WAN itself is 192.0.2.254."""

    def __init__(self, sites: Sequence[str], hidden: Sequence[str] = ()) -> None:
        self.prefix = f"tl{os.getpid()}"
        self.sites = tuple(sites)
        self.hidden = tuple(hidden)
        """Sites behind NAT: 10.99.N.2 inside, the site's address outside."""
        self._delays: subprocess.Popen[str] | None = None

    def name(self, site: str) -> str:
        return f"{self.prefix}{site}"

    def run(self, site: str) -> tuple[str, ...]:
        """What to put before a command that is to run there; `wan` for the WAN."""
        return ("ip", "netns", "exec", self.name(site))

    def address(self, site: str) -> str:
        return f"{'198.51.100' if self._delays else '192.0.2'}.{self.number(site)}"

    def number(self, site: str) -> int:
        """The last part of a site's address."""
        return 254 if site == "wan" and not self._delays else [*self.sites, "wan"].index(site) + 1

    def up(self) -> None:
        self._namespace("wan")
        self._do("wan", "ip link add wan type bridge")
        self._do("wan", "ip address add 192.0.2.254/24 dev wan")
        self._do("wan", "ip link set wan up")
        for number, site in enumerate(self.sites):
            outer = f"nat{site}" if site in self.hidden else site
            self._namespace(outer)
            self._join("wan", outer, f"s{number}")
            self._do("wan", f"ip link set s{number} master wan")
            self._do(outer, f"ip address add {self.address(site)}/24 dev uplink")
            if site in self.hidden:
                self._hide(site, outer, number)

    def delay(self, milliseconds: float) -> bool:
        """Delays what leaves each site; whether the kernel can."""
        done = [
            subprocess.run(
                [*self.run(site), *f"tc qdisc replace dev uplink root netem delay {milliseconds}ms".split()],
                capture_output=True,
            ).returncode
            for site in self.sites
        ]
        return not any(done)

    def far(self, milliseconds: float, mbit: float, folder: Path) -> None:
        """Joins the sites, and the WAN as a host of its own, by a second network with a real delay, for kernels
        without netem: 198.51.100.1, .2, ... From now on these are the addresses. Its program is put into folder.
        """
        subprocess.run(["cc", "-O2", "-o", folder / "wan", FAR], check=True)
        places = (*self.sites, "wan")
        words = [str(folder / "wan"), str(milliseconds), str(mbit)]
        words += [word for number, place in enumerate(places) for word in (self.name(place), str(number))]
        self._delays = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        if not self._delays.stdout or self._delays.stdout.readline() != "ready\n":
            raise RuntimeError(f"{words} ended with exit code {self._delays.wait()}")
        for place in places:
            self._do(place, f"ip address add {self.address(place)}/24 dev far")
            self._do(place, "ip link set far up")

    def down(self) -> None:
        if self._delays:
            self._delays.kill()
            self._delays.wait()
        for name in ("wan", *self.sites, *(f"nat{site}" for site in self.hidden)):
            subprocess.run(["ip", "netns", "delete", self.name(name)], capture_output=True)

    def _hide(self, site: str, outer: str, number: int) -> None:
        """A site behind a router that lets connections out, and none in."""
        self._namespace(site)
        self._join(outer, site, "in")
        self._do(outer, f"ip address add 10.99.{number}.1/24 dev in")
        self._do(site, f"ip address add 10.99.{number}.2/24 dev uplink")
        self._do(site, f"ip route add default via 10.99.{number}.1")
        self._do(outer, "sysctl -qw net.ipv4.ip_forward=1")
        rules = (
            "add table ip nat\n"
            "add chain ip nat out { type nat hook postrouting priority 100; }\n"
            "add rule ip nat out oifname uplink masquerade\n"
            "add chain ip nat through { type filter hook forward priority 0; policy drop; }\n"
            "add rule ip nat through iifname in accept\n"
            "add rule ip nat through ct state established,related accept\n"
        )
        subprocess.run([*self.run(outer), "nft", "-f", "-"], input=rules, text=True, check=True)

    def _namespace(self, name: str) -> None:
        subprocess.run(["ip", "netns", "add", self.name(name)], check=True)
        self._do(name, "ip link set lo up")

    def _join(self, near: str, far: str, port: str) -> None:
        """A cable: its end in `near` is `port`, in `far` it is `uplink`."""
        self._do(near, f"ip link add {port} type veth peer name uplink netns {self.name(far)}")
        self._do(near, f"ip link set {port} up")
        self._do(far, "ip link set uplink up")

    def _do(self, name: str, words: str) -> None:
        done = subprocess.run([*self.run(name), *words.split()], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: {words}: {done.stderr.strip()}")


@contextlib.contextmanager
def wan(sites: Sequence[str], hidden: Sequence[str] = ()) -> Iterator[Wan]:
    made = Wan(sites, hidden)
    try:
        made.up()
        yield made
    finally:
        made.down()
