# The Debian packages of a cloud and its Python environment, for cloud.sh.

PYTHON=${PYTHON:-python3}

missing_packages() {
    local missing=()
    [ -x /usr/sbin/mariadbd ] || missing+=(mariadb-server-core)
    [ -x /usr/bin/mariadb-admin ] && [ -x /usr/bin/mariadb ] || missing+=(mariadb-client)
    [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
    command -v "$PYTHON" >/dev/null || missing+=(python3)
    "$PYTHON" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    echo "${missing[*]}"
}

check() {
    local missing
    missing=$(missing_packages)
    [ -z "$missing" ] || die 3 "a cloud needs the Debian packages $missing"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die 3 "a cloud needs Python 3.11 or newer; name it with PYTHON=..."
    [ -n "$(wheel)" ] || die 3 "a cloud needs Topolane as a package: run 'make wheel' before"
}

# Debian starts and enables a package's services when it is installed; policy-rc.d is its way to forbid the
# first. What was there before, a service that runs or a policy, is left as it was.
install() {
    local missing policy=/usr/sbin/policy-rc.d unit
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || die 3 "a cloud needs the Debian packages $missing, and root to install them"
    if [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        (umask 022 && printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy)
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        die 3 "$missing could not be installed"
    for unit in rabbitmq-server.service epmd.socket epmd.service; do
        [[ $missing != *rabbitmq-server* ]] || ! command -v systemctl >/dev/null ||
            systemctl disable --quiet "$unit" 2>/dev/null || true
    done
}

# The pins are all that OpenStack asks for; those of Topolane are in its pyproject.toml.
environment_of_python() {
    local pins
    pins=$(cat "$HERE/requirements.txt" && "$PYTHON" "$REPOSITORY/tools/requirements.py" nova)
    if [ "$(cat "$DIR/venv/.installed" 2>/dev/null)" != "$pins" ]; then
        rm -rf "$DIR/venv"
        "$PYTHON" -m venv "$DIR/venv"
        echo "$pins" >"$DIR/venv/pins.txt"
        pip_install -r "$DIR/venv/pins.txt"
        mv "$DIR/venv/pins.txt" "$DIR/venv/.installed"
    fi
    pip_install --force-reinstall --no-deps "$(wheel)"
}

pip_install() {
    "$BIN/pip" install --quiet --disable-pip-version-check "$@" >>"$DIR/log/pip.log" 2>&1 ||
        die 1 "pip could not install what the cloud needs; see $DIR/log/pip.log"
}

# What `make wheel` built last.
wheel() {
    ls -t "$REPOSITORY"/dist/topolane-*.whl 2>/dev/null | head -n 1
}
