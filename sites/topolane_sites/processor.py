"""What processors can do: the instruction sets of hosts, and those that a guest must find where it moves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topolane_sites.model import Guest, Host

LEAST_SPEED, MOST_SPEED = 0.01, 100.0
"""Bounds of a core's speed. A host that reports another one is refused."""
_X86 = """
    3dnow 3dnowext abm adx aes amx_bf16 amx_fp16 amx_int8 amx_tile avx avx2 avx512_4fmaps avx512_4vnniw
    avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni avx512_vp2intersect avx512_vpopcntdq avx512bw
    avx512cd avx512dq avx512er avx512f avx512ifma avx512pf avx512vbmi avx512vl avx_ifma avx_ne_convert avx_vnni
    avx_vnni_int8 bmi1 bmi2 cldemote clflushopt clwb clzero cx16 f16c fma fma4 fsgsbase gfni lahf_lm lm mmx mmxext
    movbe movdir64b movdiri pclmulqdq pku pni popcnt rdpid rdrand rdseed rdtscp serialize sha_ni sse sse2 sse4_1
    sse4_2 sse4a ssse3 tbm vaes vpclmulqdq waitpkg xop xsave xsavec xsaveopt
"""
INSTRUCTIONS = frozenset(_X86.split())
"""Instructions that programs execute, as Linux names them in /proc/cpuinfo. Other flags of a processor concern
kernels, and a hypervisor may emulate them, so they do not tell where a guest can run.
"""
_OTHER_NAMES = {"sse3": "pni", "lzcnt": "abm", "pclmuldq": "pclmulqdq"}
"""Names of QEMU and libvirt that differ from Linux's by more than their punctuation."""
_BARE = {re.sub("[^a-z0-9]", "", name): name for name in INSTRUCTIONS} | _OTHER_NAMES


def instructions(features: Iterable[str]) -> tuple[str, ...]:
    """The instruction sets among these features, by Linux's names and in order; QEMU's and libvirt's names are
    understood.
    """
    bare = (re.sub("[^a-z0-9]", "", name.lower()) for name in features)
    return tuple(sorted({_BARE[name] for name in bare if name in _BARE}))


def of_this_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """The instruction sets of this machine's processors; empty if they are not known, as on others than x86."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return ()
    flags = [set(line.split()) for line in re.findall(r"^flags\s*:(.*)$", text, re.MULTILINE)]
    return instructions(set.intersection(*flags)) if flags else ()


async def of_guest(execute: Callable[..., Awaitable[Any]]) -> dict[str, Any]:
    """What QEMU says of a guest's processor: its model as `cpu_model`, whether it is `emulated`, and its `features`, the
    instruction sets that its first core has. An emulated guest has those of the emulator, whatever its host's
    processor, so `features` is empty for it.

    execute: runs a command of QMP, with its arguments if it has any, and returns the answer. Other sources, such as
    libvirt's description of a running domain, may list what KVM does not give.
    """
    cores = await execute("query-cpus-fast")
    core = cores[0]["qom-path"]
    model = await execute("qom-get", {"path": core, "property": "type"})
    hypervisor = await execute("query-kvm")
    emulated = not hypervisor["enabled"]
    features = () if emulated else await features_of(execute, core)
    return {"cpu_model": model.removesuffix("-x86_64-cpu"), "emulated": emulated, "features": features}


async def features_of(execute: Callable[..., Awaitable[Any]], core: str) -> tuple[str, ...]:
    """The instruction sets of a running guest's core, which is a path of QEMU's object model."""
    found = await execute("qom-list", {"path": core})
    names = [one["name"] for one in found if one["type"] == "bool" and instructions([one["name"]])]
    has = [await execute("qom-get", {"path": core, "property": name}) for name in names]
    return instructions(name for name, value in zip(names, has) if value)


def misfit(guest: Guest, host: Host) -> str:
    """Why the guest cannot run on the host's processors; empty if it can, or if one of both is not known."""
    if not guest.features or not host.features:
        return ""
    lacks = sorted(set(guest.features) - set(host.features))
    return f"host {host.name} lacks {', '.join(lacks)}, which guest {guest.name} has" if lacks else ""
