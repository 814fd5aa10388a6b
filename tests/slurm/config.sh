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
SlurmctldTimeout=300
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
$([ -z "$HOLD" ] || echo "JobSubmitPlugins=lua")
$(printf '%s\n' "${EXTRA[@]}")
NodeName=$PREFIX[1-$NODES] NodeAddr=127.0.0.1 NodeHostname=$host Port=[$((PORT + 1))-$((PORT + NODES))] CPUs=$CPUS Boards=1 SocketsPerBoard=2 CoresPerSocket=$((CPUS / 2)) ThreadsPerCore=1 RealMemory=32000 State=UNKNOWN
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

write_partitions() {
    local partition name nodes share default=YES
    for partition in $PARTITIONS; do
        IFS=: read -r name nodes share <<<"$partition"
        [ "$SELECT" = cons_tres ] || : "${share:=EXCLUSIVE}"
        echo "PartitionName=$name Nodes=${nodes:-ALL} Default=$default MaxTime=INFINITE State=UP OverSubscribe=${share:-NO}"
        default=NO
    done
}

# What `topolane slurm install` writes, which holds the jobs of these partitions.
write_job_submit() {
    local managed
    managed=$(for partition in ${HOLD//,/ }; do printf '["%s"] = true, ' "$partition"; done)
    sed -e "s/@MANAGED@/$managed/" -e 's/@TRUSTED@/[0] = true/' -e 's/@FILE@/test/' \
        "$HERE/../../python/topolane/slurm/job_submit.lua.in"
}
