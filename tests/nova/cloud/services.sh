# The services of the cloud in $DIR, in the order in which they want each other.

listens() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1")
}

start_stores() {
    mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user=root \
        --datadir="$DIR/sql" >"$DIR/log/mariadb-install.log" 2>&1 || die 1 "mariadb-install-db failed"
    start mariadb mariadbd --no-defaults --user=root --datadir="$DIR/sql" --socket="$DIR/sql/socket" \
        --skip-networking --max-connections=500 --innodb-flush-log-at-trx-commit=0
    start_rabbitmq
    await mariadb 60 mariadb-admin --no-defaults --socket="$DIR/sql/socket" ping
    await rabbitmq 120 listens "$RABBIT_PORT"
}

# Erlang would start an epmd on all interfaces, which outlives RabbitMQ: this one is ours. Debian's wrapper
# of rabbitmq-server would become another user, so it is passed by.
start_rabbitmq() {
    local environment=(ERL_EPMD_PORT="$EPMD_PORT" ERL_EPMD_ADDRESS=127.0.0.1 HOME="$DIR/rabbit")
    start epmd env "${environment[@]}" epmd
    start rabbitmq env "${environment[@]}" RABBITMQ_NODENAME=topolane@localhost \
        RABBITMQ_DIST_PORT="$DIST_PORT" RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_CONFIG_FILE="$DIR/conf/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$DIR/conf/plugins" \
        RABBITMQ_MNESIA_BASE="$DIR/rabbit" RABBITMQ_LOG_BASE="$DIR/log" RABBITMQ_LOGS=- \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" \
        /usr/lib/rabbitmq/bin/rabbitmq-server
}

sync() {
    clean "$@" >>"$DIR/log/sync.log" 2>&1 || die 1 "$(basename "$1") failed; see $DIR/log/sync.log"
}

make_databases() {
    local name
    for name in keystone placement glance nova_api nova nova_cell0; do
        echo "CREATE DATABASE $name CHARACTER SET utf8;"
    done | mariadb --no-defaults --socket="$DIR/sql/socket" --user=root
    local keystone=("$BIN/keystone-manage" --config-file "$DIR/conf/keystone.conf")
    local nova=("$BIN/nova-manage" --config-file "$DIR/conf/nova.conf")
    sync "${keystone[@]}" db_sync
    sync "${keystone[@]}" fernet_setup --keystone-user root --keystone-group root
    sync "${keystone[@]}" bootstrap --bootstrap-username admin --bootstrap-password "$PASSWORD" \
        --bootstrap-project-name admin --bootstrap-region-id RegionOne \
        --bootstrap-public-url "$KEYSTONE_URL" --bootstrap-internal-url "$KEYSTONE_URL"
    sync env OS_PLACEMENT_CONFIG_DIR="$DIR/conf" "$BIN/placement-manage" \
        --config-file "$DIR/conf/placement.conf" db sync
    sync "$BIN/glance-manage" --config-file "$DIR/conf/glance-api.conf" db_sync
    sync "${nova[@]}" api_db sync
    sync "${nova[@]}" cell_v2 map_cell0 --database_connection "$(database nova_cell0)"
    sync "${nova[@]}" cell_v2 create_cell --name cell1
    sync "${nova[@]}" db sync
}

# One service under uwsgi. Kept connections would occupy a thread each.
start_wsgi() {
    local name=$1 module=$2 port=$3 processes=$4
    start "$name" env OS_KEYSTONE_CONFIG_DIR="$DIR/conf" OS_KEYSTONE_CONFIG_FILES=keystone.conf \
        OS_PLACEMENT_CONFIG_DIR="$DIR/conf" OS_GLANCE_CONFIG_DIR="$DIR/conf" OS_NOVA_CONFIG_DIR="$DIR/conf" \
        "$BIN/pyuwsgi" --master --die-on-term --worker-reload-mercy 2 --need-app --lazy-apps --enable-threads --buffer-size 65535 \
        --http-socket "127.0.0.1:$port" --processes "$processes" --threads 4 \
        --add-header 'Connection: close' --disable-logging --module "$module"
}

start_interfaces() {
    start neutron "$BIN/python" "$HERE/neutron.py" "$NEUTRON_PORT"
    start_wsgi keystone keystone.wsgi.api "$KEYSTONE_PORT" 2
    start_wsgi placement placement.wsgi.api "$PLACEMENT_PORT" 2
    start_wsgi glance-api glance.wsgi.api "$GLANCE_PORT" 1
    start_wsgi nova-api nova.wsgi.osapi_compute "$NOVA_PORT" 2
    await neutron 60 listens "$NEUTRON_PORT"
    await keystone 60 listens "$KEYSTONE_PORT"
    await placement 60 listens "$PLACEMENT_PORT"
    await glance-api 60 listens "$GLANCE_PORT"
    await nova-api 60 listens "$NOVA_PORT"
    run python "$HERE/catalogue.py" >>"$DIR/log/sync.log" 2>&1 ||
        die 1 "the services could not be entered in keystone; see $DIR/log/sync.log"
}

start_nova() {
    start nova-conductor "$BIN/nova-conductor" --config-file "$DIR/conf/nova.conf"
    start_scheduler
}

# Requests reach it once it has joined the others; what is asked before is lost.
start_scheduler() {
    local before
    before=$(joined)
    start nova-scheduler "$BIN/nova-scheduler" --config-file "$DIR/conf/nova.conf" \
        --config-file "$DIR/conf/scheduler.conf"
    await nova-scheduler 60 joined_since "$before"
}

joined() {
    grep -sc 'Join ServiceGroup membership' "$DIR/log/nova-scheduler.log" || true
}

joined_since() {
    [ "$(joined)" -gt "${1:-0}" ]
}

# A host can be chosen once placement has its inventory and nova's cells know it.
start_computes() {
    start nova-compute "$BIN/python" "$HERE/computes.py" "$DIR" $((LEAVES * LEAF))
    await nova-compute 300 all_hosts
    sync "$BIN/nova-manage" --config-file "$DIR/conf/nova.conf" cell_v2 discover_hosts
}

all_hosts() {
    local count
    count=$(mariadb --no-defaults --socket="$DIR/sql/socket" --user=root --skip-column-names --execute \
        'SELECT COUNT(DISTINCT resource_provider_id) FROM placement.inventories')
    [ "$count" = $((LEAVES * LEAF)) ]
}

run() {
    (
        set -a
        . "$DIR/env"
        PATH=$BIN:$PATH
        exec "$@"
    )
}
