# slurmdbd and a MariaDB of the cluster in $DIR, on loopback, for cluster.sh --accounting slurmdbd.

write_slurmdbd_conf() {
    cat <<END
DbdHost=$(hostname -s)
DbdAddr=127.0.0.1
DbdPort=$((PORT + NODES + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$DIR/munge/socket
LogFile=$DIR/log/slurmdbd.log
PidFile=$DIR/run/slurmdbd.pid
CommunicationParameters=NoInAddrAny
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORT + NODES + 2))
StorageUser=root
StorageLoc=slurm
END
}

# Every cluster has its database in its own directory: nothing of the machine's is touched.
start_mariadb() {
    mkdir "$DIR/sql"
    mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user=root \
        --datadir="$DIR/sql" >>"$DIR/log/start.log" 2>&1 || die 1 "mariadb-install-db failed"
    clean setsid --fork mariadbd --no-defaults --user=root --datadir="$DIR/sql" --socket="$DIR/sql/socket" \
        --pid-file="$DIR/run/mariadb.pid" --bind-address=127.0.0.1 --port=$((PORT + NODES + 2)) \
        --innodb-flush-log-at-trx-commit=0 >>"$DIR/log/mariadb.log" 2>&1
}

# The cluster must be known there before slurmctld starts, which wants its associations. The database is made before
# slurmdbd starts: a client library of MariaDB 11.8.9 refuses every answer after a connection to none.
start_accounting() {
    start_mariadb
    (umask 077 && write_slurmdbd_conf >"$DIR/slurmdbd.conf")
    local try
    for ((try = 0; try < 300; try++)); do
        ! mariadb --no-defaults --socket="$DIR/sql/socket" --execute "CREATE DATABASE slurm" >/dev/null 2>&1 || break
        sleep 0.1
    done
    clean slurmdbd >>"$DIR/log/start.log" 2>&1 || die 1 "slurmdbd did not start"
    for ((try = 0; try < 300; try++)); do
        ! sacctmgr -iQ add cluster "$PREFIX" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    die 1 "slurmdbd does not answer"
}
