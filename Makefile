# `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := help

GO ?= go

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: go ffmpeg
go:
	@command -v $(GO) >/dev/null 2>&1 || { echo "Go is missing: install Go 1.26 or later (https://go.dev/dl) and try again." >&2; exit 1; }
ffmpeg:
	@scripts/install-ffmpeg.sh

.PHONY: run
run: build ffmpeg ## Serve everything on this machine. Settings are CUTROOM_… variables.
	@exec bin/cutroom dev

.PHONY: build
build: go ## Build bin/cutroom.
	@mkdir -p bin
	@$(GO) build -o bin/cutroom ./cmd/cutroom

.PHONY: test
test: go ffmpeg ## Check the code and run all tests.
	@scripts/test.sh

.PHONY: bench
bench: go ffmpeg ## Print the benchmarks, each beside its floor.
	@$(GO) run ./bench

.PHONY: clean
clean: ## Delete what was built. Data (.cutroom) stays.
	@rm -rf bin
