"""Starts nova-compute once a host: computes.py DIR HOSTS.

One process a host, as in a cloud, but forked from this one, which has imported all that they need: they share
its pages, and 72 of them start in the time of a few. Ends when it is asked to. A host that ends before is named, and
started again, as a service manager would: two threads of a nova-compute that starts slowly can change one dictionary.
"""

import collections
import gc
import os
import pathlib
import signal
import sys

# First, as it decides between threads and eventlet for all that comes after.
import nova.cmd.compute
import nova.compute.manager
import nova.scheduler.client.report
import nova.virt.fake


def configure(directory: pathlib.Path, host: str) -> list[str]:
    state = directory / "hosts" / host
    state.mkdir(exist_ok=True)
    own = state / "host.conf"
    own.write_text(f"[DEFAULT]\nhost = {host}\nstate_path = {state}\n")
    return ["--config-file", str(directory / "conf/nova.conf"), "--config-file", str(own)]


def serve(directory: pathlib.Path, host: str) -> None:
    log = os.open(directory / f"log/{host}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["nova-compute", *configure(directory, host)]
    nova.cmd.compute.main()


MOST_STARTS = 3
"""Of one host: what fails each time is no race."""


def main() -> None:
    directory, hosts = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    gc.freeze()
    starts: collections.Counter[str] = collections.Counter()
    children: dict[int, str] = {}
    is_ending = False

    def start(host: str) -> None:
        starts[host] += 1
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            serve(directory, host)
            os._exit(1)
        children[pid] = host
        if is_ending:  # the signal came during the fork
            os.kill(pid, signal.SIGTERM)

    def end(*_: object) -> None:
        nonlocal is_ending
        is_ending = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    for number in range(1, hosts + 1):
        start(f"host{number:02d}")
    while children:
        pid, status = os.wait()
        host = children.pop(pid)
        print(f"nova-compute of {host} ended with status {status}", flush=True)
        if not is_ending and starts[host] < MOST_STARTS:
            start(host)


main()
