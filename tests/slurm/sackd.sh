#!/usr/bin/env bash
# Unpacks the sackd of a suite of Debian or Ubuntu, which gives hosts without slurm.conf that of slurmctld:
#
#   sackd.sh SUITE TARGET     TARGET gets usr/sbin/sackd
#
# The package comes from the mirror that releases.sh finds. Exit code 3 if it cannot be had.
set -euo pipefail
SUITE=$1 TARGET=$2

die() {
    echo "sackd.sh: $2" >&2
    exit "$1"
}

. "$(dirname "$0")/releases.sh"
distribution_of "$SUITE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Lists and caches of its own: those of this machine stay as they are.
mkdir -p "$work"/{lists,cache/archives}/partial "$work/parts" "$TARGET"
echo "deb [signed-by=$KEYS] $MIRROR $SUITE ${AREAS//,/ }" >"$work/list"
options=(-qq -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/list"
    -o Dir::Etc::SourceParts="$work/parts" -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache"
    -o Dir::State::status=/dev/null)
apt-get "${options[@]}" update >&2 || die 3 "the list of packages of $SUITE cannot be had from $MIRROR"
(cd "$work" && apt-get "${options[@]}" download sackd >&2) || die 3 "$SUITE has no package sackd"
dpkg-deb -x "$work"/sackd_*.deb "$TARGET"
