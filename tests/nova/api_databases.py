"""Databases for Nova's API: SQLite, and a MariaDB of the test's own."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

from waiting import until

PATH = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin"
"""Debian has the server where only root's PATH finds it."""


def missing() -> str | None:
    """What MariaDB lacks here, in words."""
    absent = [name for name in ("mariadbd", "mariadb-install-db") if shutil.which(name, path=PATH) is None]
    if absent:
        return f"{', '.join(absent)} is not installed"
    return None if importlib.util.find_spec("pymysql") else "PyMySQL is not installed"


class MariaDB:
    """A server with its files and its socket in a folder of its own; a context manager."""

    def __init__(self) -> None:
        # A socket's path has at most 107 bytes, and those of pytest's folders can be longer.
        self._folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self._numbers = itertools.count()
        self._socket = self._folder / "socket"
        self._data = f"--datadir={self._folder}/data"
        install = ["mariadb-install-db", "--no-defaults", self._data, "--user=root", "--skip-test-db"]
        self._run([*install, "--auth-root-authentication-method=normal"])
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        words = ["mariadbd", "--no-defaults", self._data, "--user=root", f"--socket={self._socket}"]
        words += ["--skip-networking", f"--pid-file={self._folder}/pid", "--innodb-buffer-pool-size=16M"]
        with (self._folder / "log").open("ab") as log:
            program = shutil.which(words[0], path=PATH)
            self._process = subprocess.Popen([str(program), *words[1:]], stdout=log, stderr=log)
        until(lambda: self._answers() or self._process.poll() is not None, "MariaDB answers")
        assert self._process.poll() is None, (self._folder / "log").read_text()

    def stop(self) -> None:
        """As a crash does."""
        self._process.kill()
        self._process.wait()

    def new(self) -> str:
        """The URL of a new database."""
        name = f"nova{next(self._numbers)}"
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8")
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={self._socket}"

    def _answers(self) -> bool:
        import pymysql

        try:
            self._connection().close()
        except pymysql.MySQLError:
            return False
        return True

    def _connection(self) -> Any:
        import pymysql

        return pymysql.connect(user="root", unix_socket=str(self._socket))

    def _run(self, words: list[str]) -> None:
        program = shutil.which(words[0], path=PATH)
        done = subprocess.run([str(program), *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
