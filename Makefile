# Tandem. `make help` lists the targets. Building and running works from a fresh clone with Go and make alone, except Python
# code inside workflows: its interpreter is fetched once with npm. The tests also want Node 20 with npm and Chromium for the
# pages that people answer on, and PostgreSQL and MariaDB; as root on Debian they install the last three themselves.

GO      ?= go
ADDR    ?= 127.0.0.1:8080
DATA    ?= data
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# How long each fuzz target runs in `make test`, and how long each benchmark in `make bench`.
FUZZTIME  ?= 3s
BENCHTIME ?= 1s
# How long the tests of one package may take. Alone on the machine the longest takes some minutes; beside other work, several times that.
TESTTIME ?= 60m

.DEFAULT_GOAL := help
.PHONY: image deploy-test import-report help build run test fmt lint staticcheck race race-app simulate deliveries year measures fuzz bench bench-peers python web web-test

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

web-test: web ## Check the types of the web UI, run its unit tests, and use it in a real browser (E2E=inbox for those of one file)
	cd web && npm run --silent check && npm run --silent test && npm run --silent e2e -- $(E2E)

# The image has the program for Linux, whatever this machine runs. deploy is a module of its own: what it needs is no part of the product.
ARCH ?= $(shell $(GO) env GOARCH)
image: python web ## Build an OCI image without a container engine: bin/tandem-image.tar (ARCH=arm64 for another architecture)
	@mkdir -p bin
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/tandem-linux-$(ARCH) ./cmd/tandem
	@cd deploy && $(GO) run ./image -binary ../bin/tandem-linux-$(ARCH) -arch $(ARCH) -version $(VERSION) -out ../bin/tandem-image.tar -root ../bin/tandem-root.tar

deploy-test: build ## Read the image, the Dockerfile, the compose file and the Kubernetes manifests as those do who use them, and run the program of the image
	cd deploy && TANDEM_BINARY=../../bin/tandem $(GO) test -vet=all ./...

run: build ## Build and start the server with the examples (ADDR=127.0.0.1:8080 DATA=data to choose)
	./bin/tandem serve --addr $(ADDR) --data $(DATA) --workflows examples

test: fmt staticcheck web-test deploy-test race fuzz ## Everything a change must pass: format, lint, tests with the race detector, short fuzzing

import-report: python ## Try the importers on a directory of files of other systems (DIR=…): imported, valid, run to their end, what became of nodes
	@$(GO) run ./cmd/import-report $(DIR)

fmt: ## Fail if a file is not formatted
	@files="$$(find . -name '*.go' -not -path './.git/*' -not -path '*/node_modules/*' -exec gofmt -l {} +)"; \
	if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:"; echo "$$files"; exit 1; fi

# `make test` has no use for a run of go vet of its own: all its checks are made where the tests are built, which costs little more than building them.
lint: python staticcheck ## go vet and staticcheck
	$(GO) vet ./...

staticcheck: python ## staticcheck alone
	$(GO) tool staticcheck ./...

# The race detector needs cgo and a C compiler. Without one the tests still run, and say loudly what they lack. Tests that start
# processes again and again (scripts, a terminal) go without it: it would mostly slow down starting. Package app puts everything
# together, and its tests take several times as long with the detector: here it watches those in which many do things at once,
# and all of them with `make race-app`.
PLAIN   = ^(TestScripts|TestServe|TestMCPServe|TestTerminal|TestDocs|TestDocs_Examples)$$
# Reading thousands of replies is one pure function at work: there is nothing for the detector to find. What runs Python in the sandbox spends its
# time in a process of its own, which takes six times as long with the detector; the pool that hands out those processes is tested with it.
PURE    = ^(TestClassify|TestReadJudgement|TestCache_|TestPython|TestPrinted|TestGuestMemory_Restore|TestRepeatable|TestReply_Hostile)
CROWDED = ^(TestPeopleDesk|TestPeopleHold|TestStream_|TestChannelWebhook|TestAgentMidTurn|TestLocal_)
# Pure packages start no goroutine, and neither do the tests of these: there is nothing for the detector to find. TestRaceDetector keeps the list true.
ALONE   = ^tandem(/(fault|payload|text|hypertext|human/prose|human/form|workflow|workflow/dominance|workflow/mermaid|dataflow|dataflow/editing|engine|agent))?$$
# SQLite and its C library are C that was translated into Go: the detector would only slow them down, five times, and finds nothing in them that we could mend.
RACE    = -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -gcflags=modernc.org/memory=-race=false
# The detector makes pools of memory forget things by chance, so allocations are counted without it.
COUNTED = ^TestStart_Allocations$$
# Much of what tests do is waiting (for a process, a disk, a signal), so more of them run at a time than there are cores.
TESTS   = $(GO) test -vet=all -timeout $(TESTTIME) -p 3 -parallel 4
# The Python interpreter is compiled first, once and without the detector, with which it would take minutes; all packages share it.
race: python ## All tests, with the race detector where a C compiler exists
	@echo "compiling the Python interpreter for the tests, unless it is there"
	@$(GO) test -count=1 -timeout $(TESTTIME) -run '^TestPrepare$$' ./sandbox
	@cc="$$($(GO) env CC)"; \
	if command -v "$${cc%% *}" >/dev/null 2>&1; then \
		echo "$(GO) test -race: all but app, then what is crowded in app; without it: app, and what starts many processes"; \
		CGO_ENABLED=1 $(TESTS) $(RACE) -skip '$(COUNTED)' $$($(GO) list ./... | grep -v -E -e '/app$$|/human/replies$$|/sandbox$$|/cmd/' -e '$(ALONE)') && \
		$(TESTS) $$($(GO) list ./... | grep -E '$(ALONE)') && \
		CGO_ENABLED=1 $(TESTS) $(RACE) -skip '$(PURE)' ./human/replies ./sandbox && \
		CGO_ENABLED=1 $(TESTS) $(RACE) -skip '$(PLAIN)' ./cmd/... && \
		CGO_ENABLED=1 $(TESTS) $(RACE) -run '$(CROWDED)' ./app && \
		$(TESTS) ./app && $(TESTS) -run '$(PLAIN)' ./cmd/... && $(TESTS) -run '$(PURE)' ./human/replies ./sandbox && \
		$(TESTS) -run '$(COUNTED)' ./benchmark; \
	else \
		echo "NOTICE: no C compiler ($$cc) on this machine: the tests run WITHOUT the race detector."; \
		echo "NOTICE: install one (Debian: apt-get install gcc libc6-dev) to check for data races."; \
		CGO_ENABLED=0 $(TESTS) ./...; \
	fi

race-app: python ## All tests of package app with the race detector, which takes about ten minutes
	CGO_ENABLED=1 $(TESTS) $(RACE) ./app

SIMULATIONS ?= 1000
simulate: python ## Play SIMULATIONS cases made by chance against processes that die by chance; make test plays 24
	CGO_ENABLED=1 TANDEM_SIM=$(SIMULATIONS) $(TESTS) $(RACE) -run '^TestSimulation_Random$$' ./host/local

DELIVERIES ?= 10000
deliveries: python ## Send DELIVERIES requests to a webhook from 100 senders and kill the server in the middle; make test sends 400
	TANDEM_DELIVERIES=$(DELIVERIES) $(TESTS) -count=1 -run '^TestTriggers_KillNine$$' ./app

year: ## Let the store work for a simulated year under retention, after which nothing may have grown; make test plays seven months
	TANDEM_YEAR=1 $(TESTS) -count=1 -run '^TestYear$$' ./store/sqlite

measures: ## Print what each package measures: lines, names, the longest file, the most branching function, depth
	$(GO) test . -count=1 -run '^TestMeasures$$' -v

FUZZDIRS ?=
fuzz: python ## Run each fuzz target for FUZZTIME (FUZZDIRS=builtin for those of a directory alone)
	@GO="$(GO)" ./scripts/fuzz.sh $(FUZZTIME) $(FUZZDIRS)

bench: python ## Run all benchmarks (BENCHTIME=3s for steadier numbers)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 15m ./...

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
