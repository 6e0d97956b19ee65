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
	"cutroom/shared/app/engines"
	"cutroom/shared/client"
	domain "cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
)

// answered is the part of an answer that identifies a server.
type answered struct {
	status int
	// at is the server's time; zero if the answer has no Date.
	at time.Time
}

// probe sends a server a request. Any answer shows that it is running.
func probe(ctx context.Context, address string) (answered, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answered{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var call *url.Error
		if errors.As(err, &call) {
			err = call.Err
		}
		return answered{}, err
	}
	defer response.Body.Close()
	at, _ := http.ParseTime(response.Header.Get("Date")) // zero without one
	return answered{response.StatusCode, at}, nil
}

// checkEngine checks that the engine answers, and that for live video if it is another.
func checkEngine(ctx context.Context, e examination) []finding {
	choice := engines.Parse(e.settings.Engine)
	var findings []finding
	if !choice.ComfyUI {
		findings = checkServers(ctx, "engine", "CUTROOM_ENGINE", choice)
	}
	if choice.ComfyUI {
		findings = inspectServers(ctx, e)
	}
	if choice.BuiltIn() {
		findings = []finding{{Check: "engine", State: fine, Detail: "the " + choice.Name + " engine is part of this program"}}
	}
	if e.settings.LiveEngine == "" {
		return findings
	}
	live := engines.Parse(e.settings.LiveEngine)
	return append(findings, checkServers(ctx, "live engine", "CUTROOM_LIVE_ENGINE", live)...)
}

// inspectServers checks that ComfyUI servers have the nodes and files of the catalog's models.
func inspectServers(ctx context.Context, e examination) (findings []finding) {
	known, err := e.settings.catalog()
	if err != nil {
		return nil // reported before
	}
	made, err := engines.New(engines.Config{
		Setting: e.settings.Engine, Key: e.settings.EngineKey, Catalog: known, CatalogFile: e.settings.Catalog,
	})
	if err != nil {
		return []finding{{"engine", failing, err.Error(), "Mend the setting, the catalog or the workflow."}}
	}
	for _, found := range engine.InspectedOf(made).Inspect(ctx) {
		switch {
		case found.Err != nil:
			findings = append(findings, finding{"engine", failing, fmt.Sprintf("%s cannot be asked: %v", found.Server, found.Err),
				"Start ComfyUI, or set CUTROOM_ENGINE to a server that runs, or to preview."})
		case len(found.Lacks) == 0:
			findings = append(findings, finding{Check: "engine", State: fine,
				Detail: found.Server + " has all that the catalog's models need"})
		}
		for _, model := range slices.Sorted(maps.Keys(found.Lacks)) {
			findings = append(findings, finding{"engine", warning,
				fmt.Sprintf("%s cannot make %s: it lacks %s", found.Server, model, strings.Join(found.Lacks[model], "; ")),
				"Install it there, or change the workflow."})
		}
	}
	return findings
}

// checkServers checks that the servers of an engine answer, which a setting names.
func checkServers(ctx context.Context, check, setting string, choice engines.Choice) (findings []finding) {
	for _, server := range choice.Servers {
		address := strings.TrimSuffix(server, "/") + "/healthz"
		if choice.OpenAI {
			address = strings.TrimSuffix(server, "/") + "/models"
		}
		found := finding{Check: check, State: fine, Detail: server + " answers"}
		if answer, err := probe(ctx, address); err != nil {
			found.State, found.Detail = failing, fmt.Sprintf("%s does not answer: %v", server, err)
			found.Mend = "Start the engine server, or set " + setting + " to one that runs, or to preview."
		} else if !choice.OpenAI && answer.status != http.StatusOK {
			found.State, found.Detail = failing, fmt.Sprintf("%s answers with status %d", address, answer.status)
			found.Mend = "Look into the log of the engine server: it may still be loading its models."
		}
		findings = append(findings, found)
	}
	return findings
}

// checkUpstreams checks that the gateway's model servers answer and that their keys are set.
func checkUpstreams(ctx context.Context, e examination) []finding {
	catalog, err := e.settings.catalog()
	if err != nil {
		return nil // reported before
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
				continue // its servers have other names
			}
			findings = append(findings, checkUpstream(ctx, row.ID, upstream.URL, upstream.Secret))
		}
	}
	return findings
}

func checkUpstream(ctx context.Context, model, address, secret string) finding {
	if strings.HasPrefix(address, "embedded:") {
		return finding{Check: "upstream", State: fine, Detail: model + " is served by this program"}
	}
	if name, found := strings.CutPrefix(secret, "env:"); found && os.Getenv(name) == "" {
		return finding{"upstream", failing, fmt.Sprintf("the key of %s is missing: %s is not set", model, name),
			"Set " + name + "."}
	}
	if path, found := strings.CutPrefix(secret, "file:"); found {
		if _, err := os.Stat(path); err != nil {
			return finding{"upstream", failing, fmt.Sprintf("the key of %s is missing: %v", model, err),
				"Write the key to that file, or name another in the catalog."}
		}
	}
	if _, err := probe(ctx, strings.TrimSuffix(address, "/")+"/models"); err != nil {
		return finding{"upstream", failing, fmt.Sprintf("%s, which serves %s, does not answer: %v", address, model, err),
			"Start the model server, or mend its URL in the catalog."}
	}
	return finding{Check: "upstream", State: fine, Detail: fmt.Sprintf("%s, which serves %s, answers", address, model)}
}

// checkAWS checks whether this user could deploy.
func checkAWS(ctx context.Context, _ examination) []finding {
	// Outside AWS the metadata service would only time out.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	settings, err := deployer(ctx)
	if err != nil {
		return []finding{{"aws", warning, err.Error(), "Only deploys to AWS and their keys need it."}}
	}
	return []finding{{Check: "aws", State: fine, Detail: "there are credentials, and the region is " + settings.Region}}
}

// maxSkew is how far clocks may differ: client tokens and signed URLs may live for a minute only.
const maxSkew = 30 * time.Second

// checkServer checks that the server of the other commands answers and accepts the key.
func checkServer(ctx context.Context, e examination) []finding {
	server, err := e.session.Server()
	if err != nil {
		return []finding{{"server", failing, err.Error(), ""}}
	}
	began := time.Now()
	answer, err := probe(ctx, server.URL+"/healthz")
	if err != nil {
		if e.session.UsesThisMachine() {
			return []finding{{"server", warning, "no server runs at " + server.URL,
				"Start one with \"cutroom dev\", or set CUTROOM_URL to one that runs elsewhere."}}
		}
		return []finding{{"server", failing, fmt.Sprintf("%s does not answer: %v", server.URL, err),
			"Mend CUTROOM_URL or the profile (\"cutroom login --url URL\"), or look whether the server runs."}}
	}
	findings := []finding{{Check: "server", State: fine, Detail: server.URL + " answers"}}
	if strings.HasPrefix(server.URL, "http://") && !command.IsLocal(server.URL) {
		findings[0].State, findings[0].Detail = warning, server.URL+
			" is called without TLS, so that the key can be read on its way"
		findings[0].Mend = "Use an address that begins with https://."
	}
	if _, err := probe(ctx, server.InferenceURL+"/healthz"); err != nil {
		findings = append(findings, finding{"gateway", failing,
			fmt.Sprintf("%s does not answer: %v", server.InferenceURL, err),
			"Set CUTROOM_INFERENCE_URL to the address of the inference gateway."})
	}
	// The Date header has whole seconds, and the answer took a while.
	skew := answer.at.Sub(began)
	if !answer.at.IsZero() && (skew > maxSkew || skew < -maxSkew-time.Since(began)) {
		findings = append(findings, finding{"clock", warning,
			fmt.Sprintf("this machine's clock and the server's are %s apart", skew.Abs().Round(time.Second)),
			"Let both set their clocks by NTP."})
	}
	return append(findings, checkKey(ctx, e.session, server))
}

func checkKey(ctx context.Context, session *command.Session, server command.Server) finding {
	service, err := session.Client()
	if err != nil {
		return finding{"key", failing, err.Error(), ""}
	}
	defer service.Close()
	switch _, err = service.Quota(ctx); {
	case err == nil:
		return finding{Check: "key", State: fine, Detail: "the server takes the key from " + server.KeyFrom}
	case client.IsStatus(err, http.StatusForbidden):
		return finding{Check: "key", State: warning, Detail: "the key from " + server.KeyFrom +
			" is a client token: not every command works with it"}
	case client.IsStatus(err, http.StatusUnauthorized):
		return finding{"key", failing, "the server does not take the key from " + server.KeyFrom,
			"Run \"cutroom login\", or set CUTROOM_API_KEY."}
	}
	return finding{"key", failing, err.Error(), ""}
}

// checkProfiles checks that other users cannot read the keys of profiles.
func checkProfiles(_ context.Context, e examination) []finding {
	path, err := e.session.ProfilesFile()
	if err != nil {
		return nil // nothing is kept
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []finding{{"profiles", warning, "other users of this machine can read the keys in " + path,
		"Run \"chmod 600 " + path + "\"."}}
}
