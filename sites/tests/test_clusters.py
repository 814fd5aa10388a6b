"""The file of a virtual cluster: what is wrong with it is said with file, line and value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from topolane._engine import InputError
from topolane_sites.clusters import VirtualCluster, read_cluster
from topolane_sites.model import Guest, Host

HOSTS = (
    Host("a1", "a", 2, 2 << 30, "qmp", "/nowhere/a1"),
    Host("b1", "b", 2, 2 << 30, "qmp", "/nowhere/b1"),
    Host("n1", "b", 2, 2 << 30, "nova", "n1"),
)
HEAD = 'name = "c"\nnetwork = "10.42.0.0/24"\n'
A1 = '[[host]]\nname = "a1"\ntunnel = "192.0.2.1"\n'
B1 = '[[host]]\nname = "b1"\nrun = ["ssh", "b1"]\ntunnel = "192.0.2.2"\nbehind-nat = true\n'


def _guest(folder: Path, number: int, more: str = "", cores: int = 1) -> str:
    (folder / "kernel").touch()
    return (
        f'[[guest]]\nname = "g{number}"\ncores = {cores}\nmemory = "256 MiB"\naddress = "10.42.0.{number}"\n'
        f'kernel = "{folder / "kernel"}"\n{more}'
    )


def _read(folder: Path, text: str, guests: tuple[Guest, ...] = ()) -> VirtualCluster:
    file = folder / "c.toml"
    file.write_text(text)
    return read_cluster(file, HOSTS, guests)


def test_guests_go_to_their_named_host_and_else_where_most_cores_are_free(tmp_path: Path) -> None:
    text = HEAD + A1 + B1 + _guest(tmp_path, 1, 'host = "a1"\n') + _guest(tmp_path, 2) + _guest(tmp_path, 3)
    cluster = _read(tmp_path, text)
    assert [guest.host for guest in cluster.guests] == ["a1", "b1", "a1"]
    assert cluster.member("b1").behind_nat and cluster.member("b1").run == ("ssh", "b1")
    assert "ssh" not in json.dumps(cluster.description()), "what is executed on a host stays in the file"


def test_the_policy_is_asked_where_the_file_leaves_it_the_choice(tmp_path: Path) -> None:
    """Guests of one size of which none has its host: the hosts of the answer are taken, unless one is not the cluster's."""
    cluster = _read(tmp_path, HEAD + A1 + B1 + _guest(tmp_path, 1) + _guest(tmp_path, 2))
    wanted = {"guests": 2, "cores": 1, "memory": 256 << 20, "sites": ["a", "b"], "like": "c", "beside": []}
    assert cluster.wanted() == wanted
    assert [guest.host for guest in cluster.on(["b1", "b1"]).guests] == ["b1", "b1"]
    assert cluster.on(["b1", "n1"]) == cluster
    parsed = _read(tmp_path, HEAD + A1 + B1 + _guest(tmp_path, 1, 'host = "a1"\n') + _guest(tmp_path, 2))
    assert parsed.wanted() is None
    assert (
        _read(tmp_path, HEAD + A1 + B1 + _guest(tmp_path, 1) + _guest(tmp_path, 2, cores=2)).wanted() is None
    )


def test_room_that_others_take_is_not_given(tmp_path: Path) -> None:
    other = Guest("x", "other", 2, 1 << 20, "b1")
    cluster = _read(tmp_path, HEAD + A1 + B1 + _guest(tmp_path, 1) + _guest(tmp_path, 2), (other,))
    assert [guest.host for guest in cluster.guests] == ["a1", "a1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("10.42.0.0/24", "10.42.0.0/33"), r"c\.toml:2: network '10.42.0.0/33' is no network"),
        (('tunnel = "192.0.2.1"', 'tunnel = "a1"'), r"c\.toml:5: tunnel 'a1' is no IPv4 address"),
        (
            ('address = "10.42.0.1"', 'address = "10.43.0.1"'),
            r"c\.toml:10: address 10.43.0.1 is not in 10.42",
        ),
        (('name = "a1"', 'name = "n1"'), r"c\.toml:3: host n1 is driven by nova"),
        (('name = "a1"', 'name = "zz"'), r"c\.toml:3: host none of them is a host"),
        (("cores = 1", "cores = 3"), r"c\.toml:7: name g1: no host has 3 cores"),
        (("cores = 1", "cores = 0"), r"c\.toml:8: cores must be a number from 1"),
        (("cores = 1", "colour = 1"), r"c\.toml:6: cores is missing"),
        (("cores = 1", "cores = 1\ncolour = 1"), r"c\.toml:9: colour is not known here"),
        (
            ("cores = 1", 'cores = 1\nhost = "b1"'),
            r"c\.toml:9: host = 'b1' is no host that the cluster may use",
        ),
        (
            ("cores = 1", 'cores = 1\nimage = "x"'),
            r"c\.toml:6: a guest starts from a kernel or from an image",
        ),
        (("cores = 1", 'cores = 1\ninitramfs = "/no"'), r"c\.toml:9: initramfs /no: there is no such file"),
        (
            ("cores = 1", 'cores = 1\nappend = "root=/dev/{disk}"'),
            r"c\.toml:9: append .*only {name}, {address}",
        ),
        (("cores = 1", 'cores = 1\nappend = "{"'), r"c\.toml:9: append '{': only {name}"),
        (('name = "g1"', 'name = "../g1"'), r"c\.toml:7: name '../g1' is no name of up to 64"),
        (('name = "g1"', 'name = "g1,debug-threads=on"'), r"c\.toml:7: name .* is no name of up to 64"),
        (('name = "g1"', 'name = "host"'), r"c\.toml:7: name 'host' is what a host's own file"),
        (('name = "c"', 'name = "c;reboot"'), r"c\.toml:1: name 'c;reboot' is no name of up to 64"),
        (('name = "c"', 'name = "c"\nsites = ["x"]'), r"c\.toml:2: sites 'x' is no site"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = HEAD + A1 + _guest(tmp_path, 1)
    assert change[0] in text
    with pytest.raises(InputError, match=said):
        _read(tmp_path, text.replace(*change))


def test_two_guests_of_one_name_or_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'g1' is a guest already"):
        _read(tmp_path, HEAD + A1 + _guest(tmp_path, 1) + _guest(tmp_path, 1))
    again = _guest(tmp_path, 2).replace("10.42.0.2", "10.42.0.1")
    with pytest.raises(InputError, match="10.42.0.1 is taken"):
        _read(tmp_path, HEAD + A1 + _guest(tmp_path, 1) + again)
