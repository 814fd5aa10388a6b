#!/usr/bin/env bash
# Runs a command where Slurm's own commands are those of another suite or release:
#
#   other_version.sh SUITE [COMMAND...]     (by default test_tokens.py)
#   other_version.sh 24.11 tests/slurm/cluster.sh up 12 /tmp/c
#
# releases.txt has the suite of each release. slurm_tree.sh unpacks Slurm's packages once, as a component
# (tools/components.py). Each command is a script that enters it by chroot. Mounts are made in a namespace of their own
# and are gone with the command. Needs root and mmdebstrap.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
    echo "other_version.sh: $2" >&2
    exit "$1"
}

. "$HERE/releases.sh"
SUITE=$(suite_of "${1:-}")
[[ $SUITE =~ ^[a-z]+$ ]] || die 2 "'$SUITE' is neither a suite nor a release of Slurm with packages (releases.txt)"
shift
[ "$(id -u)" = 0 ] || die 3 "entering another Slurm by chroot needs root"
TREE=$("$HERE/../../tools/components.py" --path "slurm-$SUITE")
# Others may be in it: a file is exchanged, never half written. In namespaces of processes, two of them have the same number.
for file in hosts passwd group; do
    copy=$(mktemp "$TREE/etc/.$file.XXXXXXXX")
    cat "/etc/$file" >"$copy"
    chmod 644 "$copy"
    mv "$copy" "$TREE/etc/$file"
done
[ $# -gt 0 ] || set -- python -m pytest -q "$HERE/test_tokens.py"
# shellcheck disable=SC2016
TREE=$TREE SLURM_TREE=$TREE exec unshare --mount sh -c '
    for each in proc sys dev tmp; do mount --rbind "/$each" "$TREE/$each"; done
    PATH=$TREE/commands:$PATH exec "$@"' sh "$@"
