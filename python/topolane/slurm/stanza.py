"""Topolane's stanza in job_submit.lua: made from a template, inserted into a file and removed again.

This works on bytes, so the rest of the file keeps its encoding and line ends.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.resources
import re
from collections.abc import Collection

from topolane._engine import InputError

BEGIN, END = b"-- topolane: begin", b"-- topolane: end\n"

VERSIONS = ("lua54", "lua53", "lua52", "lua51")
"""Versions of Lua that a Slurm may be built with."""


def stanza(partitions: Collection[str], trusted: Collection[int], rest: bytes) -> bytes:
    """The stanza for these partitions.

    trusted: user ids that the daemon may have when it talks to Slurm. rest: the rest of the file, of which
    the stanza contains a mark. Raises InputError for names that Slurm's own files cannot contain.
    """
    for name in partitions:
        if not re.fullmatch(r"[^\s\"'\\,=\x00-\x1f]+", name):
            raise InputError(f"{name!r} cannot be the name of a partition")
    template = importlib.resources.files(__package__).joinpath("job_submit.lua.in").read_text("utf-8")
    managed = ", ".join(f'["{name}"] = true' for name in sorted(partitions))
    users = ", ".join(f"[{user}] = true" for user in sorted(trusted))
    mark = hashlib.sha256(rest).hexdigest()[:8]
    for place, value in (("@MANAGED@", managed), ("@TRUSTED@", users), ("@FILE@", mark)):
        template = template.replace(place, value)
    return template.encode()


def answer(own: bytes) -> str:
    """The answer of a slurmctld that runs this stanza in this file."""
    names = sorted(re.findall(r'\["([^"]+)"\] = true', own.decode()))
    mark = re.search(r'" \(([0-9a-f]{8})\)"', own.decode())
    return f"topolane: the jobs of {', '.join(names)} ({mark[1] if mark else ''})"


def remove_stanza(text: bytes, name: str) -> bytes:
    """The file without the stanza, as it was before `insert_stanza`.

    name: of the file, for errors. Raises InputError if only a part of the stanza is there.
    """
    begins, ends = text.count(BEGIN), text.count(END)
    if begins == ends == 0:
        return text
    start, end = text.find(BEGIN), text.find(END)
    if begins != 1 or ends != 1 or end < start:
        line = text[: start if begins else end].count(b"\n") + 1
        raise InputError(
            f"{name}:{line}: a stanza of topolane that is not whole ({begins} begin, {ends} end): "
            "take its lines out by hand"
        )
    # In an existing file, a line break is inserted together with the stanza.
    return text[: start - 1 if start else 0] + text[end + len(END) :]


def insert_stanza(text: bytes, own: bytes, name: str) -> bytes:
    """The file `text`, which has no stanza, with the stanza `own` after all its definitions.

    The stanza is inserted at the end, or before the final `return`. Raises InputError if `text` is not Lua.
    """
    if not text:
        return own
    lua = _version_of(text, name)
    if _error(lua, text + b"\nlocal _ = 0\n") is None:
        return text + b"\n" + own
    # Nothing can follow the final `return` of a chunk: it is the one without which the file is still valid.
    for found in reversed(list(re.finditer(rb"\breturn\b", text))):
        head, tail = text[: found.start()], text[found.start() :]
        new = head + b"\n" + own + tail
        if _error(lua, head + b"\nlocal _ = 0\n") is None and _error(lua, new) is None:
            return new
    raise InputError(f"{name}: its last statement was not found: end it with `return slurm.SUCCESS`")


def _version_of(text: bytes, name: str) -> str:
    said = ""
    for lua in VERSIONS:
        error = _error(lua, text)
        if error is None:
            return lua
        said = said or error
    match = re.match(r'(?:\[string ".*?"\]|.*?):(\d+): (.*)', said, re.DOTALL)
    where, what = (f":{match[1]}", match[2]) if match else ("", said)
    raise InputError(f"{name}{where}: this is not Lua ({what.strip()}): mend it first")


def _error(lua: str, text: bytes) -> str | None:
    """The error of that version's compiler; None if there is none."""
    version = importlib.import_module(f"lupa.{lua}")
    # As luaL_loadfile does, pass over a first line such as #!/usr/bin/lua.
    text = b"--" + text if text.startswith(b"#") else text
    try:
        version.LuaRuntime(encoding="latin-1").compile(text.decode("latin-1"))
    except version.LuaSyntaxError as error:
        return str(error)
    return None
