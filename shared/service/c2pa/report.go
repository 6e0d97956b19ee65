package c2pa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/domain/origin"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/c2pa"
)

var errNoMedia = errors.New("the file is neither an image nor a video")

// Inspect verifies a file. A signer is trusted if its chain ends at one of the PEM anchors. Errors:
// c2pa.ErrNone; c2pa.ErrElsewhere; c2pa.ErrLost; errNoMedia.
func Inspect(ctx context.Context, library *c2pa.Library, file *os.File, anchors string) (origin.Report, error) {
	head := make([]byte, media.SniffLen)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF { //nolint:errorlint // ReaderAt returns it unwrapped
		return origin.Report{}, fmt.Errorf("read the file: %w", err)
	}
	mime, known := sniff.Any(head[:n])
	if !known {
		return origin.Report{}, fmt.Errorf("%s: %w", file.Name(), errNoMedia)
	}
	text, err := library.Read(ctx, file, mime, anchors)
	if err != nil {
		return origin.Report{}, err
	}
	return parseReport(text)
}

// maxValues limits the values in the library's report. A file with 100 ingredients has about 20,000.
const maxValues = 200_000

type libraryReport struct {
	Active    string              `json:"active_manifest"`
	Manifests map[string]manifest `json:"manifests"`
	State     string              `json:"validation_state"`
	Results   struct {
		Active findings `json:"activeManifest"`
		Deltas []struct {
			Findings findings `json:"validationDeltas"`
		} `json:"ingredientDeltas"`
	} `json:"validation_results"`
}

type findings struct {
	Failure []failure `json:"failure"`
}

type failure struct {
	Code        string `json:"code"`
	Explanation string `json:"explanation"`
}

// An untrusted signer is not listed as a problem, because the file is not at fault.
func (f findings) problems(most int) (problems []string) {
	for _, failure := range f.Failure {
		if len(problems) == most {
			return problems
		}
		if failure.Code != "signingCredential.untrusted" {
			problems = append(problems, clip(failure.Code)+": "+clip(failure.Explanation))
		}
	}
	return problems
}

type manifest struct {
	// Generators may also have other members.
	Generators  []map[string]json.RawMessage `json:"claim_generator_info"`
	Ingredients []struct {
		Format       string `json:"format"`
		Relationship string `json:"relationship"`
		Active       string `json:"active_manifest"`
		Metadata     struct {
			// The JSON name is the value of hashName.
			SHA256 json.RawMessage `json:"cutroom.sha256"`
		} `json:"metadata"`
		// The signer's findings about the ingredient. In earlier C2PA versions they are in Status.
		Results struct {
			Active findings `json:"activeManifest"`
		} `json:"validation_results"`
		Status []failure `json:"validation_status"`
	} `json:"ingredients"`
	Assertions []struct {
		Label string          `json:"label"`
		Data  json.RawMessage `json:"data"`
	} `json:"assertions"`
	Signature struct {
		Issuer     string `json:"issuer"`
		CommonName string `json:"common_name"`
	} `json:"signature_info"`

	actions []origin.Action
}

// Limits per report: maxDepth generations of inputs, and maxItems records, actions, inputs and
// problems in total. Limits per record or input: maxParts items, maxFound problems, and maxText
// bytes per string. Without limits, manifests that name each other would produce endless inputs,
// and a single manifest may contain megabytes of actions.
const maxDepth, maxParts, maxItems, maxFound, maxText = 8, 64, 2048, 4, 512

func parseReport(text []byte) (origin.Report, error) {
	var all libraryReport
	err := boundedjson.Unmarshal(text, maxValues, &all)
	if _, tooMany := errors.AsType[*boundedjson.LimitError](err); tooMany {
		return origin.Report{}, errBoxes
	}
	if err != nil {
		return origin.Report{}, fmt.Errorf("parse the library's report: %w", err)
	}
	r := origin.Report{State: origin.Invalid}
	switch all.State {
	case "Trusted":
		r.State = origin.Trusted
	case "Valid":
		r.State = origin.Valid
	}
	if r.State == origin.Invalid {
		lists := []findings{all.Results.Active}
		for _, delta := range all.Results.Deltas[:min(len(all.Results.Deltas), maxParts)] {
			lists = append(lists, delta.Findings)
		}
		for _, list := range lists {
			r.Problems = append(r.Problems, list.problems(maxParts)...)
		}
	}
	for label, m := range all.Manifests {
		m.actions = m.readActions()
		all.Manifests[label] = m
	}
	left := maxItems
	if record := all.record(all.Active, maxDepth, &left); record != nil {
		r.Record = *record
	}
	return r, nil
}

// record returns nil if the manifest is missing or exceeds the limits. left is how many more
// records, actions, inputs and problems may be reported.
func (t libraryReport) record(label string, depth int, left *int) *origin.Record {
	m, found := t.Manifests[label]
	if !found || depth == 0 || *left <= 0 {
		return nil
	}
	*left--
	r := &origin.Record{
		SignedBy: clip(m.Signature.Issuer), CommonName: clip(m.Signature.CommonName),
		Actions: append([]origin.Action{}, m.actions[:min(len(m.actions), *left)]...),
	}
	*left -= len(r.Actions)
	if len(m.Generators) > 0 {
		r.Generator = strings.TrimSpace(textOf(m.Generators[0]["name"]) + " " + textOf(m.Generators[0]["version"]))
	}
	for _, in := range m.Ingredients[:min(len(m.Ingredients), maxParts)] {
		if *left <= 0 {
			break
		}
		*left--
		found := findings{append(in.Results.Active.Failure, in.Status...)}.problems(min(maxFound, *left))
		*left -= len(found)
		r.Inputs = append(r.Inputs, origin.Input{
			Relationship: clip(in.Relationship), Format: clip(in.Format), SHA256: textOf(in.Metadata.SHA256), Problems: found,
			Record: t.record(in.Active, depth-1, left),
		})
	}
	return r
}

// Malformed actions are ignored, because anyone may have signed the manifest.
func (m manifest) readActions() (actions []origin.Action) {
	for _, assertion := range m.Assertions {
		var list struct {
			Actions []json.RawMessage `json:"actions"`
		}
		if !strings.HasPrefix(assertion.Label, "c2pa.actions") || json.Unmarshal(assertion.Data, &list) != nil {
			continue
		}
		for _, text := range list.Actions {
			if len(actions) == maxParts {
				return actions
			}
			if action, ok := actionOf(text); ok {
				actions = append(actions, action)
			}
		}
	}
	return actions
}

// ok is false if the action is malformed.
func actionOf(text json.RawMessage) (action origin.Action, ok bool) {
	var a struct {
		Action     string          `json:"action"`
		When       string          `json:"when"`
		SourceType string          `json:"digitalSourceType"`
		Agent      json.RawMessage `json:"softwareAgent"`
		Parameters struct {
			// The JSON name is the value of modelName.
			Model json.RawMessage `json:"cutroom.model"`
		} `json:"parameters"`
	}
	if json.Unmarshal(text, &a) != nil {
		return origin.Action{}, false
	}
	return origin.Action{
		Action: clip(a.Action), When: clip(a.When), SourceType: clip(a.SourceType[strings.LastIndexByte(a.SourceType, '/')+1:]),
		Agent: agentName(a.Agent), Model: textOf(a.Parameters.Model),
	}, true
}

// A software agent is a string or an object.
func agentName(data json.RawMessage) string {
	var agent struct {
		Name json.RawMessage `json:"name"`
	}
	if json.Unmarshal(data, &agent) == nil {
		data = agent.Name
	}
	return textOf(data)
}

// textOf returns "" for a value other than a string.
func textOf(data json.RawMessage) string {
	var text string
	_ = json.Unmarshal(data, &text)
	return clip(text)
}

// clip truncates a string to maxText bytes without splitting a character.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
