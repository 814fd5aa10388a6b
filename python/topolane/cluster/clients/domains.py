"""Clients of libvirt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import libvirt

# Errors arrive as exceptions; libvirt would print them, too.
libvirt.registerErrorHandler(lambda _, __: None, None)


@contextlib.contextmanager
def opened(uri: str | None) -> Iterator[libvirt.virConnect]:
    """A connection to the libvirt of that URI [default: LIBVIRT_DEFAULT_URI, or this machine]. Raises libvirtError."""
    made = libvirt.open(uri)
    try:
        yield made
    finally:
        with contextlib.suppress(libvirt.libvirtError):
            made.close()


def domain(made: libvirt.virConnect, guest: str) -> libvirt.virDomain | None:
    """The domain of a guest, running or not; None if libvirt answers that it does not exist."""
    try:
        return made.lookupByName(guest)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise
