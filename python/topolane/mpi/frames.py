"""The frames that a watched program and a receiver exchange (native/mpi/PROTOCOL.md)."""

from __future__ import annotations

import enum
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC, VERSION = b"TLMP", 1
MOST_PAYLOAD = 1 << 20
MOST_RANKS = (MOST_PAYLOAD - 16) // 2
"""Most ranks of a program: the number that fits into a SITES frame."""
KINDS = 5
MOST_CALLS = 256
"""The numbers of calls (native/mpi/calls.h) are below this."""
MOST_COUNT = 1 << 53
"""The most messages, bytes or turns of one interval. Doubles are exact up to this number; a larger one is
invalid.
"""

_HEADER = struct.Struct("<4sHHIQ")
_CHECK = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CHECK.size
_RECORDS = struct.Struct("<ddddII")
_SITES = struct.Struct("<QII")
_CALL = struct.Struct("<IIQQd")
_PEER_BYTES = _CALL.size


class FrameError(ValueError):
    """Received data is not a frame of this protocol. The message is a sentence."""


class FrameKind(enum.IntEnum):
    """The kind of a frame."""

    HELLO = 1
    RECORDS = 2
    BYE = 3
    WELCOME = 16
    ACK = 17
    SITES = 18
    REFUSED = 19


@dataclass(frozen=True)
class Frame:
    """A frame with a valid header and checksum. Its kind may be unknown."""

    kind: int
    sequence: int
    payload: bytes


def encode(kind: FrameKind, payload: bytes = b"", sequence: int = 0) -> bytes:
    """The bytes of a frame. Raises FrameError if the payload exceeds 1 MiB."""
    if len(payload) > MOST_PAYLOAD:
        raise FrameError(f"a payload of {len(payload)} bytes; there may be {MOST_PAYLOAD}")
    header = _HEADER.pack(MAGIC, VERSION, kind, len(payload), sequence)
    return header + _CHECK.pack(zlib.crc32(payload, zlib.crc32(header))) + payload


class Decoder:
    """Splits a stream into frames."""

    def __init__(self, most: int = MOST_PAYLOAD) -> None:
        self.most = most
        """The most bytes of an accepted payload."""
        self._buffer = bytearray()

    @property
    def waiting(self) -> int:
        """The number of received bytes of an incomplete frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes. Raises FrameError for invalid data, after the frames before it.

        Run this iterator to its end. Do not feed the decoder again after an error.
        """
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= HEADER_BYTES:
            magic, version, kind, length, sequence = _HEADER.unpack_from(buffer, at)
            if magic != MAGIC:
                raise FrameError("no frame begins here (wrong magic)")
            if version != VERSION:
                raise FrameError(f"version {version} of the protocol; this end speaks {VERSION}")
            if length > self.most:
                raise FrameError(f"a payload of {length} bytes; there may be {self.most}")
            begin = at + HEADER_BYTES
            if len(buffer) < begin + length:
                break
            payload = bytes(buffer[begin : begin + length])
            header = buffer[at : at + _HEADER.size]
            if zlib.crc32(payload, zlib.crc32(header)) != _CHECK.unpack_from(buffer, at + _HEADER.size)[0]:
                raise FrameError("the check does not fit the frame")
            at = begin + length
            yield Frame(kind, sequence, payload)
        del buffer[:at]


@dataclass(frozen=True)
class Hello:
    """A rank's description of itself."""

    program: str
    name: str
    rank: int
    ranks: int
    host: str
    pid: int
    incarnation: str
    library: str = ""
    mpi: str = ""
    token: str = ""

    @staticmethod
    def decode(payload: bytes) -> Hello:
        """The HELLO in a JSON payload. Raises FrameError if it is invalid."""
        fields = _object(payload)
        rank, ranks = _whole(fields, "rank", MOST_RANKS - 1), _whole(fields, "ranks", MOST_RANKS)
        if rank >= ranks:
            raise FrameError(f"HELLO: rank {rank} of {ranks}")
        incarnation = fields.get("incarnation")
        if isinstance(incarnation, int) and not isinstance(incarnation, bool) and abs(incarnation) < 2**64:
            fields["incarnation"] = str(incarnation)
        program, host = _word(fields, "program"), _word(fields, "host")
        if not program or not host:
            raise FrameError("HELLO: program and host may not be empty")
        return Hello(
            program=program,
            name=_word(fields, "name") or program,
            rank=rank,
            ranks=ranks,
            host=host,
            pid=_whole(fields, "pid", 2**32),
            incarnation=_word(fields, "incarnation", 64),
            library=_word(fields, "library", optional=True),
            mpi=_word(fields, "mpi", optional=True),
            token=_word(fields, "token", 4096, optional=True),
        )

    def encode(self) -> bytes:
        """The HELLO as a frame."""
        return encode(FrameKind.HELLO, json.dumps(vars(self)).encode())


@dataclass(frozen=True)
class Records:
    """The counts of a rank in one interval."""

    time: float
    """The end of the interval, in seconds since 1970."""
    length: float
    in_mpi: float
    skew: float
    peers: NDArray[np.uint64]
    """Rows of (kind << 32 | peer, messages, bytes, turns)."""
    calls: list[tuple[int, int, int, float]]
    """Rows of (call, calls, bytes, seconds)."""

    @staticmethod
    def decode(payload: bytes, ranks: int) -> Records:
        """Reads the counts. Raises FrameError for counts that are impossible in a program of `ranks` ranks."""
        if len(payload) < _RECORDS.size:
            raise FrameError(f"RECORDS of {len(payload)} bytes")
        time, length, in_mpi, skew, peers, calls = _RECORDS.unpack_from(payload)
        if len(payload) != _RECORDS.size + _PEER_BYTES * (peers + calls):
            raise FrameError(f"RECORDS of {len(payload)} bytes with {peers} peers and {calls} calls")
        # These comparisons also refuse NaN.
        if not (0 <= time < 1e12 and 0 <= length < 1e9 and 0 <= in_mpi < 1e12 and 0 <= skew < 1e12):
            raise FrameError(f"RECORDS: times {time:g}, {length:g}, {in_mpi:g}, {skew:g}")
        entries = np.frombuffer(payload, "<u8", 4 * peers, _RECORDS.size).reshape(peers, 4)
        if peers:
            key, *counts = entries.max(axis=0).tolist()
            receivers = np.frombuffer(payload, "<u4", 8 * peers, _RECORDS.size)[::8]
            if key >> 32 >= KINDS or receivers.max() >= ranks:
                raise FrameError(f"RECORDS: a peer or a kind that is none among {ranks} ranks")
            if max(counts) >= MOST_COUNT:
                raise FrameError("RECORDS: counts of more than 2^53")
        rows = []
        for call, _, number, size, seconds in _CALL.iter_unpack(
            payload[_RECORDS.size + _PEER_BYTES * peers :]
        ):
            if call >= MOST_CALLS or number >= MOST_COUNT or size >= MOST_COUNT or not 0 <= seconds < 1e12:
                raise FrameError(f"RECORDS: call {call}, {number} times, {size} bytes, {seconds:g} s")
            rows.append((call, number, size, seconds))
        return Records(time, length, in_mpi, skew, entries, rows)

    @staticmethod
    def of(
        time: float,
        length: float,
        in_mpi: float = 0.0,
        skew: float = 0.0,
        peers: Sequence[tuple[int, int, int, int, int]] = (),
        calls: Sequence[tuple[int, int, int, float]] = (),
    ) -> Records:
        """Records from rows (peer, kind, messages, bytes, turns) and (call, calls, bytes, seconds)."""
        rows = [(kind << 32 | peer, *counts) for peer, kind, *counts in peers]
        return Records(
            time, length, in_mpi, skew, np.array(rows, np.uint64).reshape(len(rows), 4), list(calls)
        )

    def encode(self, sequence: int) -> bytes:
        """The records as a frame."""
        head = _RECORDS.pack(self.time, self.length, self.in_mpi, self.skew, len(self.peers), len(self.calls))
        calls = [_CALL.pack(call, 0, *figures) for call, *figures in self.calls]
        payload = b"".join([head, self.peers.astype("<u8").tobytes(), *calls])
        return encode(FrameKind.RECORDS, payload, sequence)


def dropped(payload: bytes) -> int:
    """The number of frames that the sender dropped, from a BYE. Raises FrameError."""
    return _whole(_object(payload), "dropped", MOST_COUNT)


def sites_frame(epoch: int, sites: NDArray[np.uint16]) -> bytes:
    """The frame that sends the site of every rank to all ranks. Raises FrameError for too many ranks."""
    count = int(sites.max(initial=0)) + 1
    return encode(FrameKind.SITES, _SITES.pack(epoch, len(sites), count) + sites.astype("<u2").tobytes())


def sites_of(payload: bytes) -> tuple[int, NDArray[np.uint16]]:
    """Reads the epoch and the site of every rank. Raises FrameError."""
    if len(payload) < _SITES.size:
        raise FrameError(f"SITES of {len(payload)} bytes")
    epoch, ranks, sites = _SITES.unpack_from(payload)
    if len(payload) != _SITES.size + 2 * ranks:
        raise FrameError(f"SITES of {len(payload)} bytes with {ranks} ranks")
    each = np.frombuffer(payload, "<u2", ranks, _SITES.size)
    if ranks and each.max() >= sites:
        raise FrameError(f"SITES: site {each.max()} of {sites}")
    return epoch, each


def ack_frame(sequence: int) -> bytes:
    """The frame that acknowledges this sequence number and all before it."""
    return encode(FrameKind.ACK, sequence.to_bytes(8, "little"))


def _object(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise FrameError("JSON, but no object")
    return value


def _word(fields: dict[str, Any], name: str, most: int = 255, *, optional: bool = False) -> str:
    value = fields.get(name, "" if optional else None)
    # This also refuses lone surrogates, which databases do not accept: they are not printable.
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise FrameError(f"HELLO: {name} is not a word of at most {most} characters")
    return value


def _whole(fields: dict[str, Any], name: str, most: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise FrameError(f"{name} is not a whole number from 0 to {most}")
    return value
