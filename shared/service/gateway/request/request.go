// Package request reads the requests for completions: it checks them by the rules
// of docs/contract/gateway.md, clamps what they may ask for, and gives them the form
// that upstreams get. It walks over a body once and copies none of it.
package request

import (
	"net/http"
	"slices"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Caller is what a request is checked against: which models exist, and what the
// caller's credential allows.
type Caller struct {
	// Row is set for a call that has fallen back to this row, whatever it names:
	// then Find and Refuses are not asked.
	Row *catalog.Inference
	// Find returns the catalog row of a slug.
	Find func(slug string) (*catalog.Inference, bool)
	// Refuses returns why the caller may not use the model, or "" if it may; nil refuses
	// none.
	Refuses func(slug string) string
	// MaxTokens is the tier's cap on the tokens that one completion may ask
	// for; 0 means no cap.
	MaxTokens int
}

// Request is a checked request for a completion.
type Request struct {
	Route catalog.Route
	Model *catalog.Inference
	// Models are the rows that the caller names in models, without repetitions and
	// without Model; Named reports whether there is such a field.
	Models []*catalog.Inference
	Named  bool
	// Stream reports whether the answer is Server-Sent Events.
	Stream bool
	// IncludeUsage reports whether the caller asked for the usage at the end of
	// the stream. The upstream is asked for it in any case.
	IncludeUsage bool
	// Completions is how many are generated at most, over all prompts.
	Completions int
	// MostTokens is how many tokens each of them has at most.
	MostTokens int
	// TextOnly reports whether all that the model reads is text that stands in the body.
	TextOnly bool

	body []byte
	// edits are the changes that the rules make, without the model's name.
	edits []jsonedit.Edit
	// model, prompt and tools are their places in the body; promptIDs is how
	// many token ids the prompt has.
	model, prompt, tools span
	promptIDs            int
	// system and cacheKey are those of the scan.
	system, cacheKey span
}

// unknown is the error for a name that a field has no model for.
func unknown(param, format string, args ...any) *apierror.Error {
	e := apierror.UnknownModel(format, args...)
	e.Param = param
	return e
}

// Parse checks a request by the rules of docs/contract/gateway.md and returns
// the first error: invalid JSON (400), the model's existence (404), the
// caller's scope (403), then the fields in the order of the contract (400). The
// request keeps body, which must not change afterwards. A request that is only too
// long for the model comes with its error, because another one may read it.
//
// A field that is null counts as absent, and is not forwarded. A name that
// occurs twice in an object is refused, and so is one that differs from a known
// field only in case: model servers disagree on what those mean.
func Parse(route catalog.Route, body []byte, caller Caller) (*Request, *apierror.Error) {
	if problem := checkNesting(body); problem != nil {
		return nil, problem
	}
	s := newScan(route, body)
	defer s.free()
	if err := s.body(); err != nil {
		return nil, notJSON(err)
	}
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
		// Only now is it known what the other fields mean.
		s.begin(route, body)
		s.row = m
		if err := s.body(); err != nil {
			return nil, notJSON(err)
		}
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
		Completions: max(s.prompts, 1) * max(s.numbers[nField], s.numbers[bestOfField], 1),
	}
	if tools := s.members[toolsField]; tools.present() {
		r.tools = tools.value
	}
	s.bound(m)
	if s.problem == nil && !r.fits(s.longestIDs) {
		s.wrong(prompt, prompt.String(), apierror.ContextExceeded,
			"%s: longer than the %d tokens that the model %s reads.", prompt, m.ContextLength, m.ID)
	}
	r.rewrite(s, caller.MaxTokens)
	if s.problem != nil && s.problem.Code == apierror.ContextExceeded {
		return r, s.problem
	}
	if s.problem != nil {
		return nil, s.problem
	}
	return r, nil
}

// Raw returns the caller's bytes, which must not be changed.
func (r *Request) Raw() []byte { return r.body }

// others returns the rows of the names in models, if the caller may use them all.
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

// find returns the model that the caller names in a field, if the caller may use
// it.
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
		return nil, unknown(param, "The model %q has no %s route.", slug, route)
	}
	if c.Refuses != nil {
		if why := c.Refuses(slug); why != "" {
			return nil, &apierror.Error{
				Status: http.StatusForbidden, Type: apierror.Permission, Code: apierror.ModelNotAllowed, Param: param,
				Message: why,
			}
		}
	}
	return m, nil
}
