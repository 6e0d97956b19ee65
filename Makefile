# `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := help

GO ?= go
export GO
# need-… targets report missing tools before anything is built. Targets do not run in parallel, because they share
# folders.
.NOTPARALLEL:
need-%:
	@scripts/preflight.sh $*

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: need-run build ## Serve everything on this machine. Settings are CUTROOM_… variables.
	@scripts/bring-c2pa.sh || true # if the library cannot be installed, the server reports it
	@CUTROOM_RTC_ADDR="$${CUTROOM_RTC_ADDR-auto}" exec bin/cutroom dev

.PHONY: run-llm
run-llm: need-run-llm build ## Serve it with your language model on the processor: GGUF=path/to/model.gguf
	@exec scripts/run-llm.sh "$(GGUF)"

# MODELS is the model map that lists the engine server's pipelines: see docs/gpu.md.
MODELS ?= gpu/models.yaml
.PHONY: run-gpu
run-gpu: need-run-gpu build ## Serve it with editing models on a GPU. DOWNLOAD=yes fetches the models.
	@exec scripts/run-gpu.sh "$(MODELS)"

.PHONY: images
images: need-images ## Build the images with Docker: IMAGES="server worker media realtime engine" ARCHITECTURE=arm64
	@scripts/images.sh $(IMAGES)

.PHONY: pin-images
pin-images: need-pin-images ## Update the digests of the base images in scripts/base-images.txt from their registries.
	@scripts/base-images.sh --pin

.PHONY: test-docker
test-docker: need-test-docker ## Test the programs in containers. A Docker engine is installed and started if needed.
	@scripts/test-docker.sh

.PHONY: build
build: need-build ## Build bin/cutroom.
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -o bin/cutroom ./cmd/cutroom

# To generate clients for a deployment with custom models, set DOCUMENT=https://media.example.com/openapi.json.
.PHONY: clients
clients: need-clients ## Build the client packages for Python and TypeScript in bin/clients. DOCUMENT=URL or path
	@scripts/clients.sh bin/clients $(DOCUMENT)

.PHONY: check
check: need-check ## Run the checks for every change: the linters and the quick tests.
	@scripts/check.sh

.PHONY: test
test: need-test ## Run all tests. PACKAGES="./shared/domain/job …" runs only these.
	@scripts/test.sh

.PHONY: test-update
test-update: need-test-update ## Update a deployment of an earlier version in the local AWS while jobs run: FROM=v0.1.0
	@scripts/test-update.sh $(FROM)

.PHONY: test-bare
test-bare: need-test-bare ## Test make run and make test on a minimal Debian, as root: SUITE=trixie
	@scripts/test-bare.sh

.PHONY: audit
audit: need-audit ## Check the dependencies for known vulnerabilities.
	@scripts/audit.sh

.PHONY: lint
lint: need-lint ## Lint Go, shell scripts, JavaScript, Dockerfiles and Python.
	@scripts/lint.sh

.PHONY: licenses
licenses: need-licenses ## Write docs/third-party.tsv: the contents of programs and images, and their licenses.
	@scripts/licenses.sh

.PHONY: sbom
sbom: need-sbom ## Write SBOMs of the programs and the engine server to bin/sbom. IMAGES="…" adds images' packages.
	@scripts/sbom.sh bin/sbom $(IMAGES)

GORELEASER = $(CURDIR)/.tools/release/goreleaser
.PHONY: release-check release
release-check: need-release-check $(GORELEASER) ## Make all files of a release in bin/release without publishing them.
	@$(GORELEASER) check --quiet
	@$(GORELEASER) release --snapshot --clean
release: need-release $(GORELEASER) ## Publish the release of the current tag as a draft. CI runs it.
	@$(GORELEASER) release --clean
$(GORELEASER):
	@GOBIN=$(@D) $(GO) install github.com/goreleaser/goreleaser/v2@v2.14.3

.PHONY: race
race: need-race ## Run all Go tests except the deployment's under the race detector. This takes long.
	@scripts/install-test-tools.sh
	@$(GO) test -race -p 4 -timeout 20m $$($(GO) list ./... | grep -v '^cutroom/infra')

.PHONY: soak
soak: need-soak ## Load the server in every way, and check for leaks and losses: MINUTES=10 SEED=1 FILES=1000000
	@$(GO) run ./bench/soak -minutes $(or $(MINUTES),10) -seed $(or $(SEED),1) -files $(or $(FILES),1000000)

.PHONY: scale
scale: need-scale ## Simulate 1,000 to 10,000,000 jobs a day in AWS: SIZES=1e3,1e6 SEED=1
	@$(GO) run ./bench/scale $(if $(SIZES),-sizes $(SIZES)) -seed $(or $(SEED),1)

.PHONY: fuzz
fuzz: need-fuzz ## Run every fuzz target beyond its corpus: RUNS=50000 of each.
	@RUNS=$(or $(RUNS),50000) scripts/fuzz.sh

.PHONY: test-llm
test-llm: need-test-llm ## Test the gateway with llama.cpp's server and the official clients for Python.
	@scripts/install-llm.sh
	@scripts/install-python.sh .tools/python scripts/requirements.txt
	@$(GO) test -count=1 -tags llm -run 'TestGatewayMatchesModelServer' ./cmd/cutroom

.PHONY: test-gpu
test-gpu: need-test-gpu build ## Test the engine server with tiny models, on the processor. PyTorch is installed first.
	@scripts/install-gpu.sh
	@scripts/test-engine.sh .tools/gpu
	@$(GO) test -count=1 -tags gpu -run 'TestEngineProgram' ./shared/engine/engineserver ./cmd/cutroom

# COMFYUI_HOME is ComfyUI's folder: tests start it with tiny checkpoints, using COMFYUI_PYTHON. Without it, only the
# tests that need no checkpoints run, against the running server at the URL COMFYUI.
COMFYUI_HOME ?=
COMFYUI_PYTHON ?= python3
COMFYUI ?= http://127.0.0.1:8188
.PHONY: test-comfyui
test-comfyui: need-test-comfyui build ## Test the engine with ComfyUI: COMFYUI_HOME=its/folder, or COMFYUI=http://127.0.0.1:8188
ifeq ($(COMFYUI_HOME),)
	@CUTROOM_TEST_COMFYUI=$(COMFYUI) $(GO) test -count=1 -tags comfyui -run '^TestProgram' ./shared/engine/comfyui
else
	@CUTROOM_TEST_COMFYUI_HOME=$(abspath $(COMFYUI_HOME)) CUTROOM_TEST_COMFYUI_PYTHON=$(shell command -v $(COMFYUI_PYTHON)) \
		$(GO) test -count=1 -p 1 -timeout 30m -tags comfyui -run '^TestProgram' ./shared/engine/comfyui ./cmd/cutroom
endif

.PHONY: bench-gpu
bench-gpu: need-bench-gpu build ## Measure the engine server that make run-gpu has started.
	@scripts/install-gpu.sh
	@cd gpu && ../.tools/gpu/bin/python -m bench $(BENCH)

.PHONY: bench
bench: need-bench ## Print the benchmarks, each with its floor.
	@[ -x .tools/python/bin/python ] || scripts/install-test-tools.sh
	@$(GO) test -count=1 -tags nginx -run TestNginxServes ./bench
	@$(GO) run ./bench

# CONTEXT has options for the deployment, such as CONTEXT="-c stage=test -c arch=x86_64": see docs/deploy-options.md.
# These targets are shorthands: `npm ci` and then `npx cdk deploy -c stage=test` do the same.
CONTEXT ?=
CDK_OUTDIR ?= cdk.out
# STACKS names the stacks to deploy, such as STACKS=Cutroom-dev-gpu. The default is all.
STACKS ?= --all
CDK = .tools/cdk/node_modules/.bin/cdk

.PHONY: cdk
cdk:
	@scripts/install-cdk.sh

.PHONY: bootstrap
bootstrap: need-bootstrap cdk ## Prepare an account and region for deployments, once.
	@$(CDK) bootstrap --output $(CDK_OUTDIR) $(CONTEXT)
	@$(GO) run ./infra/check -before -- $(CONTEXT) || true # creates the role of ECS; raising a quota may take days

.PHONY: synth
synth: need-synth cdk ## Write the templates of the deployment. CONTEXT="-c …" sets the options.
	@$(CDK) synth --quiet --output $(CDK_OUTDIR) $(CONTEXT)

.PHONY: diff
diff: need-diff cdk ## Show how a deployment would change. CONTEXT="-c stage=…" names the stage.
	@$(CDK) diff --output $(CDK_OUTDIR) $(CONTEXT)

.PHONY: deploy
deploy: not-data-alone need-deploy build cdk ## Deploy to AWS. CONTEXT="-c stage=…" names the stage. PREFLIGHT=off skips the check of quotas.
	@[ "$(PREFLIGHT)" = off ] || $(GO) run ./infra/check -before -- $(CONTEXT)
	@$(CDK) deploy --output $(CDK_OUTDIR) $(CONTEXT) $(STACKS)

# Apply only to the named stacks. Otherwise, with gpu=true, CDK would include the service's stack, because the GPU
# stack depends on it.
EXCLUSIVELY = $(if $(filter --all,$(STACKS)),,--exclusively)
# Rejects the option only=data, which would remove everything except the data.
.PHONY: not-data-alone
not-data-alone:
	@for word in $(CONTEXT); do case "$$word" in *only=data) echo "only=data is for make import." >&2; exit 1 ;; esac; done

# Imports the resources that remain after the stack of a protected stage was deleted: see docs/runbook.md.
.PHONY: import
import: need-import cdk ## Import the remaining resources of a protected stage: MAPPING=mapping.json
	@$(CDK) import --output $(CDK_OUTDIR) $(CONTEXT) --resource-mapping $(MAPPING)

.PHONY: check-deploy
check-deploy: need-check-deploy ## Check a deployment from outside. CONTEXT="-c stage=…"; CHECK="--receiver=URL" and other flags.
	@$(GO) run ./infra/check $(CHECK) -- $(CONTEXT)

# Rejects the stage prod. The shell removes quotes from CONTEXT here in the same way as for CDK, so quotes cannot hide
# the name.
.PHONY: destroy not-prod
not-prod:
	@for word in $(CONTEXT); do case "$$word" in *stage=prod) echo "make does not destroy prod." >&2; exit 1 ;; esac; done
# Only infra/empty asks for confirmation. If CDK asked a second question, a "no" would leave a stack without its data.
# CDK asks only if infra/empty has not run.
EMPTIED = $(filter-out %-gpu,$(STACKS))
destroy: not-prod need-destroy cdk ## Delete a deployment with its data, but never prod.
	$(if $(EMPTIED),@$(GO) run ./infra/empty $(CONTEXT))
	@$(CDK) destroy --output $(CDK_OUTDIR) $(if $(EMPTIED),--force) $(CONTEXT) $(EXCLUSIVELY) $(STACKS)

# These targets run a deployment on this machine, with a local AWS and with the functions in Docker, started by SAM.
# Settings are STAGE, LOCAL_AWS_PORT, SAM_PORT and API: see docs/local-aws.md.
.PHONY: local-aws local-aws-stop sam-api sam-lambda sam-invoke
local-aws: need-local-aws ## Deploy to a local AWS on this machine, with a worker. STAGE=dev
	@scripts/local-aws.sh start
local-aws-stop: ## Stop the local AWS. Its data is lost.
	@scripts/local-aws.sh stop
sam-api: need-sam-api ## Serve an API from the functions in Docker, by SAM: API=media or inference
	@exec scripts/sam.sh api
sam-lambda: need-sam-lambda ## Serve Lambda's Invoke of the functions in Docker, by SAM, to the AWS CLI and SDKs.
	@exec scripts/sam.sh lambda
sam-invoke: need-sam-invoke ## Invoke a function in Docker: FUNCTION=files EVENT=events/files/list.json
	@exec scripts/sam.sh invoke "$(FUNCTION)" "$(EVENT)"

.PHONY: clean
clean: ## Delete build outputs. Data (.cutroom) stays.
	@rm -rf bin cdk.out
