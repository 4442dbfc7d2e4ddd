# Tandem. `make help` lists the targets. Building and running works from a fresh clone with Go and make alone, except Python
# code inside workflows: its interpreter is fetched once with npm. The tests also want Node 20 with npm and Chromium for the
# pages that people answer on, and PostgreSQL and MariaDB; as root on Debian they install the last three themselves.

GO      ?= go
ADDR    ?= 127.0.0.1:8080
DATA    ?= data
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# How long each fuzz target runs in `make fuzz`, and how long each benchmark in `make bench`.
FUZZTIME  ?= 3s
BENCHTIME ?= 1s
# How long the tests of one package may take. Alone on the machine the longest takes some minutes; beside other work, several times that.
TESTTIME ?= 60m

# Compilers and tests make much garbage and end soon: with more room they collect it less often, which is a seventh of what a compiler does. What is measured, or serves, has its own way.
build staticcheck interpreter plain race race-all deploy-test: export GOGC ?= 400
# With the race detector a byte takes several.
build interpreter plain deploy-test: export GOMEMLIMIT ?= 2GiB
race race-all: export GOMEMLIMIT ?= 1GiB

.DEFAULT_GOAL := help
.PHONY: image deploy-test import-report help build run test test-long fmt lint staticcheck interpreter plain race race-all simulate temporal deliveries cluster year measures fuzz bench figures bench-peers python web web-test web-types web-unit web-e2e

help: ## List the targets
	@echo "Tandem: a durable workflow engine. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

build: python web ## Build the static binary bin/tandem
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/tandem ./cmd/tandem
	@./bin/tandem sandbox prepare || echo "NOTICE: the Python interpreter is not compiled yet; the first Python code waits some seconds for it."

python: ## Fetch the Python interpreter that is embedded into the binary, once
	@./scripts/python_wasm.sh

# The web UI needs npm. A binary without it works, and says so on its first page.
WEBSOURCES = $(shell find web/src web/public -type f -not -name '*.test.*' 2>/dev/null) web/index.html web/vite.config.ts web/tsconfig.json $(wildcard docs/*.md docs/zh/*.md docs/decisions/*.md)
web: ## Build the web UI that is embedded into the binary
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory web/dist/index.html; \
	else echo "NOTICE: npm is not installed: the binary is built WITHOUT the web UI. Install Node 20 with npm and build again."; fi

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

web/src/api/schema.d.ts: docs/openapi.json web/node_modules/.package-lock.json
	cd web && npm run --silent generate
	@touch $@

web/dist/index.html: web/node_modules/.package-lock.json web/src/api/schema.d.ts $(WEBSOURCES)
	cd web && npm run --silent build
	@touch $@

web-test: build web-types web-unit web-e2e ## Check the types of the web UI, run its unit tests, and use it in a real browser (E2E=inbox for those of one file)

web-types: web
	cd web && npm run --silent check

web-unit: web
	cd web && npm run --silent test

web-e2e: build
	cd web && TANDEM_BINARY="$$PWD/../bin/tandem" npm run --silent e2e -- $(E2E)

# The image has the program for Linux, whatever this machine runs. deploy is a module of its own: what it needs is no part of the product.
ARCH ?= $(shell $(GO) env GOARCH)
image: python web ## Build an OCI image without a container engine: bin/tandem-image.tar (ARCH=arm64 for another architecture)
	@mkdir -p bin
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/tandem-linux-$(ARCH) ./cmd/tandem
	@cd deploy && $(GO) run ./image -binary ../bin/tandem-linux-$(ARCH) -arch $(ARCH) -version $(VERSION) -out ../bin/tandem-image.tar -root ../bin/tandem-root.tar

deploy-test: build ## Read the image, the Dockerfile, the compose file and the Kubernetes manifests as those do who use them, and run the program of the image
	cd deploy && $(PLAINLY) TANDEM_BINARY=../../bin/tandem $(GO) test -vet=all ./...

run: build ## Build and start the server with the examples (ADDR=127.0.0.1:8080 DATA=data to choose)
	./bin/tandem serve --addr $(ADDR) --data $(DATA) --workflows examples

# What is built comes first. Then the pages are used in a browser, which waits more than it computes, beside everything else.
test: ## Everything a change must pass: format, lint, tests, those of concurrent code with the race detector. Tells the seconds of each stage
	@MAKE="$(MAKE)" ./scripts/stages.sh fmt web build -- staticcheck plain race deploy-test -- web-types web-unit web-e2e

# What finds seldom something that `make test` does not: for the night, or before a release.
test-long: test ## make test, and what takes hours: every test with the race detector, all hosts on Temporal, a cluster that is killed often, fuzzing, every example in the browser, a year, long simulations
	@MAKE="$(MAKE)" TANDEM_LONG=1 ./scripts/stages.sh race-all temporal cluster fuzz year simulate deliveries web-unit web-e2e

import-report: python ## Try the importers on a directory of files of other systems (DIR=…): imported, valid, run to their end, what became of nodes
	@$(GO) run ./cmd/import-report $(DIR)

fmt: ## Fail if a file is not formatted
	@files="$$(find . -name '*.go' -not -path './.git/*' -not -path '*/node_modules/*' -exec gofmt -l {} +)"; \
	if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:"; echo "$$files"; exit 1; fi

lint: python staticcheck ## go vet and staticcheck
	$(PLAINLY) $(GO) vet ./...

staticcheck: python ## staticcheck alone
	$(PLAINLY) $(GO) tool staticcheck ./...

# Everything that is tested without the race detector is built as the product is, so that nothing is compiled twice: with it come the binary, the pages and the image.
PLAINLY = CGO_ENABLED=0 GOFLAGS="$(shell $(GO) env GOFLAGS) -trimpath"
# The detector watches every test of the packages that start goroutines of their own, they or their tests (scripts/concurrent.sh lists them, TestRaceDetector keeps these lists true),
# but for two sorts. PARTLY: most of their tests do one thing after another, or drive processes, servers and files; all of them run without the detector, which watches those in
# which much happens at once (CROWDED). APART: what they start shares no memory of ours: a server of a test that answers, a copy that is made while another process writes.
# `make race-all` leaves out none of these, nor packages that are only called from many goroutines.
PARTLY  = app server host/temporal sandbox story expr files benchmark builtin/code builtin/file builtin/memory builtin/task
APART   = cmd/tandem backup client doctor human/replies
CROWDED = ^(TestPeopleDesk_ManyAtOnce|TestPeopleHold_(TwoHundredAtOnce|AnswersWhilePaused|Canceled)|TestStream_(Executions|WaitsAndGoesOn|StuckReader|ThousandReaders|WhileItRuns)|TestChannelWebhook_Callback|TestAgentMidTurn_(Cancels|AskerGoes)|TestLocal_(ASecondStart|KeepsOutcomes)|TestInteractionStream|TestLoginLink|TestEdge_|TestEvents_|TestWebSocket|TestThrottle$$|TestBeat_|TestWaking_|TestSweep_|TestOutage_TemporalIsNotThereYet|TestSuite_Crashes|TestPool$$|TestCache_FilledOnce|TestPool_(TimeLimits|ManyCallers|FirstCallers|HostileServers|Changed|Close)|TestHTTP_Transports|TestOAuth$$|TestEval_Concurrent|TestDir_(Write|Append|Partial)|TestMeasure_ReportsEveryWorkload|TestExecuteScript_KillsTheGroup|TestFileDownload_GoesOn|TestImageProcessor$$|TestMemory_ManyAtOnce|TestTask_LeavesOutWhatIsNotThere)
WATCHED = $$(GO="$(GO)" ./scripts/concurrent.sh | grep -v -x -F $(foreach dir,$(PARTLY) $(APART),-e tandem/$(dir)))
# Tests with much work and nothing for the detector to find, in packages that are watched else, and those packages. The host under every blow is the host that the other
# simulations show to the detector; a year in the store is one goroutine, and what kills processes that write into it, or opens old files, is about the files.
PURE    = ^(TestSimulation_CrashAtEveryWrite|TestSimulation_FullAndBrokenDisk|TestCarried_CrashAtEveryWrite|TestYear|TestLoss_|TestMissingDatabase|TestMigrate_KeepsACopy|TestPages_MovedRows|TestUpkeep_LeavesNothing)
PUREIN  = ./host/local ./store/sqlite
# SQLite and its C library are C that was translated into Go: the detector would only slow them down, five times, and finds nothing in them that we could mend. A package that uses
# sync.Map much, as wazero does, cannot be left out: the linker may take its copy of that map's code for all, which tells the detector nothing, and encoding/json is reported then.
# Paths are cut, so that what was compiled for one copy of the sources serves another.
RACE    = -race -trimpath $(foreach from,modernc.org/sqlite/lib modernc.org/libc modernc.org/memory,-gcflags=$(from)=-race=false)
# Much of what tests do is waiting (for a process, a disk, a signal), so more of them run at a time than there are cores. A browser works beside them.
TESTS   = $(GO) test -timeout $(TESTTIME) -p 2 -parallel 4
# What takes longest begins first, so that nobody waits for it alone at the end. The first of them waits more than it computes.
LONGEST = host/temporal app cmd/tandem
# The Python interpreter is compiled first, once and without the detector, with which it would take minutes; all packages share it.
interpreter: python
	@echo "compiling the Python interpreter for the tests, unless it is there"
	@$(PLAINLY) $(GO) test -vet=off -count=1 -timeout $(TESTTIME) -run '^TestPrepare$$' ./sandbox

plain: interpreter ## The tests of all packages, but for those that `make race` watches, without the race detector
	@watched="$(WATCHED)"; \
	echo "$(GO) vet: what is tested with the race detector; the rest is vetted where its tests are built"; \
	$(PLAINLY) $(GO) vet $$watched && \
	$(PLAINLY) $(TESTS) -vet=all $(addprefix tandem/,$(LONGEST)) $$($(GO) list ./... | grep -v -x -F "$$watched") && \
	$(PLAINLY) $(TESTS) -vet=off -run '$(PURE)' $(PUREIN)

# The race detector needs cgo and a C compiler. Without one the tests still run, and say loudly what they lack.
race: interpreter ## The tests of packages that start goroutines, with the race detector where a C compiler exists
	@cc="$$($(GO) env CC)"; \
	if command -v "$${cc%% *}" >/dev/null 2>&1; then \
		CGO_ENABLED=1 $(TESTS) -vet=off $(RACE) -skip '$(PURE)' $(WATCHED) && \
		CGO_ENABLED=1 $(TESTS) -vet=off $(RACE) -run '$(CROWDED)' $(addprefix ./,$(PARTLY)); \
	else \
		echo "NOTICE: no C compiler ($$cc) on this machine: the tests run WITHOUT the race detector."; \
		echo "NOTICE: install one (Debian: apt-get install gcc libc6-dev) to check for data races."; \
		$(PLAINLY) $(TESTS) -vet=off -skip '$(PURE)' $(WATCHED); \
	fi

race-all: interpreter ## All tests with the race detector, app and the command too, which takes more than half an hour
	CGO_ENABLED=1 $(TESTS) -vet=off $(RACE) -skip '^TestStart_Allocations$$' ./...

SIMULATIONS ?= 1000
simulate: python ## Play SIMULATIONS cases made by chance against processes that die by chance; make test plays 24
	CGO_ENABLED=1 TANDEM_SIM=$(SIMULATIONS) $(TESTS) -vet=off $(RACE) -run '^TestSimulation_Random$$' ./host/local

temporal: python ## The suite of hosts on Temporal with crashes and on PostgreSQL for all cases, which takes about ten minutes; make test plays half of the suite and a ninth of the rest
	$(PLAINLY) TANDEM_LONG=1 $(TESTS) -vet=off -count=1 -run '^Test(Suite|Outage|Same|Release)' ./host/temporal

DELIVERIES ?= 10000
deliveries: python ## Send DELIVERIES requests to a webhook from 100 senders and kill the server in the middle; make test sends 400
	$(PLAINLY) TANDEM_DELIVERIES=$(DELIVERIES) $(TESTS) -vet=off -count=1 -run '^TestTriggers_KillNine$$' ./app

ROUNDS ?= 10
cluster: python ## Kill each of two servers and two workers on Temporal ROUNDS times under load; make test kills each once
	$(PLAINLY) TANDEM_TEST_CLUSTER_ROUNDS=$(ROUNDS) $(TESTS) -vet=off -count=1 -v -run '^TestCluster$$/^KillEach$$' ./cmd/tandem

year: ## Let the store work for a simulated year under retention, after which nothing may have grown; make test plays seven months
	$(PLAINLY) TANDEM_YEAR=1 $(TESTS) -vet=off -count=1 -run '^TestYear$$' ./store/sqlite

measures: ## Print what each package measures: lines, names, the longest file, the most branching function, depth
	$(GO) test . -count=1 -run '^TestMeasures$$' -v

FUZZDIRS ?=
fuzz: python ## Run each fuzz target for FUZZTIME (FUZZDIRS=builtin for those of a directory alone)
	@GO="$(GO)" ./scripts/fuzz.sh $(FUZZTIME) $(FUZZDIRS)

bench: python ## Run all benchmarks (BENCHTIME=3s for steadier numbers)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 15m ./...

FIGURES ?=
figures: build ## Measure the figures of docs/scale.md (FIGURES='step api' for some of them); make bench-peers comes before it
	@GO="$(GO)" ./scripts/figures.sh $(FIGURES)

# A module of its own (see bench/README.md). What the product needs changes more often than that module's list, so the
# list is completed in a copy, with the product's checksums.
PEERFLAGS ?=
bench-peers: bench/langgraph/node_modules/.package-lock.json ## Compare with other engines, in turns (PEERFLAGS=-quick for a first look)
	@mkdir -p bin && cp bench/go.mod bin/bench-peers.mod && cat bench/go.sum go.sum | sort -u > bin/bench-peers.sum
	cd bench && $(GO) build -mod=mod -modfile=../bin/bench-peers.mod -o ../bin/bench-peers .
	cd bench && ../bin/bench-peers $(PEERFLAGS)

bench/langgraph/node_modules/.package-lock.json: bench/langgraph/package-lock.json
	cd bench/langgraph && npm ci
	@touch $@
