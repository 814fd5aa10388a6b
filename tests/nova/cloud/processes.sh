# Starting and ending the processes of the cloud in $DIR, always by process id.

# Every process of the cloud has an environment of its own, in which a mark says whose it is. Without
# SPT_NOENV oslo's workers would write their titles over it.
MARK=TOPOLANE_TEST_CLOUD
clean() {
    env -i PATH="$BIN:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$DIR/state" TMPDIR="$DIR/tmp" LC_ALL=C.UTF-8 \
        SPT_NOENV=1 "$MARK=$DIR" "$@" 9>&- </dev/null
}

# start NAME COMMAND...: as a session of its own, with a log and a pid file.
start() {
    local name=$1
    shift
    rm -f "$DIR/run/$name.pid"
    clean setsid --fork sh -c 'cd "$0/run" && echo $$ >"$1.pid" && shift && exec "$@"' "$DIR" "$name" "$@" \
        >>"$DIR/log/$name.log" 2>&1
}

# await NAME SECONDS COMMAND...: polls until the command succeeds, as long as the service runs.
await() {
    local name=$1 end=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || die 1 "$name does not answer; see $DIR/log/$name.log"
        [ ! -s "$DIR/run/$name.pid" ] || daemon "$name" >/dev/null ||
            die 1 "$name has ended; see $DIR/log/$name.log"
        sleep 0.3
    done
}

# Another process may have the process id by now: only ours has the mark.
ours() {
    grep -qzxF "$MARK=$DIR" "/proc/$1/environ" 2>/dev/null
}

daemon() {
    local pid
    [ -s "$DIR/run/$1.pid" ] && pid=$(<"$DIR/run/$1.pid") && ours "$pid" && echo "$pid"
}

all_of_us() {
    grep -lzxF "$MARK=$DIR" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 || true
}

stop() {
    local name pids=()
    for name; do pids+=($(daemon "$name" || true)); done
    finish TERM "${pids[@]}"
}

# Signals processes and waits until they are gone; what stays for 20 s is killed.
finish() {
    local signal=$1 pid end=$((SECONDS + 20))
    shift
    for pid; do kill "-$signal" "$pid" 2>/dev/null || true; done
    for pid; do
        while alive "$pid"; do
            ((SECONDS < end)) || kill -KILL "$pid" 2>/dev/null || true
            sleep 0.05
        done
    done
}

alive() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) && [[ $state != [ZX]* && -n $state ]]
}

# The stores last: the others say goodbye to them. All that is left after that is killed.
down() {
    local pidfile name names=()
    for pidfile in "$DIR"/run/*.pid; do
        name=$(basename "$pidfile" .pid)
        [[ $name == mariadb || $name == rabbitmq || $name == epmd || $name == '*' ]] || names+=("$name")
    done
    stop "${names[@]}"
    stop rabbitmq mariadb epmd
    finish KILL $(all_of_us)
    rm -rf "$DIR"/{conf,hosts,images,keystone,rabbit,sql,state,tmp,env,run} "$DIR"/plan-*.json
}

status() {
    local pidfile name code=0
    for pidfile in "$DIR"/run/*.pid; do
        name=$(basename "$pidfile" .pid)
        if daemon "$name" >/dev/null; then
            printf '%-16s runs\n' "$name"
        else
            printf '%-16s does not run\n' "$name"
            code=1
        fi
    done
    return $code
}
