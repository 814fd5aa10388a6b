"""A site manager's mover, on a whole Nova: its API, conductor, scheduler and Placement, computes that pretend."""

from __future__ import annotations

from pathlib import Path

from cloud_process import CloudProcess

MOVE = """
import sys
from topolane_sites.model import Guest, Host
from topolane_sites.movers import GuestLost, MoveFailed, mover
what, guest, *hosts = sys.argv[1:]
here, there = (Host(name, name, 4, 1 << 33, "nova", name) for name in hosts)
guest = Guest(guest, "c", 1, 1 << 31, here.name)
nova = mover("nova")
try:
    if what == "move":
        measured = nova.move(guest, here, there, lambda _: None)
        print("moved", sorted(measured))
    else:
        print("settled", nova.settle(guest, here, there))
except (GuestLost, MoveFailed) as error:
    print(type(error).__name__, error)
print("where", *nova.where(guest, (here, there)))
"""


def _run(cloud: CloudProcess, folder: Path, *words: str) -> list[str]:
    code, output, errors = cloud.python(MOVE, *words, directory=str(folder))
    assert code == 0, errors
    return str(output).splitlines()


def test_a_moved_server_is_at_its_target_and_can_be_moved_back(cloud: CloudProcess, tmp_path: Path) -> None:
    ((server, host),) = cloud.boot(1).items()
    other = "node40" if host != "node40" else "node41"
    said = _run(cloud, tmp_path, "move", server, host, other)
    assert said == ["moved ['bytes', 'seconds']", f"where {other}"]
    assert cloud.hosts([server]) == {server: other}
    assert _run(cloud, tmp_path, "settle", server, host, other)[0] == f"settled {other}"
    assert _run(cloud, tmp_path, "move", server, other, host)[-1] == f"where {host}"


def test_a_host_that_nova_refuses_leaves_the_server_where_it_is(cloud: CloudProcess, tmp_path: Path) -> None:
    ((server, host),) = cloud.boot(1).items()
    said = _run(cloud, tmp_path, "move", server, host, "nosuch")
    assert said[0].startswith(f"MoveFailed Nova does not move {server} to nosuch: ")
    assert said[1] == f"where {host}"
    assert _run(cloud, tmp_path, "settle", server, host, "nosuch")[0] == f"settled {host}"


def test_a_server_that_is_no_more_is_lost(cloud: CloudProcess, tmp_path: Path) -> None:
    ((server, host),) = cloud.boot(1).items()
    cloud.delete([server])
    assert _run(cloud, tmp_path, "settle", server, host, "node40")[0].startswith(
        "GuestLost Nova knows no server"
    )
