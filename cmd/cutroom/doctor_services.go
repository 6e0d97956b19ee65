package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/engineconfig"
	"cutroom/shared/client"
	domain "cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
)

// probe sends a request to a server. Any response shows that the server is running.
func probe(ctx context.Context, address string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var call *url.Error
		if errors.As(err, &call) {
			err = call.Err
		}
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

func checkEngine(ctx context.Context, e examination) []finding {
	choice := engineconfig.Parse(e.settings.Engine)
	var findings []finding
	if !choice.ComfyUI {
		findings = checkServers(ctx, "engine", "CUTROOM_ENGINE", choice)
	}
	if choice.ComfyUI {
		findings = inspectServers(ctx, e)
	}
	if choice.BuiltIn() {
		findings = []finding{{Check: "engine", State: fine, Detail: "the " + choice.Name + " engine is built in"}}
	}
	if e.settings.LiveEngine == "" {
		return findings
	}
	live := engineconfig.Parse(e.settings.LiveEngine)
	return append(findings, checkServers(ctx, "live engine", "CUTROOM_LIVE_ENGINE", live)...)
}

func inspectServers(ctx context.Context, e examination) (findings []finding) {
	known, err := e.settings.catalog()
	if err != nil {
		return nil // checkFFmpeg reports the problem
	}
	made, err := engineconfig.New(engineconfig.Config{
		Setting: e.settings.Engine, Key: e.settings.EngineKey, Catalog: known, CatalogFile: e.settings.Catalog,
	})
	if err != nil {
		return []finding{{"engine", failing, err.Error(), "Correct the setting, the catalog or the workflow."}}
	}
	for _, found := range engine.InspectedOf(made).Inspect(ctx) {
		switch {
		case found.Err != nil:
			findings = append(findings, finding{"engine", failing, fmt.Sprintf("cannot query %s: %v", found.Server, found.Err),
				"Start ComfyUI, or set CUTROOM_ENGINE to a running server or to preview."})
		case len(found.Lacks) == 0:
			findings = append(findings, finding{Check: "engine", State: fine,
				Detail: found.Server + " has all nodes and files that the catalog's models need"})
		}
		if len(found.Lacks) > 0 {
			findings = append(findings, finding{"engine", warning, lackList(found),
				"Install the missing items there, or correct the workflow."})
		}
	}
	return findings
}

// lackList lists each item that a server lacks once, with the models that need it.
func lackList(found engine.Inspection) string {
	models := map[string][]string{}
	for _, model := range slices.Sorted(maps.Keys(found.Lacks)) {
		for _, lack := range found.Lacks[model] {
			models[lack] = append(models[lack], model)
		}
	}
	lines := []string{found.Server + " lacks:"}
	for _, lack := range slices.Sorted(maps.Keys(models)) {
		lines = append(lines, fmt.Sprintf("%s (for %s)", lack, strings.Join(models[lack], ", ")))
	}
	return strings.Join(lines, "\n")
}

// checkServers checks that an engine's servers respond. setting is the name of the setting that lists them.
func checkServers(ctx context.Context, check, setting string, choice engineconfig.Choice) (findings []finding) {
	for _, server := range choice.Servers {
		address := strings.TrimSuffix(server, "/") + "/healthz"
		if choice.OpenAI {
			address = strings.TrimSuffix(server, "/") + "/models"
		}
		found := finding{Check: check, State: fine, Detail: server + " answers"}
		if status, err := probe(ctx, address); err != nil {
			found.State, found.Detail = failing, fmt.Sprintf("%s does not respond: %v", server, err)
			found.Mend = "Start the engine server, or set " + setting + " to a running server or to preview."
		} else if !choice.OpenAI && status != http.StatusOK {
			found.State, found.Detail = failing, fmt.Sprintf("%s responds with status %d", address, status)
			found.Mend = "Check the log of the engine server; it may still be loading its models."
		} else if lacks := missingWeights(ctx, address); len(lacks.Missing) > 0 && !choice.OpenAI {
			found.State, found.Detail = failing, server+" lacks files:\n"+strings.Join(lacks.Missing, "\n")
			found.Mend = "Fetch them: " + lacks.Fetch
		}
		findings = append(findings, found)
	}
	return findings
}

type lacks struct {
	Missing []string `json:"missing"`
	Fetch   string   `json:"fetch"`
}

// missingWeights asks an engine server which files of its weights are missing. Other servers report none.
func missingWeights(ctx context.Context, address string) (found lacks) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return found
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return found
	}
	defer response.Body.Close()
	if boundedjson.Read(response.Body, 1<<20, 10_000, &found) != nil {
		return lacks{}
	}
	return found
}

func checkUpstreams(ctx context.Context, e examination) []finding {
	catalog, err := e.settings.catalog()
	if err != nil {
		return nil // checkFFmpeg reports the problem
	}
	var findings []finding
	seen := map[string]bool{}
	for _, row := range catalog.InferenceModels() {
		for _, upstream := range row.Upstreams {
			if seen[upstream.URL+upstream.Secret] {
				continue
			}
			seen[upstream.URL+upstream.Secret] = true
			if upstream.Discovery == domain.ByService {
				continue // the servers' addresses come from SRV records
			}
			findings = append(findings, checkUpstream(ctx, row.ID, upstream.URL, upstream.Secret))
		}
	}
	return findings
}

func checkUpstream(ctx context.Context, model, address, secret string) finding {
	if strings.HasPrefix(address, "embedded:") {
		return finding{Check: "upstream", State: fine, Detail: model + " is built in"}
	}
	if name, found := strings.CutPrefix(secret, "env:"); found && os.Getenv(name) == "" {
		return finding{"upstream", failing, fmt.Sprintf("the key for %s is missing: %s is not set", model, name),
			"Set " + name + "."}
	}
	if path, found := strings.CutPrefix(secret, "file:"); found {
		if _, err := os.Stat(path); err != nil {
			return finding{"upstream", failing, fmt.Sprintf("the key for %s is missing: %v", model, err),
				"Write the key to that file, or name another file in the catalog."}
		}
	}
	if _, err := probe(ctx, strings.TrimSuffix(address, "/")+"/models"); err != nil {
		return finding{"upstream", failing, fmt.Sprintf("%s, which serves %s, does not respond: %v", address, model, err),
			"Start the model server, or correct its URL in the catalog."}
	}
	return finding{Check: "upstream", State: fine, Detail: fmt.Sprintf("%s, which serves %s, responds", address, model)}
}

// checkServer checks that the server used by the other commands responds and accepts the key.
func checkServer(ctx context.Context, e examination) []finding {
	server, err := e.invocation.Server()
	if err != nil {
		return []finding{{"server", failing, err.Error(), ""}}
	}
	if _, err := probe(ctx, server.URL+"/healthz"); err != nil {
		if e.invocation.UsesThisMachine() {
			return []finding{{"server", warning, "no server runs at " + server.URL,
				"Start one with \"cutroom dev\", or set CUTROOM_URL to a running server."}}
		}
		return []finding{{"server", failing, fmt.Sprintf("%s does not respond: %v", server.URL, err),
			"Correct CUTROOM_URL or the profile (\"cutroom login --url URL\"), or check that the server runs."}}
	}
	findings := []finding{{Check: "server", State: fine, Detail: server.URL + " responds"}}
	if strings.HasPrefix(server.URL, "http://") && !command.IsLocal(server.URL) {
		findings[0].State, findings[0].Detail = warning, server.URL+
			" is called without TLS, which exposes the key on the network"
		findings[0].Mend = "Use an address that begins with https://."
	}
	if _, err := probe(ctx, server.InferenceURL+"/healthz"); err != nil {
		findings = append(findings, finding{"gateway", failing,
			fmt.Sprintf("%s does not respond: %v", server.InferenceURL, err),
			"Set CUTROOM_INFERENCE_URL to the address of the inference gateway."})
	}
	return append(findings, checkKey(ctx, e.invocation, server))
}

func checkKey(ctx context.Context, invocation *command.Invocation, server command.Server) finding {
	service, err := invocation.Client()
	if err != nil {
		return finding{"key", failing, err.Error(), ""}
	}
	defer service.Close()
	switch _, err = service.Quota(ctx); {
	case err == nil:
		return finding{Check: "key", State: fine, Detail: "the server accepts the key from " + server.KeyFrom}
	case client.IsStatus(err, http.StatusForbidden):
		return finding{Check: "key", State: warning, Detail: "the key from " + server.KeyFrom +
			" is a client token, which does not work with every command"}
	case client.IsStatus(err, http.StatusUnauthorized):
		return finding{"key", failing, "the server rejects the key from " + server.KeyFrom,
			"Run \"cutroom login\", or set CUTROOM_API_KEY."}
	}
	return finding{"key", failing, err.Error(), ""}
}
