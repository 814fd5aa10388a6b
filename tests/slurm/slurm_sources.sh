#!/usr/bin/env bash
# The configured sources of all releases in releases.txt that can be had, a directory a line. What cannot be had is named.
# A folder in TOPOLANE_TEST_SLURM_SOURCES comes first, as in live_cluster.py.
set -euo pipefail
here=$(dirname "$0")
while read -r release suite _; do
    given=${TOPOLANE_TEST_SLURM_SOURCES:-/nonexistent}/$release
    if [ -d "$given" ]; then
        echo "$given"
    else
        "$here/slurm_source.sh" "$suite" || echo "no build for Slurm $release: its source cannot be had" >&2
    fi
done < <(grep -v '^#' "$here/releases.txt")
