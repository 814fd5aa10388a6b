# Starting and ending the daemons of the cluster in $DIR, always by process id.

# SLURM_TREE: an unpacked Debian of another suite, see other_version.sh.
PLUGINS=${SLURM_TREE:-}/usr/lib/*/slurm-wlm
COMMANDS=${SLURM_TREE:+$SLURM_TREE/commands:}/usr/sbin:/usr/bin:/sbin:/bin
MARK=TOPOLANE_TEST_CLUSTER

# Ports of any local socket, TCP over IPv4 and IPv6.
ports_in_use() {
    local address
    while read -r _ address _; do
        [[ $address != *:* ]] || echo $((16#${address##*:}))
    done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}

# The first of COUNT consecutive free ports, below those that the kernel gives out itself.
free_ports() {
    local count=$1 base port try
    local -A used=()
    for port in $(ports_in_use); do used[$port]=1; done
    for ((try = 0; try < 500; try++)); do
        base=$((10000 + (RANDOM * 32768 + RANDOM) % (22000 - count)))
        for ((port = base; port < base + count; port++)); do
            [ -z "${used[$port]-}" ] || continue 2
        done
        echo "$base"
        return
    done
    die 1 "there are no $count consecutive free ports from 10000 to 32000"
}

rest_versions() {
    local have
    # One plugin a version is openapi/v0.0.38 up to Slurm 22.05 and data_parser/v0.0.40 later.
    have=$(ls $PLUGINS | sed -nE 's/^(openapi|data_parser)_v([0-9]*)_([0-9]*)_([0-9]*)\.so$/v\2.\3.\4/p' | sort -uV)
    [ -n "$have" ] || die 3 "slurmrestd has no plugin of a version v0.0.* here"
    # Of the newer ones it is for the driver to choose.
    [ ! -e "$(echo $PLUGINS/openapi_slurmctld.so)" ] || : "${REST:=${have//$'\n'/,}}"
    : "${REST:=$(tail -n 1 <<<"$have")}"
    local version
    for version in ${REST//,/ }; do
        grep -qxF "$version" <<<"$have" || die 2 "--rest is '$version', not one of: ${have//$'\n'/ }"
    done
}

# Daemons get an environment of their own, in which a mark says whose they are.
clean() {
    env -i PATH="$COMMANDS" SLURM_CONF="$DIR/slurm.conf" "$MARK=$DIR" "$@" 9>&- </dev/null
}

start_munged() {
    (umask 077 && head -c 1024 /dev/urandom >"$DIR/munge/key")
    # Forced, as the socket is closed to everybody else.
    clean munged --force --key-file="$DIR/munge/key" --socket="$DIR/munge/socket" \
        --pid-file="$DIR/run/munged.pid" --log-file="$DIR/log/munged.log" --seed-file="$DIR/munge/seed" \
        >>"$DIR/log/start.log" 2>&1 || die 1 "munged did not start"
}

start() {
    local name
    for name; do
        case $name in
            slurmctld) start_slurmctld ;;
            backup) start_backup ;;
            slurmrestd) start_slurmrestd ;;
            *)
                mkdir -p "$DIR/spool/$name"
                clean slurmd -N "$name" >>"$DIR/log/start.log" 2>&1 || die 1 "slurmd of $name did not start"
                ;;
        esac
    done
}

# SLURMCTLD_PRELOAD: a library of a test that each slurmctld loads first.
start_slurmctld() {
    ! answers primary || die 1 "a slurmctld runs already"
    clean ${SLURMCTLD_PRELOAD:+"LD_PRELOAD=$SLURMCTLD_PRELOAD"} slurmctld >>"$DIR/log/start.log" 2>&1 || die 1 "slurmctld did not start"
    local try
    for ((try = 0; try < 300; try++)); do
        ! answers primary || return 0
        sleep 0.1
    done
    die 1 "slurmctld does not answer"
}

answers() {
    scontrol ping 2>/dev/null | grep -qE "^Slurmctld\\($1[0-9]*\\) at .* is UP"
}

# Another host's slurmctld: its host name, the address that goes with it, its pid file and its log are its own. The rest
# it shares with the first, as on a network file system.
start_backup() {
    local tree=${SLURM_TREE:-} try
    mkdir -p "$DIR/run/backup"
    touch "$DIR/log/backup.log"
    { cat "$tree/etc/hosts" && echo "127.0.0.2 backup"; } >"$DIR/run/backup.hosts"
    # shellcheck disable=SC2016
    clean ${SLURMCTLD_PRELOAD:+"LD_PRELOAD=$SLURMCTLD_PRELOAD"} unshare --uts --mount sh -c '
        hostname backup
        mount --bind "$1/run/backup.hosts" "$2/etc/hosts"
        mount --bind "$1/log/backup.log" "$2$1/log/slurmctld.log"
        mount --bind "$1/run/backup" "$2$1/run"
        exec slurmctld' sh "$DIR" "$tree" >>"$DIR/log/start.log" 2>&1 || die 1 "the second slurmctld did not start"
    for ((try = 0; try < 300; try++)); do
        ! answers backup || return 0
        sleep 0.1
    done
    die 1 "the second slurmctld does not answer"
}

# Without a token slurmrestd is trusted for being root, which is also SlurmUser here; it refuses to start
# so unless an option switches off the check of users, and from Slurm 25.05 on even then. With a token it is another user, who
# may read files here only by a capability.
start_slurmrestd() {
    local plugins=(-s "openapi/${REST_VERSIONS//,/,openapi/}") how=(env) try
    [ ! -e "$(echo $PLUGINS/openapi_slurmctld.so)" ] || plugins=(-s openapi/slurmctld -d "$REST_VERSIONS")
    if [ -z "${TOKEN_FILE:-}" ]; then
        how+=(SLURMRESTD_SECURITY=disable_user_check slurmrestd -a rest_auth/local)
    else
        how+=(SLURM_JWT=daemon setpriv --reuid daemon --regid daemon --clear-groups
            --inh-caps +dac_override --ambient-caps +dac_override slurmrestd -a rest_auth/jwt "$REST_ADDRESS")
    fi
    rm -f "$SOCKET"
    clean setsid --fork sh -c 'echo $$ >"$0" && exec "$@"' "$DIR/run/slurmrestd.pid" \
        "${how[@]}" -f "$SLURM_CONF" "${plugins[@]}" "unix:$SOCKET" >>"$DIR/log/slurmrestd.log" 2>&1
    for ((try = 0; try < 100; try++)); do
        # Whoever may write to it is root in this Slurm.
        [ ! -S "$SOCKET" ] || { chmod 600 "$SOCKET" && return 0; }
        sleep 0.1
    done
    die 1 "slurmrestd did not open its socket"
}

# Refuses, before anything is done, what is no daemon of this cluster.
names() {
    local name
    for name; do
        [ "$name:${BACKUP:-no}" != backup:no ] &&
            [[ $name =~ ^(slurmctld|slurmrestd|backup|$PREFIX[1-9][0-9]*)$ && ${name##*[a-z]} -le $NODES ]] ||
            die 2 "there is no '$name' in this cluster: slurmctld, slurmrestd, ${PREFIX}1 to $PREFIX$NODES"
    done
}

# Another process may have the process id by now: only ours has the mark.
ours() {
    grep -qzxF "$MARK=$DIR" "/proc/$1/environ" 2>/dev/null
}

# The ids of a daemon's processes, one a line; some twice.
daemon() {
    local pid found=1 file=$DIR/run/$1.pid
    [ "$1" != backup ] || file=$DIR/run/backup/slurmctld.pid
    if [ -s "$file" ] && pid=$(<"$file") && ours "$pid"; then
        echo "$pid"
        found=0
    fi
    if [ "$1" = slurmctld ] && slurmctld_without_file; then found=0; fi
    return $found
}

# At a reconfiguration slurmctld starts again. The old process, which ends, may remove the pid file of the new one, and the file may
# still tell the old one. The second slurmctld has another host name.
slurmctld_without_file() {
    local process found=1
    for process in $(grep -lx slurmctld /proc/[0-9]*/comm 2>/dev/null | cut -d / -f 3); do
        if ours "$process" && [ "$(readlink "/proc/$process/ns/uts")" = "$(readlink /proc/self/ns/uts)" ]; then
            echo "$process"
            found=0
        fi
    done
    return $found
}

lives() {
    local name pids pid
    for name; do
        pids=$(daemon "$name") || return 1
        for pid in $pids; do alive "$pid" || return 1; done
    done
}

stop() { end TERM "$@"; }
kill() { end KILL "$@"; }

end() {
    local signal=$1 name pids=()
    shift
    for name; do
        pids+=($(daemon "$name" || true))
    done
    finish "$signal" "${pids[@]}"
    for name; do
        if [ "$name" = slurmctld ]; then end_what_answers; fi
    done
}

# Ends a slurmctld that was found neither by its pid file nor by its name.
end_what_answers() {
    local try
    answers primary || return 0
    scontrol shutdown slurmctld >/dev/null 2>&1 || true
    for ((try = 0; try < 100; try++)); do
        answers primary || return 0
        sleep 0.1
    done
}

# Signals processes and waits until they are gone; what stays for 20 s is killed.
finish() {
    local signal=$1 pid end=$((SECONDS + 20))
    shift
    for pid; do builtin kill "-$signal" "$pid" 2>/dev/null || true; done
    for pid; do
        while alive "$pid"; do
            ((SECONDS < end)) || builtin kill -KILL "$pid" 2>/dev/null || true
            sleep 0.05
        done
    done
}

alive() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) && [[ $state != [ZX]* && -n $state ]]
}

# Processes without a pid file: helpers of slurmctld have the mark, processes of jobs the node that runs them.
# A slurmstepd writes its title over its environment, but stays in the directory of its node's log.
left_over() {
    grep -lzxF "$MARK=$DIR" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 || true
    local process
    for process in /proc/[0-9]*; do
        if [[ $(readlink "$process/cwd") == *"$DIR/log" ]] && [[ $(readlink "$process/exe") == */slurmstepd* ]] ||
            { grep -qzxF "SLURM_CONF=$DIR/slurm.conf" "$process/environ" &&
                grep -qz '^SLURMD_NODENAME=' "$process/environ"; }; then
            echo "${process#/proc/}"
        fi
    done 2>/dev/null
}

down() {
    local pids=() pidfile name
    # Each of these wants the next to the very end.
    for name in backup slurmctld slurmdbd mariadb; do
        finish TERM $(daemon $name || true)
    done
    for pidfile in "$DIR"/run/*.pid; do
        pids+=($(daemon "$(basename "$pidfile" .pid)" || true))
    done
    finish TERM "${pids[@]}"
    finish KILL $(left_over)
    rm -f "$DIR"/run/*.pid "$DIR"/run/backup/*.pid "$SOCKET" "$DIR/munge/socket"
}
