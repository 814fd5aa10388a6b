#!/bin/sh
# Puts programs of one Debian package into a directory; nothing is installed:
#
#   debian_programs.sh SUITE PACKAGE TARGET PROGRAM...    SUITE "-" is this machine's
#
# Another suite's package comes from the mirror that apt is configured with, by lists of packages of its own.
set -eu
suite=$1 package=$2 target=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
get() { apt-get -qq -o APT::Sandbox::User=root "$@"; }
if [ "$suite" != - ]; then
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
  [ -n "$mirror" ] || { echo "apt is configured with no mirror of Debian"; exit 3; }
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/parts"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] $mirror $suite main" >"$work/list"
  get() {
    apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/list" -o Dir::Etc::SourceParts="$work/parts" \
      -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
  }
  get update
fi
(cd "$work" && get download "$package" && dpkg-deb --extract ./*.deb all)
mkdir -p "$target"
for program; do mv "$work/all/usr/bin/$program" "$target"; done
