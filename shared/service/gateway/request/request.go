// Package request parses completion requests by the rules of docs/contract/gateway.md and rewrites
// them for upstreams. It reads a body once, without copying it.
package request

import (
	"net/http"
	"slices"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Caller contains the models and permissions that a request is checked against.
type Caller struct {
	// Row is the fallback row in use, if any. If it is set, Find and Refuses are not called.
	Row  *catalog.Inference
	Find func(slug string) (*catalog.Inference, bool)
	// Refuser's method returns why the caller may not use the model, or "". Refuser may be nil.
	Refuser interface{ Refuses(slug string) string }
	// Translated means that the request is a translation from another dialect.
	Translated bool
	// MaxTokens is the tier's limit on the tokens of one completion. 0 means no limit.
	MaxTokens   int
	ContentType string
}

type Request struct {
	Route catalog.Route
	Model *catalog.Inference
	// If Named is true, Models lists the rows named in the models field, without duplicates and without Model.
	Models []*catalog.Inference
	Named  bool
	Stream bool
	// IncludeUsage means that the caller asked for the usage at the end of the stream.
	IncludeUsage bool
	// Completions is the maximum number of completions across all prompts. MostTokens is the
	// maximum number of tokens in each.
	Completions int
	MostTokens  int
	TextOnly    bool
	// Store means that the caller allows the response to be kept.
	Store bool
	// Characters is the length of the text of speech and of its instructions.
	Characters int

	body []byte
	// file is the audio to transcribe. boundary separates the parts of the form to send, and is empty for JSON.
	file     []byte
	boundary string
	// edits lists the edits required by the rules, except for the model's name.
	edits []jsonedit.Edit
	usual [4]jsonedit.Edit // the array of edits, if there are not more
	// model, prompt and tools are spans of the body. promptIDs is the number of token ids in the prompt.
	model, prompt, tools span
	promptIDs            int
	// See the fields of scan.
	system, cacheKey span
}

func unknown(param, format string, args ...any) *apierror.Error {
	e := apierror.UnknownModel(format, args...)
	e.Param = param
	return e
}

// Parse checks a request by the rules of docs/contract/gateway.md. It returns the first error, in this order:
// invalid JSON (400), unknown model (404), the caller's scope (403), and invalid fields in the contract's order
// (400). The request retains body, which must not change. If a request's only problem is that it is too long, it
// is returned together with the error, because another model may accept it.
//
// A null field counts as absent and is not forwarded. Duplicate names, and names that differ from a
// known field only in case, are rejected, because model servers disagree about their meaning.
func Parse(route catalog.Route, body []byte, caller Caller) (*Request, *apierror.Error) {
	if route == catalog.Transcriptions {
		return parseForm(body, caller)
	}
	s := newScan(route, body)
	defer s.free()
	if problem := s.reader.parse(body); problem != nil {
		return nil, problem
	}
	s.body()
	if !s.members[modelField].present() {
		return nil, apierror.Invalid("model", apierror.MissingParameter, "model is missing.")
	}
	if s.problem != nil && s.problemField == modelField {
		return nil, s.problem
	}
	m, problem := caller.find(route, s.model, "model")
	if problem != nil {
		return nil, problem
	}
	if s.problem != nil && s.problemField == modelsField {
		return nil, s.problem
	}
	others, problem := caller.others(route, m, s.models)
	if problem != nil {
		return nil, problem
	}
	name := m.MaxTokensField
	if name != maxTokensField.String() && name != maxCompletionTokensField.String() || s.unusual && !m.AnyField {
		// Some fields can be interpreted only now, because their meaning depends on the model.
		s.clear()
		s.route, s.row = route, m
		s.reader.Rewind()
		s.body()
	}
	needed := required(route)
	for _, f := range needed {
		if !s.members[f].present() {
			s.wrong(f, f.String(), apierror.MissingParameter, "%s is missing.", f)
		}
	}
	prompt := needed[0]
	r := &Request{
		Route: route, Model: m, Models: others, Named: s.members[modelsField].present(), Stream: s.members[streamField].kind == 't', IncludeUsage: s.usage.kind == 't',
		body: body, model: s.members[modelField].value, prompt: s.members[prompt].value, promptIDs: s.tokenIDs,
		system: s.system, cacheKey: s.cacheKey, TextOnly: !s.beyondText,
		Store:       route == catalog.Responses && s.members[storeField].kind != 'f',
		Characters:  s.characters,
		Completions: max(s.prompts, 1) * max(s.numbers[nField], s.numbers[bestOfField], 1),
	}
	if tools := s.members[toolsField]; tools.present() {
		r.tools = tools.value
	}
	s.bound(m)
	if s.problem == nil && !r.fits(s.longestIDs) {
		s.wrong(prompt, prompt.String(), apierror.ContextExceeded,
			"%s is longer than the %d-token context of the model %s.", prompt, m.ContextLength, m.ID)
	}
	r.rewrite(s, caller)
	if s.problem != nil && s.problem.Code == apierror.ContextExceeded {
		return r, s.problem
	}
	if s.problem != nil {
		return nil, s.problem
	}
	return r, nil
}

// Input returns the prompt as JSON, such as the input of Responses.
func (r *Request) Input() []byte { return r.body[r.prompt.start:r.prompt.end] }

func (r *Request) Raw() []byte { return r.body }

func (c Caller) others(route catalog.Route, first *catalog.Inference, names []string) ([]*catalog.Inference, *apierror.Error) {
	if c.Row != nil {
		return nil, nil
	}
	var rows []*catalog.Inference
	for i, name := range names {
		m, problem := c.find(route, name, modelsPath(i))
		if problem != nil {
			return nil, problem
		}
		if m != first && !slices.Contains(rows, m) {
			rows = append(rows, m)
		}
	}
	return rows, nil
}

func (c Caller) find(route catalog.Route, slug, param string) (*catalog.Inference, *apierror.Error) {
	if c.Row != nil {
		return c.Row, nil
	}
	m, ok := c.Find(slug)
	switch {
	case !ok, m.Placeholder:
		if len(slug) > maxParam {
			return nil, unknown(param, "The model does not exist.")
		}
		return nil, unknown(param, "The model %q does not exist.", slug)
	case !m.Serves(route):
		return nil, unknown(param, "The model %q does not support the %s route.", slug, route)
	}
	if c.Refuser != nil {
		if why := c.Refuser.Refuses(slug); why != "" {
			return nil, &apierror.Error{
				Status: http.StatusForbidden, Type: apierror.Permission, Code: apierror.ModelNotAllowed, Param: param,
				Message: why,
			}
		}
	}
	return m, nil
}
