"""Guests as libvirt domains: writes their XML, starts and ends them."""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import libvirt
from topolane.cluster.clients.domains import domain, opened

from topolane_sites import overlay
from topolane_sites.remote import CommandFailed

if TYPE_CHECKING:
    from topolane_sites.clusters import Boot, VirtualCluster
    from topolane_sites.model import Guest, Host


def connection(host: Host) -> contextlib.AbstractContextManager[libvirt.virConnect]:
    """A connection to the libvirt of a host, whose `address` is its URI. Raises libvirt.libvirtError."""
    return opened(host.address)


class LibvirtBuilder:
    """See `building.Builder`. Domains are transient: libvirt forgets one when it ends."""

    def start(self, cluster: VirtualCluster, guest: Guest, boot: Boot, host: Host) -> None:
        """Starts one."""
        from topolane_sites.builders import accelerator, append, mac

        accelerated = accelerator(cluster.member(host.name).run, boot)
        text = xml(
            guest,
            boot,
            "kvm" if accelerated == "kvm" else "qemu",
            append(cluster, guest, boot),
            (overlay.bridge(cluster.name), mac(cluster.name, guest.name)),
        )
        try:
            with connection(host) as made:
                made.createXML(text, 0)
        except libvirt.libvirtError as error:
            raise CommandFailed(f"libvirt of {host.name}: {error}") from error

    def end(self, cluster: VirtualCluster, guest: Guest, host: Host) -> None:
        """Ends one."""
        try:
            with connection(host) as made:
                if (found := domain(made, guest.name)) is not None:
                    found.destroy()
        except libvirt.libvirtError as error:
            raise CommandFailed(f"libvirt of {host.name}: {error}") from error


def xml(guest: Guest, boot: Boot, kind: str, append: str = "", card: tuple[str, str] | None = None) -> str:
    """The XML of a guest's domain; `card` is the bridge and the address of its network card."""
    top = ET.Element("domain", type=kind)
    ET.SubElement(top, "name").text = guest.name
    ET.SubElement(top, "memory", unit="KiB").text = str(guest.memory >> 10)
    ET.SubElement(top, "vcpu").text = str(guest.cores)
    system = ET.SubElement(top, "os")
    ET.SubElement(system, "type", arch="x86_64", machine="q35").text = "hvm"
    for key, value in (("kernel", boot.kernel), ("initrd", boot.initramfs), ("cmdline", append)):
        if value and boot.kernel:
            ET.SubElement(system, key).text = value if key == "cmdline" else str(Path(value).resolve())
    features = ET.SubElement(top, "features")
    ET.SubElement(features, "acpi")
    devices = ET.SubElement(top, "devices")
    if boot.image:
        disk = ET.SubElement(devices, "disk", type="file", device="disk")
        ET.SubElement(disk, "driver", name="qemu", type="qcow2" if boot.image.endswith(".qcow2") else "raw")
        ET.SubElement(disk, "source", file=str(Path(boot.image).resolve()))
        ET.SubElement(disk, "target", dev="vda", bus="virtio")
    if card:
        net = ET.SubElement(devices, "interface", type="bridge")
        ET.SubElement(net, "source", bridge=card[0])
        ET.SubElement(net, "mac", address=card[1])
        ET.SubElement(net, "model", type="virtio")
        ET.SubElement(net, "mtu", size=str(overlay.VXLAN_MTU))
    serial = ET.SubElement(devices, "console", type="pty")
    ET.SubElement(serial, "target", type="serial", port="0")
    ET.SubElement(devices, "memballoon", model="none")
    return ET.tostring(top, encoding="unicode")
