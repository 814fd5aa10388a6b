"""Reads texts of bounded size from files, and formats values for errors and tables."""

from __future__ import annotations

import gzip
import io
import os
import stat
import unicodedata
import zlib
from pathlib import Path
from typing import IO

from topolane._engine import InputError

MIB = 1 << 20
SMALL = 32 * MIB
"""The most bytes of a JSON or CSV file that Python parses into single values."""
MEDIUM = 64 * MIB
"""The most bytes of a machine description."""
LARGE = 1024 * MIB
"""The most bytes of forwarding tables or of a traffic matrix."""

SHOWN = 60
"""The most characters of a value that an error shows."""
PATH = 255
"""The most characters of a path that an error shows; the end of the path is kept."""
LONGEST_WORD = 256
"""The most characters of a word that a sentence keeps whole."""
LONGEST = 1000
"""The most characters of a sentence."""


class NoFileError(InputError):
    """There is no file with this name."""


def read_text(source: str | Path, most: int = MEDIUM) -> str:
    """The UTF-8 text of a file or a pipe. Raises InputError if it is not UTF-8 or has more than `most` bytes."""
    return decoded(read_bytes(source, most), str(source))


def read_bytes(source: str | Path, most: int = MEDIUM) -> bytearray:
    """The content of a file or a pipe. Raises InputError if it cannot be read or has more than `most` bytes."""
    try:
        with open(source, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            # A device such as /dev/zero never ends; a terminal ends when its user says so.
            if (stat.S_ISCHR(mode) and not file.isatty()) or stat.S_ISBLK(mode):
                raise InputError(f"{source}: a device, where a file or a pipe is wanted")
            return read_stream(file, str(source), most)
    except FileNotFoundError as error:
        raise NoFileError(f"{source}: {error.strerror}") from error
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(source)!r} is no name of a file") from error


def unzipped(content: bytes | bytearray, source: str, most: int = MEDIUM) -> bytes | bytearray:
    """The content, decompressed if it is gzipped. Raises InputError for a damaged archive and for more bytes
    than `most`.
    """
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            return read_stream(stream, source, most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source}: a damaged gzip archive: {error}") from error


def read_stream(stream: IO[bytes] | gzip.GzipFile, source: str, most: int) -> bytearray:
    """All bytes of a stream. Raises InputError if there are more than `most`."""
    content = bytearray()
    # Read in small parts, because one read of `most` bytes would allocate memory for all of them.
    while part := stream.read(min(MIB, most + 1 - len(content))):
        content += part
        if len(content) > most:
            raise InputError(f"{source}: more than {most // MIB} MiB, the most that is read of such a file")
    return content


def decoded(content: bytes | bytearray, source: str) -> str:
    """The text of UTF-8 bytes. Raises InputError if they are not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: not UTF-8 text") from error


def shown(text: str, most: int | None = None) -> str:
    """A value in quotes for an error: escaped, and cut to `most` characters [default: 60; use PATH for
    paths].
    """
    most = SHOWN if most is None else most
    return repr(text) if len(text) <= most else f"{text[:most] + '...'!r} ({len(text)} characters)"


def is_printable(letter: str) -> bool:
    """Whether a terminal shows the character instead of treating it as a control character."""
    turns = letter in "\u061c\u200e\u200f" or "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return not turns and unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """The text with unprintable characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if is_printable(letter) else repr(letter)[1:-1] for letter in text)


def sentence(text: str) -> str:
    """The text of an error as one printable line of bounded length."""
    words = printable(text).split(" ")
    line = " ".join(_cut(word, LONGEST_WORD, SHOWN) for word in words)
    return _cut(line, LONGEST, LONGEST)


def _cut(text: str, longest: int, kept: int) -> str:
    return text if len(text) <= longest else f"{text[:kept]}... ({len(text)} characters)"
