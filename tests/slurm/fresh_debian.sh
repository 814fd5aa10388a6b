#!/usr/bin/env bash
# Makes a fresh Debian with Slurm, configured by its packages, for the tests of our own packages:
#
#   fresh_debian.sh SUITE TARGET     TARGET/debian.tar is its tree
#
# The packages come from the mirror that apt is configured with. Needs root and mmdebstrap: exit code 3 without.
set -euo pipefail

die() {
    echo "fresh_debian.sh: $2" >&2
    exit "$1"
}

[ "$(id -u)" = 0 ] || die 3 "a fresh Debian needs root"
command -v mmdebstrap >/dev/null || die 3 "a fresh Debian needs the package mmdebstrap"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || die 3 "apt is configured with no mirror of Debian"
mmdebstrap --quiet --variant=apt --include=slurmctld,slurmd,slurm-client,slurmrestd,munge "$1" "$2/debian.tar" "$mirror" ||
    die 1 "the packages of $1 could not be had"
