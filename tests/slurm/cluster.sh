#!/usr/bin/env bash
# A real Slurm from Debian's packages, on loopback, in a directory of its own:
#
#   cluster.sh check [OPTION VALUE]...    says what is missing for it
#   cluster.sh up N DIR [OPTION VALUE]... starts it, waits until its N nodes are idle, writes DIR/env
#   cluster.sh stop DIR NAME...           ends slurmctld, slurmrestd, backup or nodes of it
#   cluster.sh kill DIR NAME...           the same with SIGKILL
#   cluster.sh start DIR NAME...          starts them again
#   cluster.sh lives DIR NAME...          ends with 1 if one of them is not there
#   cluster.sh down DIR                   ends every process of it; the logs stay in DIR/log
#
#   --leaf N        nodes a leaf, --pod N leaves a pod (18 and 18 above 324 nodes, else 6 and 3)
#   --prefix NAME   nodes are NAME1, NAME2, ... (node)
#   --cpus N        cores a node (16)
#   --partitions "NAME[:NODES[:OVERSUBSCRIBE]] ..."   the first is the default one (pbatch:ALL)
#   --open yes|no   other users than root may submit jobs too (no)
#   --select linear|cons_tres, --priority basic|multifactor, --accounting none|slurmdbd (the first of each,
#                   but from Slurm 24 on, which has no linear here, cons_tres with whole nodes)
#   --auth none|jwt whether slurmrestd wants a token, DIR/token, and listens on a port of 127.0.0.1 too (none,
#                   and jwt where Slurm refuses to trust its socket, from Slurm 25.05 on)
#   --backup yes|no a second slurmctld, `backup`, takes over from the first, with the same StateSaveLocation; it logs
#                   to DIR/log/backup.log (no)
#   --rest LIST     versions slurmrestd offers, such as v0.0.37,v0.0.38 (the newest there is;
#                   from v0.0.40 on all there are)
#   --group "N SETTINGS"  the next N nodes have these settings in slurm.conf too, such as Weight=2 or Gres=gpu:a:4,nic:2;
#                   as often as wanted, the first group begins with the first node
#   --conf LINE     one more line of slurm.conf, as often as wanted
#   --conf-file FILE   a file that is copied next to slurm.conf before slurmctld starts; may be repeated
#   --deadline S    seconds to wait for idle nodes, once all are started (240 + N / 2)
#
# Wrong input ends with exit code 2, missing packages with 3, a start that fails with 1.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/config.sh"
. "$HERE/processes.sh"
. "$HERE/accounting.sh"

die() {
    echo "cluster.sh: $2" >&2
    exit "$1"
}

number() {
    [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || die 2 "$1 is '$2', not a number from 1 to 99999"
    echo "$2"
}

one_of() {
    local option=$1 value=$2 choice
    shift 2
    for choice; do
        [ "$value" != "$choice" ] || { echo "$value"; return; }
    done
    die 2 "$option is '$value', not one of: $*"
}

older() {
    local version
    version=$(slurmctld -V 2>/dev/null) || true
    [[ ${version##* } < $1 ]]
}

shaped() {
    [[ $3 =~ ^($1)$ ]] || die 2 "$2 is '$3', not $4"
    echo "$3"
}

options() {
    LEAF='' POD='' PREFIX=node CPUS=16 PARTITIONS=pbatch REST='' EXTRA=() CONF_FILES=() NODE_GROUPS=()
    OPEN=no SELECT='' PRIORITY=basic ACCOUNTING=none AUTH='' BACKUP=no DEADLINE=$((240 + NODES / 2))
    while [ $# -gt 0 ]; do
        [ $# -ge 2 ] || die 2 "$1 needs a value"
        case $1 in
            --leaf) LEAF=$(number "$@") ;;
            --pod) POD=$(number "$@") ;;
            --prefix) PREFIX=$(shaped '[a-z]([a-z-]*[a-z])?' "$1" "$2" "a name of small letters") ;;
            --cpus) CPUS=$(number "$@") ;;
            --partitions) PARTITIONS=$2 ;;
            --open) OPEN=$(one_of "$1" "$2" yes no) ;;
            --select) SELECT=$(one_of "$1" "$2" linear cons_tres) ;;
            --priority) PRIORITY=$(one_of "$1" "$2" basic multifactor) ;;
            --accounting) ACCOUNTING=$(one_of "$1" "$2" none slurmdbd) ;;
            --auth) AUTH=$(one_of "$1" "$2" none jwt) ;;
            --backup) BACKUP=$(one_of "$1" "$2" yes no) ;;
            --rest) REST=$(shaped '[v0-9.,]+' "$1" "$2" "a list such as v0.0.37,v0.0.38") ;;
            --group) NODE_GROUPS+=("$(shaped '[1-9][0-9]{0,3} .+' "$1" "$2" "a number of nodes and settings")") ;;
            --conf) EXTRA+=("$2") ;;
            --conf-file) [ -f "$2" ] && CONF_FILES+=("$2") || die 2 "--conf-file: there is no file '$2'" ;;
            --deadline) DEADLINE=$(number "$@") ;;
            *) die 2 "there is no option '$1'" ;;
        esac
        shift 2
    done
    ((CPUS % 2 == 0)) || die 2 "--cpus is '$CPUS', not even: a node has two sockets"
    # Slurm 24 refuses select/linear with topology/tree; there EXCLUSIVE alone makes nodes whole.
    : "${SELECT:=$(older 24.05 && echo linear || echo whole)}"
    : "${AUTH:=$(older 25.05 && echo none || echo jwt)}"
    : "${LEAF:=$((NODES > 324 ? 18 : 6))}" "${POD:=$((NODES > 324 ? 18 : 3))}"
}

check() {
    local missing=()
    command -v munged >/dev/null || missing+=(munge)
    command -v sbatch >/dev/null || missing+=(slurm-client)
    for daemon in slurmctld slurmd slurmrestd; do
        command -v $daemon >/dev/null || missing+=($daemon)
    done
    [ "$AUTH" != jwt ] || ls $PLUGINS/auth_jwt.so >/dev/null 2>&1 || missing+=(slurm-wlm-jwt-plugin)
    ls $PLUGINS/topology_tree.so >/dev/null 2>&1 || missing+=(slurm-wlm-basic-plugins)
    if [ "$ACCOUNTING" = slurmdbd ]; then
        command -v mariadbd >/dev/null || missing+=(mariadb-server)
        ls $PLUGINS/accounting_storage_mysql.so >/dev/null 2>&1 || missing+=(slurm-wlm-mysql-plugin)
        command -v slurmdbd >/dev/null || missing+=(slurmdbd)
    fi
    [ ${#missing[@]} = 0 ] || die 3 "a cluster needs the Debian packages ${missing[*]}"
    [ "$(id -u)" = 0 ] || die 3 "a cluster needs root, as whom its slurmds start the jobs"
    # Slurm can bind to one address only: that of the host's name.
    local address
    address=$(getent ahostsv4 "$(hostname)" | awk 'NR == 1 { print $1 }')
    [[ $address == 127.* ]] ||
        die 3 "the name of this host is at '$address', not on loopback: Slurm would listen there"
}

directory() {
    [ -n "$1" ] || die 2 "a cluster needs a directory"
    mkdir -p "$1" || die 2 "$1 cannot be made"
    DIR=$(cd "$1" && pwd -P)
    [ -z "$(ls -A "$DIR")" ] || die 2 "$DIR is not empty"
    [[ $DIR =~ ^[A-Za-z0-9/._-]{1,60}$ ]] ||
        die 2 "$DIR cannot hold sockets: it may have 60 letters, digits and any of / . _ -"
    chmod 700 "$DIR"
}

up() {
    [ $# -ge 2 ] || die 2 "up needs a number of nodes and a directory"
    NODES=$(number "the number of nodes" "$1")
    local where=$2
    shift 2
    options "$@"
    check
    rest_versions
    directory "$where"
    trap failed EXIT
    trap 'exit 130' INT TERM HUP
    [ "$OPEN" = no ] || chmod 711 "$DIR"
    mkdir "$DIR"/{munge,state,spool,log,run}
    # Two clusters that start at once must not choose the same ports.
    exec 9>>/run/lock/topolane-slurm-cluster
    flock 9
    PORT=$(free_ports $((NODES + 4)))
    write_slurm_conf >"$DIR/slurm.conf"
    write_topology >"$DIR/topology.conf"
    [ ${#CONF_FILES[@]} = 0 ] || cp "${CONF_FILES[@]}" "$DIR"
    [ ${#NODE_GROUPS[@]} = 0 ] || write_gres >"$DIR/gres.conf"
    [ "$AUTH" = none ] || (umask 077 && head -c 32 /dev/urandom >"$DIR/jwt.key")
    write_env >"$DIR/env"
    environment
    start_munged
    [ "$ACCOUNTING" = none ] || start_accounting
    start slurmctld
    [ "$BACKUP" = no ] || start backup
    [ "$AUTH" = none ] || write_token
    start $(eval "echo $PREFIX{1..$NODES}")
    start slurmrestd
    exec 9>&-
    wait_idle
    trap - EXIT
}

write_env() {
    printf '%s=%s\n' SLURM_CONF "$DIR/slurm.conf" SOCKET "$DIR/rest.socket" REST_VERSION "${REST##*,}" \
        REST_VERSIONS "$REST" NODES "$NODES" PREFIX "$PREFIX" BACKUP "$BACKUP"
    [ "$AUTH" = none ] ||
        printf '%s=%s\n' REST_ADDRESS "127.0.0.1:$((PORT + NODES + 3))" TOKEN_FILE "$DIR/token"
}

write_token() {
    (umask 077 && scontrol token username=root lifespan=86400 | sed 's/^SLURM_JWT=//' >"$DIR/token") ||
        die 1 "scontrol gives no token"
}

wait_idle() {
    local end=$((SECONDS + DEADLINE)) idle=0
    while [ "$idle" != "$NODES" ]; do
        ((SECONDS < end)) || die 1 "$idle of $NODES nodes are idle after $DEADLINE s"
        sleep 0.3
        idle=$(scontrol -o show nodes 2>/dev/null | grep -c ' State=IDLE ' || true)
    done
}

# Half a cluster is none: its processes are ended and what was written is removed.
failed() {
    local code=$?
    trap - EXIT
    echo "cluster.sh: the start failed; the last lines of the logs:" >&2
    tail -qn 4 "$DIR"/log/{start,slurmctld,slurmrestd}.log >&2 2>/dev/null || true
    down
    find "$DIR" -mindepth 1 -delete
    exit $((code ? code : 1))
}

known() {
    DIR=$(cd "${1:-}" 2>/dev/null && pwd -P) && [ -n "${1:-}" ] && [ -f "$DIR/env" ] ||
        die 2 "there is no cluster in '${1:-}'"
    environment
}

environment() {
    set -a
    . "$DIR/env"
    set +a
}

verb=${1:-}
[ $# = 0 ] || shift
case $verb in
    check) NODES=1 && options "$@" && check ;;
    up) up "$@" ;;
    down) known "$@" && down ;;
    start | stop | kill | lives) known "$@" && shift && names "$@" && "$verb" "$@" ;;
    *) die 2 "there is no verb '$verb': check, up, stop, kill, start, lives or down" ;;
esac
