"""A real `topolane serve` on a port of its own."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from waiting import DEADLINE

MAIN = "import sys; from topolane.cli import main; sys.argv[0] = 'topolane'; sys.exit(main())"
SMALL = ("--limit", "1500", "--shadow", "none", "--speed", "0")
"""A replay that is there in a second or two, and whose clock stands."""


@contextlib.contextmanager
def served(
    *words: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = (), port: int = 0
) -> Iterator[str]:
    """The address of a page that runs meanwhile. prefix: what its command runs under. port: any if 0."""
    command = [*prefix, sys.executable, "-c", MAIN, "serve", "--listen", f"127.0.0.1:{port}", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=env) as process:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
        reading.start()
        try:
            first = process.stdout.readline()
            found = re.match(r"(http://\S+)", first)
            assert found, first + "".join(said)
            yield found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)
        reading.join(DEADLINE)
    assert process.returncode == 0, said
    assert not [one for one in said if not one.startswith("note: ")], "".join(said)
