"""Topolane's part of job_submit.lua: made from one template, put into a file and taken out again.

All of this is on bytes: what is not Topolane's stays as it is, whatever its encoding and line ends.
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
"""Of Lua; a Slurm is built with any of them."""


def stanza(partitions: Collection[str], trusted: Collection[int], rest: bytes) -> bytes:
    """The stanza for these partitions.

    trusted: numbers of the users as one of whom the daemon speaks to Slurm; rest: of the file, for which
    the stanza has a mark. Raises InputError for names that Slurm's own files cannot hold.
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
    """What slurmctld says when it runs this stanza in this file, and is asked for it."""
    names = sorted(re.findall(r'\["([^"]+)"\] = true', own.decode()))
    mark = re.search(r'" \(([0-9a-f]{8})\)"', own.decode())
    return f"topolane: the jobs of {', '.join(names)} ({mark[1] if mark else ''})"


def without(text: bytes, name: str) -> bytes:
    """The file without the stanza: what was there before it was put in.

    name: of the file, for errors. Raises InputError where only a part of the stanza is there.
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
    # In a file that was there before, a line break is put in with the stanza.
    return text[: start - 1 if start else 0] + text[end + len(END) :]


def put_in(text: bytes, own: bytes, name: str) -> bytes:
    """The file `text`, which has no stanza, with the stanza `own` after all that it defines.

    That is at its end, or before the `return` that ends it. Raises InputError where `text` is not Lua.
    """
    if not text:
        return own
    lua = _version_of(text, name)
    if _error(lua, text + b"\nlocal _ = 0\n") is None:
        return text + b"\n" + own
    # Nothing can follow the `return` of a chunk. It is the one that the file is whole without.
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
    """What the compiler of that version says against it."""
    version = importlib.import_module(f"lupa.{lua}")
    # As luaL_loadfile does, pass over a first line such as #!/usr/bin/lua.
    text = b"--" + text if text.startswith(b"#") else text
    try:
        version.LuaRuntime(encoding="latin-1").compile(text.decode("latin-1"))
    except version.LuaSyntaxError as error:
        return str(error)
    return None
