package comfyui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
)

// maxReason limits text from a server in the log, in code points.
const maxReason = 300

// explain converts the error of a run. ctx is the caller's context, and within is the run's context.
func explain(ctx, within context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch cause := context.Cause(within); {
	case errors.Is(cause, errSilent), errors.Is(cause, errStalled):
		return failed("The engine stopped responding.", true, fmt.Errorf("comfyui: %w", cause))
	}
	var known *engine.Error
	var nonsense *nonsenseError
	var status *statusError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &nonsense):
		return garbled(fmt.Errorf("comfyui: %w", err))
	case errors.As(err, &status):
		// A rejection is permanent unless it is due to a server failure.
		again := status.status >= 500 || status.status == http.StatusTooManyRequests
		return failed("The engine rejected the edit.", again, fmt.Errorf("comfyui: %w", err))
	}
	return failed("The engine stopped during the edit.", true, fmt.Errorf("comfyui: %w", err))
}

func (r *run) invalid(refused *statusError) error {
	var reported struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
		Nodes map[string]struct {
			Class  string `json:"class_type"`
			Errors []struct {
				Type string `json:"type"`
				Info struct {
					Input string `json:"input_name"`
				} `json:"extra_info"`
			} `json:"errors"`
		} `json:"node_errors"`
	}
	// Do not log the values, because they include the prompt.
	again := false
	var reasons []string
	if boundedjson.Unmarshal(refused.body, maxValues, &reported) == nil {
		reasons = append(reasons, reported.Error.Type)
		for _, id := range slices.Sorted(maps.Keys(reported.Nodes)) {
			for _, e := range reported.Nodes[id].Errors {
				reasons = append(reasons, fmt.Sprintf("%s of %q of node %s (%s)", e.Type, e.Info.Input, id, reported.Nodes[id].Class))
				// An uploaded file may be missing because the server has restarted, so a retry may succeed.
				at := catalog.Place{Node: id, Input: e.Info.Input}
				again = again || slices.Contains(r.workflow.Data, at) || slices.Contains(r.workflow.Reference, at)
			}
		}
	}
	return failed("The engine rejected the edit.", again,
		fmt.Errorf("comfyui: %w: %s", refused, engine.OneLine(strings.Join(reasons, "; "), maxReason)))
}

func (d *record) failure(prompt string) error {
	if d.Status == nil || d.Status.Said != "error" {
		return nil
	}
	for _, message := range d.Status.Messages {
		var name string
		var data struct {
			Class   string `json:"node_type"`
			Type    string `json:"exception_type"`
			Message string `json:"exception_message"`
		}
		if len(message) < 2 || json.Unmarshal(message[0], &name) != nil || json.Unmarshal(message[1], &data) != nil {
			continue
		}
		switch name {
		case "execution_interrupted":
			return failed("The edit was interrupted on the engine.", true, errors.New("comfyui: the run was interrupted"))
		case "execution_error":
			reason := fmt.Sprintf("%s in %s: %s", data.Type, data.Class, data.Message)
			short := outOfMemory(data.Type, data.Message)
			if prompt != "" && strings.Contains(reason, prompt) {
				reason = "a message that contains the prompt"
			}
			reason = engine.OneLine(reason, maxReason)
			if short {
				return failed("The engine ran out of memory.", true, fmt.Errorf("comfyui: %s", reason))
			}
			return failed(job.EngineFailedMessage, true, fmt.Errorf("comfyui: %s", reason))
		}
	}
	return failed(job.EngineFailedMessage, true, errors.New("comfyui: the run failed without a reason"))
}

// GPU out-of-memory exceptions usually have their own type. CPU out-of-memory exceptions do not.
func outOfMemory(kind, message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(kind, "OutOfMemory") || slices.ContainsFunc(
		[]string{"out of memory", "can't allocate memory", "not enough memory"},
		func(words string) bool { return strings.Contains(message, words) })
}

type file struct {
	Name      string `json:"filename"`
	Subfolder string `json:"subfolder"`
	Type      string `json:"type"`
}

// resultOf returns the first file in a node's output, whatever list it is in.
func resultOf(output map[string]json.RawMessage) (file, bool) {
	lists := slices.Sorted(maps.Keys(output))
	slices.SortStableFunc(lists, func(a, b string) int { return first(b) - first(a) })
	for _, list := range lists {
		var files []file
		if json.Unmarshal(output[list], &files) != nil || len(files) == 0 || files[0].Name == "" {
			continue
		}
		if f := files[0]; max(len(f.Name), len(f.Subfolder), len(f.Type)) <= maxFileName {
			return f, true
		}
	}
	return file{}, false
}

// first returns 1 for the list that resultOf should search first, and 0 for others.
func first(list string) int {
	if list == "images" {
		return 1
	}
	return 0
}
