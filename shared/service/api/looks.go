package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/pictures"
	"cutroom/shared/engine/preview/scene"
	"cutroom/shared/engine/preview/understanding"
)

// EngineFacts describes the engine (docs/contract/jobs.md#prompt-check).
type EngineFacts struct {
	// Name is empty for the preview engine.
	Name string
	// Enhances is true if a chat model expands prompts.
	Enhances bool
}

func (e EngineFacts) isPreview() bool { return e.Name == "" || e.Name == understanding.Engine }

func (e EngineFacts) name() string {
	if e.isPreview() {
		return understanding.Engine
	}
	return e.Name
}

type modelBody struct {
	ID       string       `json:"id"`
	Aliases  []string     `json:"aliases"`
	Kind     catalog.Kind `json:"kind"`
	Realtime bool         `json:"realtime"`
	// Ignores holds the fields that have no effect.
	Ignores map[string]understanding.Ignored `json:"ignores"`
	// SameAs lists other models that the engine treats like this one.
	SameAs []string `json:"same_as"`
	// Unsupported is the reason why the engine makes no edits with the model, or "".
	Unsupported string     `json:"unsupported,omitempty"`
	Price       *priceBody `json:"price,omitempty"`
}

type engineBody struct {
	Engine string      `json:"engine"`
	Models []modelBody `json:"models"`
}

func (s *service) showEngine(w http.ResponseWriter, r *http.Request, _ call) error {
	all := s.Catalog.Models()
	body := engineBody{Engine: s.Engine.name(), Models: make([]modelBody, len(all))}
	for i, m := range all {
		described := modelBody{
			ID: m.ID, Aliases: append([]string{}, m.Aliases...), Kind: m.Kind, Realtime: m.Realtime,
			Ignores: map[string]understanding.Ignored{}, SameAs: []string{},
			Price: newPriceBody(m.Price),
		}
		if s.Engine.isPreview() {
			described.Ignores, described.Unsupported = understanding.Ignores(m), understanding.Unsupported(m.Kind)
			for _, other := range all {
				if other.ID != m.ID && understanding.Same(m, other) {
					described.SameAs = append(described.SameAs, other.ID)
				}
			}
		}
		if _, offered := m.Form.Field("enhance_prompt"); offered && !s.Engine.Enhances {
			described.Ignores["enhance_prompt"] = understanding.Ignored{Why: "No chat model is configured to expand prompts."}
		}
		body.Models[i] = described
	}
	s.writeJSON(w, r, http.StatusOK, body)
	return nil
}

type lookBody struct {
	Name string `json:"name"`
	// Words request the look in English prompts. Names request it in other languages.
	Words []string `json:"words"`
	Names []string `json:"names"`
	// Medium is true for looks that exclude each other.
	Medium bool `json:"medium"`
	// Picture is a photograph with the look applied, as a data URL.
	Picture string `json:"picture"`
}

type changeBody struct {
	Name  string   `json:"name"`
	Words []string `json:"words"`
}

type looksBody struct {
	Engine   string       `json:"engine"`
	Original string       `json:"original,omitempty"`
	Looks    []lookBody   `json:"looks"`
	Changes  []changeBody `json:"changes"`
	// Scenes lists the subjects that a text-to-video prompt can name.
	Scenes []string `json:"scenes"`
}

// The looks are compiled into the program, so responses can be cached.
const looksAge = "public, max-age=3600"

// listLooks returns a handler that builds the list on the first request.
func (s *service) listLooks() func(http.ResponseWriter, *http.Request, call) error {
	encoded := sync.OnceValues(func() ([]byte, error) {
		body := looksBody{Engine: s.Engine.name(), Looks: []lookBody{}, Changes: []changeBody{}, Scenes: []string{}}
		if s.Engine.isPreview() {
			var err error
			if body, err = knownLooks(); err != nil {
				return nil, err
			}
		}
		return encodeJSON(body)
	})
	return func(w http.ResponseWriter, _ *http.Request, _ call) error {
		text, err := encoded()
		if err != nil {
			return err
		}
		writeKept(w, http.StatusOK, text, looksAge)
		return nil
	}
}

func knownLooks() (looksBody, error) {
	body := looksBody{Engine: understanding.Engine, Scenes: scene.Names()}
	var err error
	if body.Original, err = lookPicture(pictures.Original); err != nil {
		return body, err
	}
	for _, e := range look.List() {
		drawn := lookBody{Name: e.Name, Words: e.Words, Names: append([]string{}, e.Names...), Medium: e.Medium}
		if drawn.Picture, err = lookPicture(e.Name); err != nil {
			return body, err
		}
		body.Looks = append(body.Looks, drawn)
	}
	for _, words := range look.Changes() {
		body.Changes = append(body.Changes, changeBody{words[0], words})
	}
	return body, nil
}

func lookPicture(name string) (string, error) {
	picture, err := pictures.Of(name)
	return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(picture), err
}

// If the engine cannot explain prompts, only Engine is set.
type understoodBody struct {
	Engine     string    `json:"engine"`
	Understood []string  `json:"understood,omitzero"`
	Ignored    []string  `json:"ignored,omitzero"`
	Notice     string    `json:"notice,omitempty"`
	Cost       *costBody `json:"estimated_cost,omitempty"`
	// Planned is absent if the request lacks the input's size.
	Planned *plannedBody `json:"planned,omitempty"`
}

type plannedBody struct {
	catalog.Plan
	// Seconds is 0 for an image, or if the request lacks the input's length.
	Seconds float64 `json:"seconds,omitempty"`
}

// understand is fast enough to call while a user types.
func (s *service) understand(w http.ResponseWriter, r *http.Request, _ call) error {
	sent, err := readLongJSON(r, maxPublicJSON, "")
	if err != nil {
		return err
	}
	if sent == nil {
		return problems{{[]string{"body"}, "Field required", "missing", nil, map[string]any{}}}
	}
	name, named, found := sent.text("model")
	prompt, _, wrong := sent.text("prompt")
	found = append(found, wrong...)
	reference, wrong := sent.boolean("reference_image")
	found = append(found, wrong...)
	if !named && len(found) == 0 {
		found = problems{{[]string{"body", "model"}, "Field required", "missing", nil, map[string]any{}}}
	}
	seconds, wrong := sent.number("seconds", maxSeconds)
	found = append(found, wrong...)
	resolution, _, wrong := sent.text("resolution")
	found = append(found, wrong...)
	width, wrong := sent.integer("width", 1, maxSide)
	found = append(found, wrong...)
	height, wrong := sent.integer("height", 1, maxSide)
	found = append(found, wrong...)
	if utf8.RuneCountInString(prompt) > maxUnderstood {
		found = append(found, valueProblem("prompt", nil, fmt.Sprintf("The prompt is longer than %d characters.", maxUnderstood)))
	}
	if len(found) > 0 {
		return found
	}
	m, ok := s.Catalog.Find(name)
	if !ok {
		return catalog.UnknownModel(name)
	}
	length := lengthOf(m, time.Duration(seconds*float64(time.Second)))
	body := understoodBody{Engine: s.Engine.name(), Cost: estimated(m, resolution, length)}
	if s.Engine.isPreview() {
		asked := understanding.Request{Kind: m.Kind, Prompt: strings.TrimSpace(prompt), Reference: reference}
		turns := s.publicTurns
		if len(prompt) <= usualPrompt {
			turns = s.shortTurns // long prompts delay only one another
		}
		read, err := readPrompt(r.Context(), turns, credential.Caller(r.Context()), 2*time.Second, asked)
		if err != nil {
			return err
		}
		if length > 0 {
			body.Cost = estimated(m, resolution, read.Length(length))
		}
		body.Understood, body.Ignored, body.Notice = read.Understood, append([]string{}, read.Ignored...), read.Forecast()
		if _, offered := m.Sizes[resolution]; offered && width != nil && height != nil {
			plan := m.Plan(resolution, "", catalog.Size{Width: int(*width), Height: int(*height)}, 0)
			body.Planned = &plannedBody{Plan: read.Planned(plan)}
			if m.Kind != catalog.Image {
				body.Planned.Seconds = read.Length(length).Seconds()
			}
		}
	}
	s.writeJSON(w, r, http.StatusOK, body)
	return nil
}

const (
	// shortPrompt is the length in bytes of prompts that are read without a turn, because that takes a millisecond.
	shortPrompt = 40
	usualPrompt = 200 // in bytes
)

// readPrompt reads long prompts of one caller in turn. The caller is an account or an address.
//
// Errors: fault.Limited if the turn does not come in time.
func readPrompt(
	ctx context.Context, turns *ratelimit.Turns, caller string, wait time.Duration, asked understanding.Request,
) (read understanding.Result, err error) {
	if len(asked.Prompt) <= shortPrompt {
		return understanding.Of(asked), nil
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = turns.Slowly(waiting, caller, 2, func() error {
		read = understanding.Of(asked)
		return nil
	})
	if err != nil {
		busy := fault.New(fault.Limited, "Other prompts are being read. Try again.")
		busy.RetryAfter = time.Second
		return read, busy
	}
	return read, nil
}

const (
	maxSeconds = 86400
	maxSide    = 65535
)

// maxUnderstood limits a prompt's length in characters. It is below the limit for jobs, because anyone may call.
const maxUnderstood = 1000
