"""Good files with some of their words changed, moved, removed or doubled, and what a reader may say of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from topolane._engine import InputError

Reader = tuple[Callable[[Path], Any], str, str]
"""The function, the name of its file, and a good file."""
Readers = dict[str, Reader]

some_cases = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NASTY = (
    *(
        "null",
        "true",
        '""',
        "[]",
        "{}",
        "[[]]",
        '"\\u0000"',
        '"\\ud800"',
        "[1, [2]]",
        '{"a": 1}',
        "a",
        ",",
        "\n",
    ),
    *("-1", "0", "1e400", "-1e400", "1e-400", "NaN", "nan", "inf", "Infinity", "-Infinity", "1.5", "-0"),
    *(str(2**31), str(2**32), str(2**63), str(2**64), "9" * 400, "9" * 5000, "0x" + "f" * 5000),
    *("[" * 200 + "]" * 200, "[" * 950 + "]" * 950, "[" * 3000 + "]" * 3000, '{"a":' * 950 + "1" + "}" * 950),
    *('"' + "x" * 5000 + '"', "\x00", "\x1b[2J", "\u2028", "é", "1979-05-27T07:32:00Z", "07:32:00", "'''"),
    *('"cab[1-99999999]"', '"m[1-8]"', "'../../etc'", '"="', '"1 GiB"', "[[x]]", "[x]", "a.b.c = 1"),
)
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w-]*|[0-9][0-9.e+-]*|[][{}=,:]|\n')

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 400), st.sampled_from(NASTY)),
        st.tuples(st.just("swap"), st.integers(0, 400), st.integers(0, 400)),
        st.tuples(st.just("drop"), st.integers(0, 400), st.integers(1, 4)),
        st.tuples(st.just("again"), st.integers(0, 400), st.integers(1, 12)),
        st.tuples(st.just("text"), st.integers(0, 400), st.text(max_size=8)),
        st.tuples(st.just("bytes"), st.integers(0, 2000), st.binary(min_size=1, max_size=4)),
        st.tuples(st.just("cut"), st.integers(0, 2000), st.just(0)),
    ),
    min_size=1,
    max_size=4,
)


def mutated(text: str, changes: list[tuple[str, int, Any]]) -> bytes:
    """A good file with some of its words changed, moved, removed or doubled."""
    words = [word for part in re.split(f"({TOKEN.pattern})", text) if (word := part)]
    raw: list[tuple[str, int, Any]] = []
    for how, place, what in changes:
        at = place % max(1, len(words))
        if how in ("put", "text"):
            words[at : at + 1] = [what]
        elif how == "swap" and words:
            other = what % len(words)
            words[at], words[other] = words[other], words[at]
        elif how == "drop":
            del words[at : at + what]
        elif how == "again":
            words[at:at] = words[at : at + what]
        else:
            raw.append((how, place, what))
    content = "".join(words).encode("utf-8", "surrogatepass")
    for how, place, what in raw:
        at = place % (len(content) + 1)
        content = content[:at] if how == "cut" else content[:at] + what + content[at + len(what) :]
    return content


def read(reader: Reader, folder: Path, content: bytes | None = None) -> str | None:
    """What a reader says of a file, the good one by default: None if it reads it, else one sentence."""
    function, name, good = reader
    path = folder / name
    path.write_bytes(good.encode() if content is None else content)
    try:
        function(path)
    except InputError as error:
        # What a terminal would obey or break is escaped where the command line prints a sentence.
        said = str(error)
        assert said.strip() and len(said) < 20_000
        assert "Traceback" not in said
        return said
    return None


def read_mutated(reader: Reader, changes: list[tuple[str, int, Any]], folder: Path) -> None:
    """Reads the good file with these changes."""
    read(reader, folder, mutated(reader[2], changes))


def files_of(corpus: Path) -> list[Path]:
    """Files that once broke a reader: corpus/READER/FILE."""
    return sorted(corpus.glob("*/*"))


def name_of(file: Path) -> str:
    """Of a case."""
    return f"{file.parent.name}-{file.name}"
