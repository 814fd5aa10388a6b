# The files of a cluster in $DIR, from the options of cluster.sh, which reads this file.

# Nodes in leaves, leaves in pods, pods under one core: the shape of Cab at any size.
write_topology() {
    local leaves=$(((NODES + LEAF - 1) / LEAF)) pods leaf pod last
    pods=$(((leaves + POD - 1) / POD))
    for ((leaf = 1; leaf <= leaves; leaf++)); do
        last=$((leaf * LEAF < NODES ? leaf * LEAF : NODES))
        echo "SwitchName=leaf$leaf Nodes=$PREFIX[$(((leaf - 1) * LEAF + 1))-$last]"
    done
    for ((pod = 1; pod <= pods; pod++)); do
        last=$((pod * POD < leaves ? pod * POD : leaves))
        echo "SwitchName=pod$pod Switches=leaf[$(((pod - 1) * POD + 1))-$last]"
    done
    echo "SwitchName=core Switches=pod[1-$pods]"
}

# Debug flag NO_CONF_HASH: a test may change slurm.conf without every slurmd complaining.
# Credentials expire soon, as a requeued job waits for that before it may start again.
# sched/backfill starts jobs in the order of their priorities; sched/builtin does not, when they name nodes.
write_slurm_conf() {
    local host
    host=$(hostname -s)
    cat <<END
ClusterName=$PREFIX
SlurmctldHost=$host(127.0.0.1)
$([ "$BACKUP" = no ] || echo "SlurmctldHost=backup(127.0.0.2)")
SlurmctldPort=$PORT
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$DIR/munge/socket,cred_expire=10
$([ "$AUTH" = none ] || printf '%s\n' AuthAltTypes=auth/jwt "AuthAltParameters=jwt_key=$DIR/jwt.key")
StateSaveLocation=$DIR/state
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdPidFile=$DIR/run/%n.pid
SlurmdLogFile=$DIR/log/%n.log
SlurmdSpoolDir=$DIR/spool/%n
SlurmdParameters=config_overrides
MailProg=/bin/true
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=$([ "$BACKUP" = no ] && echo 300 || echo 6)
SlurmdTimeout=300
KillWait=2
TreeWidth=65533
TopologyPlugin=topology/tree
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,bf_interval=2,bf_continue,bf_max_job_test=5000
PriorityType=priority/$PRIORITY
$(write_priority)
$(write_select)
AccountingStorageType=accounting_storage/$ACCOUNTING
$([ "$ACCOUNTING" = none ] || printf 'AccountingStorage%s\n' Host=127.0.0.1 Port=$((PORT + NODES + 1)) Pass="$DIR/munge/socket")
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$DIR/log/jobs.log
MaxJobCount=50000
DebugFlags=NO_CONF_HASH
$(printf '%s\n' "${EXTRA[@]}")
$(write_nodes)
$(write_partitions)
END
}

# Without accounting nothing but a job's age, size and partition makes its priority.
write_priority() {
    [ "$PRIORITY" = multifactor ] || return 0
    echo "PriorityMaxAge=0-01:00:00"
    printf 'PriorityWeight%s=1000\n' Age JobSize Partition
}

write_select() {
    echo "SelectType=select/${SELECT/whole/cons_tres}"
    [ "$SELECT" = linear ] || echo "SelectTypeParameters=CR_Core"
}

# What a slurmd must find of its own resources. Slurm wants a file for each GPU and never opens it here; it counts the
# others.
write_gres() {
    local group first=1 last each name type count what
    for group in "${NODE_GROUPS[@]}"; do
        last=$((first + ${group%% *} - 1))
        [[ $group != *" Gres="* ]] || for each in $(sed -E 's/.* Gres=([^ ]*).*/\1/; s/,/ /g' <<<"$group"); do
            IFS=: read -r name type count <<<"$each"
            [ -n "$count" ] || count=$type type=''
            what=Flags=CountOnly
            if [ "$name" = gpu ]; then
                mkdir -p "$DIR/gpus"
                eval "touch '$DIR/gpus/$type'{0..$((count - 1))}"
                what="File=$DIR/gpus/$type[0-$((count - 1))]"
            fi
            echo "NodeName=$PREFIX[$first-$last] Name=$name ${type:+Type=$type} Count=$count $what"
        done
        first=$((last + 1))
    done
}

write_nodes() {
    local group first=1 last
    for group in "${NODE_GROUPS[@]}" "$NODES "; do
        last=$((first + ${group%% *} - 1 < NODES ? first + ${group%% *} - 1 : NODES))
        ((first <= last)) || break
        echo "NodeName=$PREFIX[$first-$last] NodeAddr=127.0.0.1 NodeHostname=$(hostname -s)" \
            "Port=[$((PORT + first))-$((PORT + last))] CPUs=$CPUS Boards=1 SocketsPerBoard=2" \
            "CoresPerSocket=$((CPUS / 2)) ThreadsPerCore=1 RealMemory=32000 State=UNKNOWN ${group#* }"
        first=$((last + 1))
    done
}

write_partitions() {
    local partition name nodes share default=YES
    for partition in $PARTITIONS; do
        IFS=: read -r name nodes share <<<"$partition"
        [ "$SELECT" = cons_tres ] || : "${share:=EXCLUSIVE}"
        echo "PartitionName=$name Nodes=${nodes:-ALL} Default=$default MaxTime=INFINITE State=UP OverSubscribe=${share:-NO}"
        default=NO
    done
}
