#!/bin/sh
# Unpacks Debian's cloud kernel into a directory: guests of the tests boot it, this machine does not.
set -eu
target=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
chmod 755 "$work"
cd "$work"
apt-get download -qq "$package" 2>/dev/null
cd - >/dev/null
rm -rf "$target"
mkdir -p "$target"
dpkg-deb --extract "$work"/linux-image-*.deb "$target"
