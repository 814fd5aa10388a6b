#!/usr/bin/env bash
# Runs a command where Slurm's own commands are those of another Debian suite:
#
#   other_version.sh SUITE [COMMAND...]     (by default test_tokens.py)
#   other_version.sh trixie tests/slurm/cluster.sh up 12 /tmp/c
#
# Slurm's packages are unpacked, not installed, into /tmp/topolane-slurm-SUITE (210 MB, kept for the next
# time) from the mirror that apt is configured with; each command is a script that enters it by chroot.
# Mounts are made in a namespace of their own and are gone with the command. Needs root and mmdebstrap.
# MMDEBSTRAP_OPTIONS: more options for it, as --aptopt='Acquire::Check-Valid-Until "false"' for an old mirror.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
COMMANDS="munged slurmctld slurmd slurmrestd scontrol sinfo squeue sbatch srun salloc scancel sacct sdiag setpriv
    sprio sacctmgr slurmdbd mariadbd mariadb mariadb-install-db"

die() {
    echo "other_version.sh: $2" >&2
    exit "$1"
}

mirror() {
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1
}

unpack() {
    local packages=munge,slurmctld,slurmd,slurmrestd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-jwt-plugin
    packages+=,slurmdbd,slurm-wlm-mysql-plugin,mariadb-server-core,mariadb-client-core
    local from
    from=$(mirror)
    [ -n "$from" ] || die 3 "apt is configured with no mirror of Debian"
    rm -rf "$TREE"
    mmdebstrap --quiet --variant=extract ${MMDEBSTRAP_OPTIONS:+"$MMDEBSTRAP_OPTIONS"} \
        --include="base-files,bash,coreutils,dash,hostname,libc-bin,sed,util-linux,$packages" "$SUITE" "$TREE" "$from" ||
        die 1 "the packages of $SUITE could not be had"
    # What the packages' own scripts would have done: they have not run.
    local daemon
    for daemon in slurmctld slurmd slurmstepd; do
        [ ! -e "$TREE/usr/sbin/$daemon-wlm" ] || ln -sf "$daemon-wlm" "$TREE/usr/sbin/$daemon"
    done
}

write_commands() {
    local name
    mkdir -p "$TREE/commands"
    for name in $COMMANDS; do
        printf '#!/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot "%s" %s "$@"\n' "$TREE" "$name" \
            >"$TREE/commands/.$name"
        chmod +x "$TREE/commands/.$name"
        mv "$TREE/commands/.$name" "$TREE/commands/$name" # a test that runs it now goes on with the old one
    done
}

SUITE=${1:-}
[[ $SUITE =~ ^[a-z]+$ ]] || die 2 "the suite is '$SUITE', not a name such as trixie"
shift
[ "$(id -u)" = 0 ] || die 3 "entering another Slurm by chroot needs root"
command -v mmdebstrap >/dev/null || die 3 "another Slurm needs the Debian package mmdebstrap"
TREE=/tmp/topolane-slurm-$SUITE
# Several tests may want it at the same time: the first unpacks it.
exec 9>"$TREE.lock"
flock 9
[ -e "$TREE/commands" ] || unpack
write_commands
cp /etc/{hosts,passwd,group} "$TREE/etc/"
exec 9>&-
[ $# -gt 0 ] || set -- python -m pytest -q "$HERE/test_tokens.py"
# shellcheck disable=SC2016
TREE=$TREE SLURM_TREE=$TREE exec unshare --mount sh -c '
    for each in proc sys dev tmp; do mount --rbind "/$each" "$TREE/$each"; done
    PATH=$TREE/commands:$PATH exec "$@"' sh "$@"
