"""One connection of a rank, as the receiver sees it."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from topolane.mpi.frames import (
    MOST_PAYLOAD,
    Decoder,
    Frame,
    FrameError,
    FrameKind,
    Hello,
    ack_frame,
    encode,
    sites_frame,
)

if TYPE_CHECKING:
    from topolane.mpi.listener import Slot
    from topolane.mpi.receiver import Receiver

MOST_HELLO = 16 << 10
"""The most bytes of a HELLO. No more is buffered from an unknown sender."""


class SenderRefusedError(Exception):
    """The receiver refuses this sender. The message is a sentence."""


class Connection(asyncio.Protocol):
    """Splits a stream into frames and passes them to the receiver."""

    def __init__(self, receiver: Receiver, token: str | None, slot: Slot) -> None:
        self.newest = 0
        """The highest sequence number received on this connection."""
        self._receiver, self._token, self._slot = receiver, token, slot
        self._decoder = Decoder(MOST_HELLO)
        self._hello: Hello | None = None
        self._buffered = 0
        self._stalled = False

    @property
    def hello(self) -> Hello:
        """The HELLO of the sender. Use it only after the HELLO has arrived."""
        return cast(Hello, self._hello)

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return not self._transport.is_closing()

    def welcome(self, last: int, epoch: int, sites: NDArray[np.uint16] | None) -> None:
        """Answers a HELLO."""
        self._transport.write(encode(FrameKind.WELCOME, b'{"last": %d}' % last))
        if sites is not None:
            self._transport.write(sites_frame(epoch, sites))

    def acknowledge(self, sequence: int) -> None:
        """Acknowledges this sequence number and all before it. A later call includes it, so one may be
        skipped.
        """
        if self.is_open and not self._stalled:
            self._transport.write(ack_frame(sequence))

    def send_sites(self, frame: bytes) -> None:
        """Sends a site map. A rank that does not read is disconnected, and gets the newest map when it
        reconnects.
        """
        if self._stalled:
            self.close()
        elif self.is_open:
            self._transport.write(frame)

    def close(self) -> None:
        """Closes the connection; at once if the sender reads nothing."""
        if self._stalled:
            self._transport.abort()
        else:
            self._transport.close()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._receiver.limits.hello, self._too_late)
        self._receiver.arrived(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._decoder.feed(data):
                self._take(frame)
            self._receiver.buffered += self._decoder.waiting - self._buffered
            self._buffered = self._decoder.waiting
            if self._receiver.buffered > self._receiver.limits.buffered:
                raise SenderRefusedError("too much has come in part")
        except FrameError as error:
            self._tell("garbled", f"{error}; the connection is ended")
            self._transport.close()
        except SenderRefusedError as reason:
            self._refuse(str(reason))

    def connection_lost(self, error: Exception | None) -> None:
        self._slot.free()
        self._timer.cancel()
        self._receiver.buffered -= self._buffered
        self._receiver.left(self, self._hello)

    def pause_writing(self) -> None:
        self._stalled = True

    def resume_writing(self) -> None:
        self._stalled = False

    def _take(self, frame: Frame) -> None:
        if not self.is_open:
            return
        if self._hello is None:
            if frame.kind != FrameKind.HELLO:
                raise FrameError(f"a frame of kind {frame.kind} before HELLO")
            hello = Hello.decode(frame.payload)
            if self._token is not None and not hmac.compare_digest(
                hello.token.encode(), self._token.encode()
            ):
                raise SenderRefusedError("the token is not this receiver's")
            self._receiver.hello(self, hello)
            self._hello = hello
            self._decoder.most = MOST_PAYLOAD
            self._timer.cancel()
            self._slot.known()
        elif frame.kind == FrameKind.RECORDS:
            self._receiver.records(self, frame.sequence, frame.payload)
        elif frame.kind == FrameKind.BYE:
            self._receiver.bye(self, frame.sequence, frame.payload)
        else:
            raise FrameError(f"a frame of kind {frame.kind}, which no rank sends")

    def _refuse(self, reason: str) -> None:
        self._tell("refused", reason)
        if self.is_open:
            self._transport.write(encode(FrameKind.REFUSED, reason.encode()))
            self._transport.close()

    def _too_late(self) -> None:
        self._tell("refused", "a client connected and sent no HELLO")
        self._transport.abort()

    def _tell(self, kind: str, text: str) -> None:
        if self._hello is None:
            self._receiver.tell(kind, "", text)
        else:
            self._receiver.tell(kind, self._hello.program, f"rank {self._hello.rank}: {text}")
