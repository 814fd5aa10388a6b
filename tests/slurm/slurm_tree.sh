#!/usr/bin/env bash
# Unpacks the Slurm of a suite of Debian or Ubuntu, which other_version.sh enters; nothing is installed:
#
#   slurm_tree.sh SUITE TARGET     TARGET gets 210 MB; TARGET/commands/NAME enters it by chroot and runs NAME
#
# The packages come from the mirror that releases.sh finds, which may be an old one. Needs root and mmdebstrap: exit code 3
# without.
set -euo pipefail
SUITE=$1 TREE=$2
COMMANDS="munged slurmctld slurmd slurmrestd scontrol sinfo squeue sbatch srun salloc scancel sacct sdiag setpriv
    sprio sacctmgr slurmdbd mariadbd mariadb mariadb-install-db"


die() {
    echo "slurm_tree.sh: $2" >&2
    exit "$1"
}

[ "$(id -u)" = 0 ] || die 3 "entering another Slurm by chroot needs root"
. "$(dirname "$0")/releases.sh"
command -v mmdebstrap >/dev/null || die 3 "another Slurm needs the Debian package mmdebstrap"
PACKAGES=munge,slurmctld,slurmd,slurmrestd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-jwt-plugin
PACKAGES+=,slurmdbd,slurm-wlm-mysql-plugin,mariadb-server-core,mariadb-client-core
# `topolane slurm plugin check` runs a program on each host.
PACKAGES+=,python3
distribution_of "$SUITE"
mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
    --keyring="$KEYS" --components="$AREAS" \
    --include="base-files,bash,coreutils,dash,hostname,libc-bin,sed,util-linux,$PACKAGES" "$SUITE" "$TREE" "$MIRROR" ||
    die 1 "the packages of $SUITE could not be had"
# What the packages' own scripts would have done: they have not run.
for daemon in slurmctld slurmd slurmstepd; do
    [ ! -e "$TREE/usr/sbin/$daemon-wlm" ] || ln -sf "$daemon-wlm" "$TREE/usr/sbin/$daemon"
done
mkdir "$TREE/commands"
for name in $COMMANDS; do
    printf '#!/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot "${0%%/commands/*}" %s "$@"\n' "$name" \
        >"$TREE/commands/$name"
    chmod +x "$TREE/commands/$name"
done
