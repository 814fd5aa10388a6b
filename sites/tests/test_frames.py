"""The protocol under garbage: nothing raises what it should not, nothing is counted twice."""

from __future__ import annotations

import asyncio
import contextlib
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topolane.mpi.connection import Connection
from topolane.mpi.counts import WatchedProgram
from topolane.mpi.frames import (
    Decoder,
    FrameError,
    FrameKind,
    Hello,
    Records,
    dropped,
    encode,
    sites_frame,
    sites_of,
)
from topolane.mpi.listener import ConnectionSlots
from topolane.mpi.receiver import Receiver
from topolane.mpi.window import WIDTH, Window

RANKS = 4
counts = st.integers(0, 2**40)
entries = st.lists(
    st.tuples(st.integers(0, RANKS - 1), st.integers(0, 4), counts, counts, counts), max_size=6
)


class Transport(asyncio.Transport):
    """The end of a stream that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed


def connected(receiver: Receiver) -> tuple[Connection, Transport]:
    slot = ConnectionSlots(1).take(lambda: None)
    assert slot is not None
    connection, transport = Connection(receiver, None, slot), Transport()
    connection.connection_made(transport)
    return connection, transport


def hello(rank: int = 0, **fields) -> Hello:
    return Hello("p", "p", rank, RANKS, "h", 1, fields.pop("incarnation", f"i{rank}"), **fields)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_are_frames_or_a_typed_error(data: bytes, piece: int) -> None:
    """Cut into pieces of any length, a stream of any bytes gives frames or FrameError."""
    decoder = Decoder()
    with contextlib.suppress(FrameError):
        for at in range(0, len(data), piece):
            list(decoder.feed(data[at : at + piece]))


@given(
    st.lists(st.tuples(st.sampled_from(list(FrameKind)), st.binary(max_size=99), st.integers(0, 2**64 - 1))),
    st.integers(1, 50),
)
def test_frames_come_back_whole_however_they_are_cut(sent, piece: int) -> None:
    """What is encoded is decoded, in order, whatever the lengths of the pieces."""
    stream = b"".join(encode(*frame) for frame in sent)
    decoder = Decoder()
    got = [frame for at in range(0, len(stream), piece) for frame in decoder.feed(stream[at : at + piece])]
    assert [(frame.kind, frame.payload, frame.sequence) for frame in got] == sent
    assert decoder.waiting == 0


@given(st.data(), st.binary(min_size=0, max_size=60))
def test_a_changed_bit_is_found(data, payload: bytes) -> None:
    """One bit flipped anywhere in a frame: no frame comes out of it."""
    frame = bytearray(encode(FrameKind.RECORDS, payload, 7))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(FrameError):
        assert list(Decoder().feed(bytes(frame))) == []  # a length that grew: the rest never comes


fields = st.sampled_from(
    ["program", "name", "rank", "ranks", "host", "pid", "incarnation", "token", "dropped"]
)
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@settings(suppress_health_check=[HealthCheck.too_slow])  # all of Unicode is listed at first
@given(st.binary(max_size=200) | st.dictionaries(fields, values).map(lambda one: json.dumps(one).encode()))
def test_payloads_of_any_bytes_are_read_or_refused(payload: bytes) -> None:
    """HELLO, RECORDS, BYE and SITES of any payload: a value or FrameError."""
    for read in (Hello.decode, lambda one: Records.decode(one, RANKS), dropped, sites_of):
        with contextlib.suppress(FrameError):
            read(payload)


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (Records.of(float("nan"), 1.0), "times"),
        (Records.of(1.0, -1.0), "times"),
        (Records.of(1.0, 1.0, 0.0, float("inf")), "times"),
        (Records.of(1.0, 1.0, peers=[(RANKS, 0, 1, 1, 1)]), "none among 4 ranks"),
        (Records.of(1.0, 1.0, peers=[(0, 5, 1, 1, 1)]), "none among 4 ranks"),
        (Records.of(1.0, 1.0, peers=[(0, 0, 1, 2**53, 1)]), "2\\^53"),
        (Records.of(1.0, 1.0, calls=[(256, 1, 1, 1.0)]), "call 256"),
        (Records.of(1.0, 1.0, calls=[(1, 2**60, 1, 1.0)]), "times, 1 bytes"),
        (Records.of(1.0, 1.0, calls=[(1, 1, 1, float("nan"))]), "nan s"),
    ],
)
def test_figures_that_no_rank_can_count_are_refused(records: Records, why: str) -> None:
    """A frame that is whole and says what cannot be is refused with the reason."""
    (frame,) = Decoder().feed(records.encode(1))
    with pytest.raises(FrameError, match=why):
        Records.decode(frame.payload, RANKS)


@given(st.lists(st.integers(1, 3 * WIDTH), max_size=200))
def test_a_window_takes_each_sequence_once(sequences: list[int]) -> None:
    """In any order each sequence is taken once; one that is new and not too old is always taken."""
    window, taken = Window(), set()
    for sequence in sequences:
        wanted = sequence not in taken and sequence > max(taken, default=0) - WIDTH
        assert window.take(sequence) == wanted
        if wanted:
            taken.add(sequence)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_is_counted_twice_and_nothing_raises(data) -> None:
    """Frames of two incarnations over many connections: repeated, out of order, garbled, cut short. What is counted is
    each frame that arrived whole on a connection that was good until then, once."""
    frames = {
        (who, sequence): data.draw(entries)
        for who in ("a", "b")
        for sequence in range(1, data.draw(st.integers(2, 8)))
    }
    arrived: set[tuple[str, int]] = set()

    async def main() -> WatchedProgram | None:
        receiver = Receiver()
        for _ in range(data.draw(st.integers(1, 6))):
            who = data.draw(st.sampled_from("ab"))
            connection, transport = connected(receiver)
            connection.data_received(hello(incarnation=who).encode())
            for sequence in data.draw(
                st.lists(st.sampled_from([at for name, at in frames if name == who]), max_size=8)
            ):
                frame = bytearray(Records.of(1.0, 1.0, peers=frames[who, sequence]).encode(sequence))
                what = data.draw(st.sampled_from(["whole", "whole", "whole", "garbled", "cut"]))
                if transport.closed:
                    break
                if what == "garbled":
                    frame[data.draw(st.integers(0, len(frame) - 1))] ^= 1 << data.draw(st.integers(0, 7))
                elif what == "cut":
                    del frame[data.draw(st.integers(0, len(frame) - 1)) :]
                else:
                    arrived.add((who, sequence))
                connection.data_received(bytes(frame))
                if what != "whole":
                    break  # what follows would stand in the middle of a frame
            transport.close()
            connection.connection_lost(None)
        assert receiver.buffered == 0
        return receiver.programs.get("p")

    program = asyncio.run(main())
    assert program is not None
    wanted: dict[tuple[int, int], np.ndarray] = {}
    for key in arrived:
        for peer, kind, *figures in frames[key]:
            pair = (peer, 0) if kind == 4 else (0, peer)  # what was fetched is the other's sending
            wanted[pair] = wanted.get(pair, np.zeros(3)) + figures
    matrix = program.matrix()
    got = {(int(a), int(b)): row for a, b, row in zip(matrix.sender, matrix.receiver, matrix.counts)}
    assert got.keys() == wanted.keys()
    assert all(np.array_equal(got[pair], wanted[pair]) for pair in wanted)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.tuples(
                st.sampled_from([*range(8), 16, 17, 18, 19]),
                st.binary(max_size=80),
                st.integers(0, 2**64 - 1),
            ),
        ),
        max_size=10,
    ),
    st.booleans(),
)
def test_a_hostile_sender_ends_its_connection_only(parts, known: bool) -> None:
    """Any bytes and any frames, before or after a good HELLO: the receiver goes on and takes the next rank."""

    async def main() -> None:
        receiver = Receiver()
        connection, transport = connected(receiver)
        if known:
            connection.data_received(hello().encode())
        for part in parts:
            if transport.closed:
                break
            connection.data_received(part if isinstance(part, bytes) else encode(*part))
        transport.close()
        connection.connection_lost(None)
        other, answers = connected(receiver)
        other.data_received(hello(1).encode() + Records.of(1.0, 1.0, peers=[(0, 0, 1, 8, 1)]).encode(1))
        assert not answers.closed
        assert receiver.programs["p"].rank(1).sums.tolist() == [[1, 8, 1]]
        assert len(receiver.connections) == 1

    asyncio.run(main())


def test_site_maps_come_back() -> None:
    """Epoch and sites of a SITES frame are what was put in."""
    (frame,) = Decoder().feed(sites_frame(9, np.array([0, 3, 1], np.uint16)))
    epoch, sites = sites_of(frame.payload)
    assert (epoch, sites.tolist()) == (9, [0, 3, 1])
