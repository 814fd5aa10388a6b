"""The tables of a run as Arrow: what a consumer does with a stream frees every table, and no bytes make a wrong one.

The consumer is written here with ctypes, by the C interface's description. polars reads the same streams elsewhere.
"""

from __future__ import annotations

import ctypes
import pickle
from pathlib import Path

import polars
import pytest
import topolane
from topolane import _engine


class Schema(ctypes.Structure):
    """ArrowSchema."""


class Array(ctypes.Structure):
    """ArrowArray."""


class Stream(ctypes.Structure):
    """ArrowArrayStream."""


Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def stream_of(capsule: object) -> Stream:
    return Stream.from_address(pointer_of(capsule, b"arrow_array_stream"))


def schema_of(stream: Stream) -> Schema:
    schema = Schema()
    assert stream.get_schema(ctypes.addressof(stream), ctypes.addressof(schema)) == 0
    return schema


def next_of(stream: Stream) -> Array:
    array = Array()
    assert stream.get_next(ctypes.addressof(stream), ctypes.addressof(array)) == 0
    return array


def released(struct: Schema | Array | Stream) -> bool:
    return not struct.release


def release(struct: Schema | Array | Stream) -> None:
    struct.release(ctypes.addressof(struct))
    assert released(struct)


def moved(struct: Schema | Array | Stream) -> Schema | Array | Stream:
    """The struct in a new place. Nothing but zeros is left in the old one, as some consumers do it."""
    new = type(struct)()
    size = ctypes.sizeof(struct)
    ctypes.memmove(ctypes.addressof(new), ctypes.addressof(struct), size)
    ctypes.memset(ctypes.addressof(struct), 0, size)
    return new


def never(table: _engine.Table) -> None:
    """The capsule is dropped as it came."""
    table.__arrow_c_stream__()


def only_the_schema(table: _engine.Table) -> None:
    capsule = table.__arrow_c_stream__()
    release(schema_of(stream_of(capsule)))


def half(table: _engine.Table) -> None:
    """The array outlives the stream, one column of it the others, and the end is not asked for."""
    capsule = table.__arrow_c_stream__()
    array = next_of(stream_of(capsule))
    del capsule, table
    column = moved(array.children[0].contents)
    release(array)
    ids = ctypes.cast(column.buffers[1], ctypes.POINTER(ctypes.c_uint64))
    assert len({ids[row] for row in range(column.length)}) == column.length > 0
    release(column)


def whole(table: _engine.Table) -> None:
    """The stream is moved out of its capsule, read to its end and beyond, and released."""
    capsule = table.__arrow_c_stream__()
    stream = moved(stream_of(capsule))
    del capsule
    for _ in range(2):
        schema = schema_of(stream)
        name = moved(schema.children[0].contents)
        release(schema)
        assert (name.format, name.name) == (b"L", b"job_id")
        release(name)
    array = next_of(stream)
    assert array.length == len(table)
    assert released(next_of(stream))
    assert released(next_of(stream))
    release(stream)
    release(array)


def two_streams(table: _engine.Table) -> None:
    """Each call gives a stream of its own."""
    capsules = [table.__arrow_c_stream__() for _ in range(2)]
    arrays = [next_of(stream_of(capsule)) for capsule in capsules]
    del capsules
    for array in arrays:
        assert array.length == len(table)
        release(array)


def released_twice(table: _engine.Table) -> None:
    """polars takes what it reads out of the capsule, and finds nothing there a second time."""
    capsule = table.__arrow_c_stream__()
    release(stream_of(capsule))
    assert released(stream_of(capsule))


@pytest.fixture(scope="module")
def sent(toy) -> bytes:
    """A table of about a megabyte as another process sends it."""
    jobs = topolane.workload("exp-2", toy.nodes, seed=4, shape=topolane.Shape(limit=10_000))
    table = _engine.simulate(jobs, toy, topolane.Settings(queue="fcfs")).tables()["jobs"]
    text = pickle.dumps(table)
    assert len(text) > 500_000
    return text


def test_taken_tables_are_the_same_and_leave_nothing(toy):
    """`take_tables` gives what `tables` gives, to the last byte. The outcome has no jobs afterwards."""
    jobs = topolane.workload("exp-2", toy.nodes, seed=4, shape=topolane.Shape(limit=500))
    outcome = _engine.simulate(jobs, toy, topolane.Settings())
    kept = {name: table.csv() for name, table in outcome.tables().items()}
    assert len(kept["jobs"].splitlines()) == 1 + 500
    assert {name: table.csv() for name, table in outcome.take_tables().items()} == kept
    assert outcome.placements() == []
    assert len(outcome.tables()["jobs"].csv().splitlines()) == 1


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("use", [never, only_the_schema, half, whole, two_streams, released_twice])
def test_no_use_of_a_stream_keeps_the_table(sent, use):
    """A hundred tables, each with values of its own, leave less memory behind than a few of them take."""
    for _ in range(5):
        use(pickle.loads(sent))
    before = resident()
    for _ in range(100):
        use(pickle.loads(sent))
    assert resident() - before < 10 * len(sent)


def test_values_of_every_kind(toy, jobs):
    """Ids, whole numbers, absent ones, numbers and texts come to polars as they are, to the last digit."""
    run = topolane.simulate(jobs, toy, network=topolane.Network("congestion"))
    assert {"jobs", "utilization", "links"} <= run.tables.keys()
    for name, table in run.tables.items():
        frame = polars.DataFrame(table)
        read = polars.read_csv(table.csv(), schema_overrides=frame.schema)
        assert frame.columns == read.columns
        assert len(frame) == len(table) > 0
        for column in frame.columns:
            if frame[column].dtype == polars.Float64:
                assert (frame[column] - read[column]).abs().max() <= 5e-6, (name, column)
            else:
                assert frame[column].to_list() == read[column].to_list(), (name, column)
    assert polars.DataFrame(pickle.loads(pickle.dumps(table))).equals(frame)


def bytes_of(table: _engine.Table) -> bytes:
    _, (text,) = table.__reduce__()
    return bytes(text)


def test_bytes_that_are_no_table_are_refused(toy, jobs):
    """A text's end beyond its column, and bytes that end early, are refused before anything reads them as Arrow."""
    text = bytes_of(_engine.simulate(jobs, toy, topolane.Settings(queue="fcfs")).tables()["jobs"])
    read = _engine.Table._read
    assert bytes_of(read(text)) == text
    for length in range(0, len(text), 97):
        with pytest.raises(topolane.InputError, match="not a table that was sent"):
            read(text[:length])
    accepted = 0
    for place in range(0, len(text), 7):
        changed = bytearray(text)
        changed[place] ^= 0x41
        try:
            table = read(bytes(changed))
        except topolane.InputError:
            continue
        # Another value of the same table: it can be read.
        accepted += 1
        assert len(polars.DataFrame(table)) == len(table)
    assert accepted > 0
