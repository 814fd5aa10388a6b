#!/usr/bin/env bash
# A real OpenStack Nova on loopback, in a directory of its own:
#
#   cloud.sh install                 installs what is missing of the Debian packages it needs (root), starts none
#   cloud.sh check                   says what is missing
#   cloud.sh up DIR                  builds DIR/venv, starts the cloud, waits until 72 hosts are up, writes DIR/env
#   cloud.sh try DIR [FILE]          up, transcript.py, down; FILE gets the transcript, if no rule was broken
#   cloud.sh scheduler DIR NAME      starts the scheduler again with DIR/conf/scheduler-NAME.conf: stock or topolane
#   cloud.sh run DIR COMMAND...      runs a command with the cloud's Python and credentials
#   cloud.sh status DIR              says which services run; exit code 1 if one does not
#   cloud.sh down DIR                ends every process of it and removes its data; DIR/venv and DIR/log stay
#
#   PYTHON=python3.11                the Python of DIR/venv, 3.11 or newer
#
# Wrong input ends with exit code 2, missing packages with 3, a start that fails with 1.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPOSITORY=$(cd "$HERE/../../.." && pwd)
LEAVES=4 LEAF=18
. "$HERE/packages.sh"
. "$HERE/config.sh"
. "$HERE/processes.sh"
. "$HERE/services.sh"

die() {
    echo "cloud.sh: $2" >&2
    exit "$1"
}

# Prints how long a stage took.
stage() {
    local name=$1 start=$SECONDS
    shift
    "$@"
    printf '%-44s %4d s\n' "$name" $((SECONDS - start))
}

# What makes a directory that of a cloud, so that nothing else is ever removed.
OWN=.topolane-nova-cloud

# Of an earlier cloud only its Python environment and its logs stay.
directory() {
    [ -n "$1" ] || die 2 "a cloud needs a directory"
    mkdir -p "$1" || die 2 "$1 cannot be made"
    DIR=$(cd "$1" && pwd -P)
    [ -f "$DIR/$OWN" ] && [ ! -e "$DIR/run" ] || [ -z "$(ls -A "$DIR")" ] ||
        die 2 "$DIR is not empty, or a cloud is there already: see 'status' and 'down'"
    [[ $DIR =~ ^[A-Za-z0-9/._-]{1,60}$ ]] ||
        die 2 "$DIR cannot hold sockets: it may have 60 letters, digits and any of / . _ -"
    chmod 700 "$DIR"
    touch "$DIR/$OWN"
    rm -rf "$DIR/log"
    mkdir -p "$DIR"/{log,run,conf,hosts,images,keystone,rabbit,state,tmp}
}

up() {
    [ $# = 1 ] || die 2 "up needs a directory"
    check
    # A connection of each host and more, to RabbitMQ above all.
    ulimit -S -n 65536 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
    directory "$1"
    trap failed EXIT
    trap 'exit 130' INT TERM HUP
    BIN=$DIR/venv/bin
    stage "Python environment" environment_of_python
    # Two clouds that start at once must not choose the same ports.
    exec 9>>/run/lock/topolane-nova-cloud
    flock 9
    write_configuration
    stage "MariaDB and RabbitMQ" start_stores
    stage "databases" make_databases
    stage "keystone, placement, glance, nova-api" start_interfaces
    exec 9>&-
    stage "nova-conductor, nova-scheduler" start_nova
    stage "$((LEAVES * LEAF)) nova-compute" start_computes
    trap - EXIT
}

# Ends with the transcript's exit code, and in any case with no process left.
try() {
    [ $# -le 2 ] || die 2 "try needs a directory, and perhaps a file"
    up "$1"
    trap down EXIT
    run python -u "$HERE/transcript.py" "$DIR" stock topolane | tee "$DIR/log/transcript.txt"
    [ -z "${2:-}" ] || cp "$DIR/log/transcript.txt" "$2"
}

# Half a cloud is none: its processes are ended and its data removed; the logs stay for whoever asks why.
failed() {
    local code=$?
    trap - EXIT
    echo "cloud.sh: the start failed; the logs are in $DIR/log, of which the last that was written to ends so:" >&2
    tail -n 5 "$(ls -t "$DIR"/log/* 2>/dev/null | head -n 1)" >&2 2>/dev/null || true
    down
    exit $((code ? code : 1))
}

known() {
    DIR=$(cd "${1:-}" 2>/dev/null && pwd -P) && [ -n "${1:-}" ] && [ -f "$DIR/$OWN" ] && [ -d "$DIR/run" ] ||
        die 2 "there is no cloud in '${1:-}'"
    BIN=$DIR/venv/bin
}

scheduler() {
    [ -f "$DIR/conf/scheduler-${1:-}.conf" ] || die 2 "there is no scheduler '${1:-}': stock or topolane"
    stop nova-scheduler
    ln -sf "scheduler-$1.conf" "$DIR/conf/scheduler.conf"
    start_scheduler
}

verb=${1:-}
[ $# = 0 ] || shift
case $verb in
    install) install ;;
    check) check ;;
    up) up "$@" ;;
    try) try "$@" ;;
    scheduler) known "$@" && scheduler "${2:-}" ;;
    run) known "$@" && shift && run "$@" ;;
    status) known "$@" && status ;;
    down) known "$@" && down ;;
    *) die 2 "there is no verb '$verb': install, check, up, try, scheduler, run, status or down" ;;
esac
