# The files of the cloud in $DIR, for cloud.sh. What is not said to be the default is here for a reason, which
# README.md names.

# COUNT consecutive free ports, below those that the kernel gives out itself.
free_ports() {
    "$PYTHON" - "$1" <<'END'
import random, socket, sys
count = int(sys.argv[1])
for base in random.sample(range(10000, 32000 - count), 500):
    try:
        for port in range(base, base + count):
            with socket.socket() as try_it:
                try_it.bind(("127.0.0.1", port))
    except OSError:
        continue
    sys.exit(print(base))
sys.exit(f"there are no {count} consecutive free ports from 10000 to 32000")
END
}

# Whoever may not read $DIR cannot open the socket, which is all that MariaDB listens at.
database() {
    echo "mysql+pymysql://root@localhost/$1?unix_socket=$DIR/sql/socket&charset=utf8"
}

write_configuration() {
    local base
    base=$(free_ports 8) || die 1 "there are no free ports"
    EPMD_PORT=$base DIST_PORT=$((base + 1)) RABBIT_PORT=$((base + 2)) KEYSTONE_PORT=$((base + 3))
    PLACEMENT_PORT=$((base + 4)) GLANCE_PORT=$((base + 5)) NOVA_PORT=$((base + 6)) NEUTRON_PORT=$((base + 7))
    PASSWORD=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    KEYSTONE_URL=http://127.0.0.1:$KEYSTONE_PORT/v3
    write_env >"$DIR/env"
    write_rabbitmq >"$DIR/conf/rabbitmq.conf"
    echo '[].' >"$DIR/conf/plugins"
    write_keystone >"$DIR/conf/keystone.conf"
    write_placement >"$DIR/conf/placement.conf"
    write_glance >"$DIR/conf/glance-api.conf"
    cp "$DIR/venv/etc/glance/glance-api-paste.ini" "$DIR/venv/etc/nova/api-paste.ini" "$DIR/conf/"
    write_nova >"$DIR/conf/nova.conf"
    write_scheduler_stock >"$DIR/conf/scheduler-stock.conf"
    write_scheduler_topolane >"$DIR/conf/scheduler-topolane.conf"
    ln -s scheduler-stock.conf "$DIR/conf/scheduler.conf"
}

write_env() {
    printf '%s=%s\n' OS_AUTH_TYPE password OS_AUTH_URL "$KEYSTONE_URL" OS_USERNAME admin \
        OS_PASSWORD "$PASSWORD" OS_PROJECT_NAME admin OS_USER_DOMAIN_NAME Default \
        OS_PROJECT_DOMAIN_NAME Default OS_REGION_NAME RegionOne LEAVES "$LEAVES" LEAF "$LEAF" \
        PLACEMENT_URL "http://127.0.0.1:$PLACEMENT_PORT" GLANCE_URL "http://127.0.0.1:$GLANCE_PORT" \
        NOVA_URL "http://127.0.0.1:$NOVA_PORT/v2.1" NEUTRON_URL "http://127.0.0.1:$NEUTRON_PORT"
}

write_rabbitmq() {
    cat <<END
listeners.tcp.1 = 127.0.0.1:$RABBIT_PORT
default_user = nova
default_pass = $PASSWORD
disk_free_limit.absolute = 50MB
END
}

write_keystone() {
    cat <<END
[database]
connection = $(database keystone)
[fernet_tokens]
key_repository = $DIR/keystone/fernet
[credential]
key_repository = $DIR/keystone/credential
[identity]
password_hash_rounds = 4
END
}

# The part of every service that asks keystone who asks.
credentials() {
    cat <<END
auth_type = password
auth_url = $KEYSTONE_URL
username = admin
password = $PASSWORD
project_name = admin
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
END
}

write_placement() {
    cat <<END
[placement_database]
connection = $(database placement)
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = $KEYSTONE_URL
$(credentials)
END
}

write_glance() {
    cat <<END
[DEFAULT]
enabled_backends = files:file
[database]
connection = $(database glance)
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = $DIR/images
[paste_deploy]
flavor = keystone
[keystone_authtoken]
www_authenticate_uri = $KEYSTONE_URL
$(credentials)
END
}

write_nova() {
    cat <<END
[DEFAULT]
transport_url = rabbit://nova:$PASSWORD@127.0.0.1:$RABBIT_PORT/
state_path = $DIR/state
my_ip = 127.0.0.1
compute_driver = fake.PredictableNodeUUIDDriver
cpu_allocation_ratio = 1.0
ram_allocation_ratio = 1.0
disk_allocation_ratio = 1.0
reserved_host_memory_mb = 512
report_interval = 30
service_down_time = 300
update_resources_interval = 600
sync_power_state_interval = -1
heal_instance_info_cache_interval = -1
[api_database]
connection = $(database nova_api)
[database]
connection = $(database nova)
[conductor]
workers = 2
[scheduler]
workers = 1
[wsgi]
api_paste_config = $DIR/conf/api-paste.ini
[quota]
instances = -1
cores = -1
ram = -1
server_group_members = -1
[oslo_concurrency]
lock_path = $DIR/state/locks
[vnc]
enabled = false
[keystone_authtoken]
www_authenticate_uri = $KEYSTONE_URL
$(credentials)
[placement]
$(credentials)
[glance]
$(credentials)
[neutron]
$(credentials)
END
}

write_scheduler_stock() {
    cat <<END
[DEFAULT]
debug = true
[filter_scheduler]
weight_classes = nova.scheduler.weights.all_weighers
END
}

write_scheduler_topolane() {
    cat <<END
[DEFAULT]
debug = true
[filter_scheduler]
weight_classes = nova.scheduler.weights.all_weighers,topolane.nova.weigher.TopolaneWeigher
available_filters = nova.scheduler.filters.all_filters
available_filters = topolane.nova.filter.TopolaneFilter
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,TopolaneFilter
END
}
