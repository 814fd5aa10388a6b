"""Compiles the library once for each MPI, and caches it by the content of its sources."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from topolane._engine import InputError
from topolane.compiling import compiled, ended, first_error, split

SOURCES = Path(__file__).parent / "native"
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-fexceptions",  # error handlers of C++ programs throw exceptions through the library
    "-pthread",
)
LINK = ("-shared", "-pthread", "-Wl,-z,lazy")
LIBRARY = "libtopolane_mpi.so"


def library(mpicc: str, cache: Path | None = None, tell: Callable[[str], None] | None = None) -> Path:
    """The path of the library for the MPI of a compiler wrapper. It is compiled unless the cache has it;
    before, `tell` is called with a sentence.

    It is stored under `cache`, which all nodes must see [default: ~/.cache/topolane/mpi, or below
    XDG_CACHE_HOME]. Raises InputError if there is no such wrapper, compiler or MPI.
    """
    sources = sorted(SOURCES.rglob("*.[ch]"))
    directory = (cache or _cache()) / _key(mpicc, sources)
    made = directory / LIBRARY
    if made.is_file():
        return made
    if tell is not None:
        tell(f"compiling the MPI library for {mpicc}: once, 5 to 30 seconds")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # If two processes compile at once, the second replaces the library by an equal one.
        with tempfile.TemporaryDirectory(prefix=".build-", dir=directory) as draft:
            _compiled(mpicc, [path for path in sources if path.suffix == ".c"], Path(draft)).replace(made)
    except OSError as error:
        raise InputError(f"{directory}: the MPI library cannot be kept there: {error.strerror}") from error
    return made


def _compiled(mpicc: str, sources: Sequence[Path], draft: Path) -> Path:
    """The library compiled from its sources, on all cores."""

    def translated(at: int) -> Path:
        words = [*FLAGS, f"-I{SOURCES}", "-c", str(sources[at])]
        return compiled("--mpicc", mpicc, words, draft / f"{at}.o")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(translated, range(len(sources))))
    return compiled("--mpicc", mpicc, [*LINK, *map(str, objects), "-ldl"], draft / LIBRARY)


def mpicc_for(command: Sequence[str]) -> str:
    """The compiler wrapper for a launch command, found by its launcher and the ABI that its program needs.

    Raises InputError if none is found.
    """
    wrapper = "mpicc_abi" if any(map(_needs_abi, command[1:])) else "mpicc"
    for path in _links(shutil.which(command[0]) or command[0]):
        suffix = re.search(r"\.(?:mpich|openmpi)[0-9.]*$", path.name)
        names = [f"mpicc{suffix[0]}"] if suffix else []
        for name in names + ([wrapper] if _is_launcher(path) else []):
            if os.access(path.with_name(name), os.X_OK):
                return str(path.with_name(name))
    found = shutil.which(wrapper)
    if found is None:
        raise InputError(
            f"{command[0]}: there is no {wrapper} next to it and none in PATH, and the library that is preloaded is "
            "compiled for each MPI; install its compiler wrapper or name one with --mpicc"
        )
    return found


def _links(start: str) -> list[Path]:
    """A path, and all paths that it links to step by step."""
    path, links = Path(start).absolute(), []
    while path not in links:
        links.append(path)
        if path.is_symlink():
            path = path.parent / os.readlink(path)
    return links


def _is_launcher(path: Path) -> bool:
    return path.name.startswith(("mpiexec", "mpirun", "orterun", "prterun"))


def _needs_abi(word: str) -> bool:
    """Whether a word of a command is a program that needs the library of the standard ABI."""
    path = shutil.which(word)
    if path is None:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and b"libmpi_abi.so." in file.read()
    except OSError:
        return False


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "topolane" / "mpi"


def _key(mpicc: str, sources: Sequence[Path]) -> str:
    """The cache key of the library: the sources, the flags, and the wrapper's MPI."""
    key = hashlib.sha256(repr((mpicc, FLAGS, LINK)).encode())
    key.update(_macros(mpicc))
    for path in sources:
        key.update(str(path.relative_to(SOURCES)).encode() + b"\0" + path.read_bytes() + b"\0")
    return key.hexdigest()[:16]


def _macros(mpicc: str) -> bytes:
    """All macros of mpi.h; they differ between MPIs and versions."""
    command = [*split(mpicc, "--mpicc"), "-E", "-dM", "-include", "mpi.h", "-x", "c", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True)
    except OSError as error:
        raise InputError(f"--mpicc {mpicc}: cannot be started: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise InputError(f"--mpicc {mpicc}: {ended(done.returncode)}{first_error(said)}")
    return done.stdout
