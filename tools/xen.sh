#!/bin/sh
# Unpacks Debian's Xen 4.17, its tools, libvirt's driver for it and the kernel of its dom0 into a directory: an emulated machine boots them.
set -eu
target=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
chmod 755 "$work"
cd "$work"
apt-get download -qq "$kernel" xen-hypervisor-4.17-amd64 xen-utils-4.17 xen-utils-common xenstore-utils libxenmisc4.17 \
  libxencall1 libxendevicemodel1 libxenevtchn1 libxenforeignmemory1 libxengnttab1 libxenhypfs1 libxenstore4 \
  libxentoolcore1 libxentoollog1 libyajl2 libnl-3-200 libnl-route-3-200 libvirt-daemon-driver-xen 2>/dev/null
for package in *.deb; do dpkg-deb --extract "$package" all; done
mkdir -p tools/usr modules
cp -a all/etc tools
cp -a all/usr/bin all/usr/sbin all/usr/lib all/lib/x86_64-linux-gnu tools/usr
mkdir -p tools/usr/lib/x86_64-linux-gnu
mv tools/usr/x86_64-linux-gnu/* tools/usr/lib/x86_64-linux-gnu
rmdir tools/usr/x86_64-linux-gnu
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci fuse virtiofs overlay \
    xen-privcmd xen-evtchn xen-gntdev xen-gntalloc xenfs failover net_failover virtio_net; do
  cp "$(find all/lib/modules -name "$module.ko")" modules
done
gunzip -c all/boot/xen-4.17-amd64.gz >xen
cp "all/boot/vmlinuz-${kernel#linux-image-}" kernel
cd - >/dev/null
rm -rf "$target"
mkdir -p "$target"
mv "$work/tools" "$work/modules" "$work/xen" "$work/kernel" "$target"
