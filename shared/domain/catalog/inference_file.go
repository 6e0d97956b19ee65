package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// slugForm is what the id of an inference model may be. Unlike a media model's
// it is no segment of a path, and names such as organisation/model are usual.
var slugForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:/-]*$`)

// fieldForm is what a field of a request may be called.
var fieldForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// anyField stands in a row's fields for all that there are.
const anyField = "*"

const (
	// maxTokens bounds every number of tokens in the file, far above any model.
	maxTokens = 1 << 30
	// maxWeight bounds an upstream's weight.
	maxWeight = 1000
	// maxConcurrency bounds the calls that an upstream may be allowed at once.
	maxConcurrency = 1 << 20
	// maxTimeout bounds the waiting for an upstream.
	maxTimeout = time.Hour
	// maxMany bounds how many choices and prompts a row may allow.
	maxMany = 1 << 16
)

// The file's own shape, as in catalog.go. What a row may leave out with a
// meaning other than zero is a pointer.
type (
	inferenceEntry struct {
		ID               string
		Description      string
		Placeholder      bool
		Routes           []Route
		ContextLength    int             `yaml:"context_length"`
		MaxOutputLength  int             `yaml:"max_output_length"`
		DefaultMaxTokens int             `yaml:"default_max_tokens"`
		MaxTokensField   string          `yaml:"max_tokens_field"`
		Effort           ReasoningEffort `yaml:"reasoning_effort"`
		TemplateKwargs   *bool           `yaml:"chat_template_kwargs"`
		StreamOptions    *bool           `yaml:"stream_options"`
		MaxChoices       *int            `yaml:"max_choices"`
		MaxPrompts       *int            `yaml:"max_prompts"`
		Fields           []string
		Price            struct{ Input, Output float64 }
		Timeouts         struct {
			Connect   string
			FirstByte string `yaml:"first_byte"`
			Idle      string
		}
		Upstreams []upstreamEntry
	}
	upstreamEntry struct {
		Name        string
		URL         string `yaml:"url"`
		Model       string
		Secret      string
		Weight      *int
		Concurrency int
	}
)

// inference adds the rows of the inference side to the catalog.
func (c *Catalog) inference(entries []inferenceEntry) error {
	for i, entry := range entries {
		path := fmt.Sprintf("$.inference[%d]", i)
		if len(entry.ID) > maxName || !slugForm.MatchString(entry.ID) {
			return wrongAt(path, "inference model %q: an id is of letters, digits, '.', '_', ':', '/' and '-'", entry.ID)
		}
		if c.Knows(entry.ID) {
			return wrongAt(path, "inference model %q: the name belongs to another model already", entry.ID)
		}
		m, err := entry.model(path)
		if err != nil {
			return err
		}
		c.inferenceModels = append(c.inferenceModels, m)
		c.bySlug[m.ID] = m
	}
	return nil
}

func (e inferenceEntry) model(path string) (*Inference, error) {
	m := &Inference{
		ID: e.ID, Description: e.Description, Placeholder: e.Placeholder, Routes: e.Routes,
		ContextLength: e.ContextLength, MaxOutputLength: e.MaxOutputLength, DefaultMaxTokens: e.DefaultMaxTokens,
		MaxTokensField: e.MaxTokensField, Effort: e.Effort, Price: Price(e.Price),
		TemplateKwargs: e.TemplateKwargs == nil || *e.TemplateKwargs, StreamOptions: e.StreamOptions == nil || *e.StreamOptions,
		MaxChoices: DefaultMaxChoices, MaxPrompts: DefaultMaxPrompts,
	}
	wrong := func(field, format string, args ...any) error {
		return wrongAt(path+field, "inference model %q: %w", e.ID, fmt.Errorf(format, args...))
	}
	if m.MaxTokensField == "" {
		m.MaxTokensField = DefaultMaxTokensField
	}
	for _, route := range e.Routes {
		if route != Chat && route != Completions {
			return nil, wrong(".routes", "the route %q is none of chat and completions", route)
		}
	}
	between := func(n, low int) bool { return low <= n && n <= maxTokens }
	switch {
	case e.Placeholder && len(e.Upstreams) > 0:
		return nil, wrong(".upstreams", "a placeholder has no upstreams")
	case e.Placeholder:
		return m, nil
	case len(e.Routes) == 0:
		return nil, wrong("", "routes names chat, completions or both")
	case !between(e.MaxOutputLength, 1):
		return nil, wrong(".max_output_length", "max_output_length is a number of tokens, at least 1")
	case !between(e.ContextLength, e.MaxOutputLength):
		return nil, wrong(".context_length", "context_length is a number of tokens, at least max_output_length")
	case !between(e.DefaultMaxTokens, 0):
		return nil, wrong(".default_max_tokens", "default_max_tokens is a number of tokens, or absent")
	case len(m.MaxTokensField) > maxName || !fieldForm.MatchString(m.MaxTokensField):
		return nil, wrong(".max_tokens_field", "max_tokens_field %q is no name of a field", e.MaxTokensField)
	case e.Effort != EffortTopLevel && e.Effort != EffortTemplate:
		return nil, wrong(".reasoning_effort", "reasoning_effort is \"template\" or absent")
	case e.Effort == EffortTemplate && !m.TemplateKwargs:
		return nil, wrong(".reasoning_effort", "reasoning_effort \"template\" needs upstreams that take chat_template_kwargs")
	case !(e.Price.Input >= 0) || !(e.Price.Output >= 0):
		return nil, wrong(".price", "a price is 0 or more, in US dollars per million tokens")
	case len(e.Upstreams) == 0:
		return nil, wrong("", "it has no upstreams, and is no placeholder")
	}
	if field, err := e.timeouts(m); err != nil {
		return nil, wrong(".timeouts."+field, "%w", err)
	}
	if field, err := e.bounds(m); err != nil {
		return nil, wrong(field, "%w", err)
	}
	names := map[string]bool{}
	for i, entry := range e.Upstreams {
		at := fmt.Sprintf(".upstreams[%d]", i)
		upstream, field, err := entry.upstream(e.ID)
		if err != nil {
			return nil, wrong(at+field, "upstream %d: %w", i+1, err)
		}
		if names[upstream.Name] {
			return nil, wrong(at, "two upstreams have the name %q: give each a name of its own", upstream.Name)
		}
		names[upstream.Name] = true
		m.Upstreams = append(m.Upstreams, upstream)
	}
	// Who runs the model server on the same machine means to have all of it.
	if e.Fields == nil && !slices.ContainsFunc(m.Upstreams, func(u Upstream) bool { return !u.local() }) {
		m.AnyField = true
	}
	return m, nil
}

// timeouts reads the timeouts; an error comes with the one that is wrong.
func (e inferenceEntry) timeouts(m *Inference) (field string, err error) {
	for _, timeout := range []struct {
		field, text string
		target      *time.Duration
	}{
		{"connect", e.Timeouts.Connect, &m.Timeouts.Connect},
		{"first_byte", e.Timeouts.FirstByte, &m.Timeouts.FirstByte},
		{"idle", e.Timeouts.Idle, &m.Timeouts.Idle},
	} {
		if timeout.text == "" {
			continue
		}
		d, err := time.ParseDuration(timeout.text)
		if err != nil || d <= 0 || d > maxTimeout {
			return timeout.field, fmt.Errorf("the timeout %q is no duration of at most an hour, such as 30s", timeout.text)
		}
		*timeout.target = d
	}
	return "", nil
}

// bounds reads what callers may ask for; an error comes with the key that is
// wrong.
func (e inferenceEntry) bounds(m *Inference) (field string, err error) {
	for _, bound := range []struct {
		field  string
		sent   *int
		target *int
	}{
		{"max_choices", e.MaxChoices, &m.MaxChoices},
		{"max_prompts", e.MaxPrompts, &m.MaxPrompts},
	} {
		if bound.sent == nil {
			continue
		}
		if *bound.sent < 1 || *bound.sent > maxMany {
			return "." + bound.field, fmt.Errorf("%s is 1 to %d", bound.field, maxMany)
		}
		*bound.target = *bound.sent
	}
	for i, name := range e.Fields {
		if name == anyField {
			m.AnyField = true
			continue
		}
		if len(name) > maxName || !fieldForm.MatchString(name) {
			return fmt.Sprintf(".fields[%d]", i), fmt.Errorf("%q is no name of a field; %q stands for all", name, anyField)
		}
		m.Fields = append(m.Fields, name)
	}
	return "", nil
}

// local reports whether a model server is on this machine.
func (u Upstream) local() bool {
	if u.URL == Embedded {
		return true
	}
	base, err := url.Parse(u.URL)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(base.Hostname())
	return base.Hostname() == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// upstream reads an entry; an error comes with the field that is wrong. A name
// that is not given is the server's host.
func (e upstreamEntry) upstream(id string) (u Upstream, field string, err error) {
	u = Upstream{Name: e.Name, URL: e.URL, Model: e.Model, Secret: e.Secret, Weight: 1, Concurrency: e.Concurrency}
	host := strings.TrimSuffix(Embedded, ":")
	if e.URL != Embedded {
		if u.URL, host, err = baseURL(e.URL); err != nil {
			return u, ".url", err
		}
	}
	if u.Name == "" {
		u.Name = host
	}
	if u.Model == "" {
		u.Model = id
	}
	if err := checkSecret(e.Secret); err != nil {
		return u, ".secret", err
	}
	if e.Weight != nil {
		u.Weight = *e.Weight
	}
	if u.Weight < 1 || u.Weight > maxWeight {
		return u, ".weight", fmt.Errorf("a weight is 1 to %d", maxWeight)
	}
	if u.Concurrency < 0 || u.Concurrency > maxConcurrency {
		return u, ".concurrency", fmt.Errorf("concurrency is 0 (no limit) to %d", maxConcurrency)
	}
	return u, "", nil
}

// baseURL returns the URL below which the routes lie, and its host. A URL without
// a path means a server whose routes lie below /v1, as nearly all do.
func baseURL(text string) (base, host string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		// The text itself is not repeated: there may be a key in it.
		return "", "", fmt.Errorf("url is an http or https URL, or %s", Embedded)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", "", errors.New("url has neither a user, a query nor a fragment: a key belongs into secret")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u.String(), u.Host, nil
}

// checkSecret checks the form of a secret's source, not that the secret is there.
func checkSecret(source string) error {
	if source == "" {
		return nil
	}
	kind, name, _ := strings.Cut(source, ":")
	switch kind {
	case "env", "file", "secretsmanager":
		if name != "" {
			return nil
		}
	}
	// The text itself is not repeated: it may be the key, misplaced.
	return errors.New("secret is env:NAME, file:PATH or secretsmanager:ARN#FIELD")
}
