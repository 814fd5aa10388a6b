"""Reads traffic matrices from files and summarises them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topolane import texts
from topolane._engine import InputError, Traffic, patterns


def read_traffic(source: str | Path) -> Traffic:
    """The matrix in a file with lines `from,to,bytes[,messages]`, in bytes per iteration; ranks count from 0.

    Raises InputError for a file that cannot be read or does not hold such a matrix.
    """
    try:
        text = texts.read_text(source, texts.LARGE)
    except texts.NoFileError:
        names = ", ".join(name for name, _, _ in patterns())
        raise InputError(
            f"no file is called {texts.shown(str(source))}; with --ranks there are {names}"
        ) from None
    return Traffic.parse(text, str(source))


def measured_or_named(pattern: str) -> str | tuple[str, Traffic]:
    """The name of a pattern unchanged; for a file, its matrix with the file's name. Raises InputError for a
    bad file.
    """
    if "(" in pattern or Path(pattern).suffix not in (".csv", ".mtx"):
        return pattern
    return Path(pattern).stem, read_traffic(pattern)


def summary(traffic: Traffic) -> dict[str, Any]:
    """Numbers of a matrix: ranks, messages and bytes of one iteration, receivers per rank, and whether it is
    symmetric in bytes.
    """
    import numpy as np

    sender, receiver, sent, _ = traffic.arrays()
    degree = np.bincount(sender, minlength=traffic.ranks)
    forth, back = sender.astype(np.uint64), receiver.astype(np.uint64)
    ranks = np.uint64(max(traffic.ranks, 1))
    # Entries are ordered by (sender, receiver). Mirrored and sorted the same way, a symmetric matrix has
    # equal bytes.
    order = np.argsort(back * ranks + forth)
    mirrored = np.array_equal((back * ranks + forth)[order], forth * ranks + back)
    return {
        "ranks": traffic.ranks,
        "messages": traffic.messages,
        "bytes": traffic.bytes,
        "entries": len(sent),
        "degree": {
            "least": int(degree.min(initial=len(sent))),
            "mean": float(degree.mean()) if len(degree) else 0.0,
            "most": int(degree.max(initial=0)),
        },
        "symmetric": bool(mirrored and np.allclose(sent[order], sent, rtol=1e-12)),
    }
