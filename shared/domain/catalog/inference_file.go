package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/ascii"
)

// isSlug reports whether text is a valid inference model id, such as organization/model.
func isSlug(text string) bool {
	return len(text) <= maxName && ascii.Only(text, "._:/-") && ascii.IsAlphanumeric(text[0])
}

func isField(text string) bool {
	return len(text) <= maxName && ascii.Only(text, "_") && !ascii.IsDigit(text[0])
}

// Servers that use x-api-key also require a version header.
const apiKeyHeader, defaultVersion = "x-api-key", "2023-06-01"

const anyField = "*"

const (
	// maxTokens limits every token count in the file. It is far above the limits of real models.
	maxTokens      = 1 << 30
	maxWeight      = 1000
	maxConcurrency = 1 << 20
	maxTimeout     = time.Hour
	maxFallbacks   = 8
	// maxQueue limits how many calls may wait for a row. maxWait limits how long they may wait, because clients and
	// proxies close a silent connection after a minute.
	maxQueue = 10_000
	maxWait  = time.Minute
	maxMany  = 1 << 16
)

// As in catalog.go, these types describe the file. A nil pointer means that the value is absent.
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
		Reasoning        ReasoningField  `yaml:"reasoning_field"`
		TemplateKwargs   *bool           `yaml:"chat_template_kwargs"`
		StreamOptions    *bool           `yaml:"stream_options"`
		MaxChoices       *int            `yaml:"max_choices"`
		MaxPrompts       *int            `yaml:"max_prompts"`
		MaxEvent         *int            `yaml:"max_event_bytes"`
		Fields           []string
		Affinity         *bool
		Price            *tokenPriceEntry
		Timeouts         struct {
			Connect   string
			FirstByte string `yaml:"first_byte"`
			Idle      string
		}
		Fallbacks []string
		Queue     *struct {
			Calls int
			Wait  string
		}
		Upstreams []upstreamEntry
	}
	upstreamEntry struct {
		Name        string
		URL         string `yaml:"url"`
		Model       string
		Secret      string
		KeyHeader   string `yaml:"key_header"`
		Version     string
		Weight      *int
		Concurrency int
	}
)

func (c *Catalog) inference(entries []inferenceEntry) error {
	for i, entry := range entries {
		path := fmt.Sprintf("$.inference[%d]", i)
		if !isSlug(entry.ID) {
			return wrongAt(path, "inference model %q: an id must consist of letters, digits, '.', '_', ':', '/' and '-'", entry.ID)
		}
		if c.Knows(entry.ID) {
			return wrongAt(path, "inference model %q: the name already belongs to another model", entry.ID)
		}
		m, err := entry.model(path)
		if err != nil {
			return err
		}
		c.inferenceModels = append(c.inferenceModels, m)
		c.bySlug[m.ID] = m
	}
	for i, m := range c.inferenceModels {
		if at, err := c.fallbacks(m); err != nil {
			return wrongAt(fmt.Sprintf("$.inference[%d].fallbacks%s", i, at), "inference model %q: %w", m.ID, err)
		}
	}
	return nil
}

// fallbacks checks a row's fallbacks. Two rows may name each other, because fallbacks of a fallback are not used.
func (c *Catalog) fallbacks(m *Inference) (at string, err error) {
	if m.Placeholder && len(m.Fallbacks) > 0 {
		return "", errors.New("a placeholder must not have fallbacks")
	}
	if len(m.Fallbacks) > maxFallbacks {
		return "", fmt.Errorf("a model must not have more than %d fallbacks", maxFallbacks)
	}
	for i, id := range m.Fallbacks {
		other, ok := c.bySlug[id]
		at = fmt.Sprintf("[%d]", i)
		switch {
		case !ok:
			return at, fmt.Errorf("the fallback %q is not an inference model", id)
		case other == m:
			return at, errors.New("a model must not be its own fallback")
		case other.Placeholder:
			return at, fmt.Errorf("the fallback %q is a placeholder", id)
		case slices.Index(m.Fallbacks, id) < i:
			return at, fmt.Errorf("the fallback %q is listed twice", id)
		case !slices.ContainsFunc(m.Capabilities(), other.Serves):
			return at, fmt.Errorf("the fallback %q supports none of the model's routes", id)
		}
	}
	return "", nil
}

func (e inferenceEntry) model(path string) (*Inference, error) {
	m := &Inference{
		ID: e.ID, Description: e.Description, Placeholder: e.Placeholder, Routes: e.Routes,
		ContextLength: e.ContextLength, MaxOutputLength: e.MaxOutputLength, DefaultMaxTokens: e.DefaultMaxTokens,
		MaxTokensField: e.MaxTokensField, Effort: e.Effort, Reasoning: e.Reasoning,
		TemplateKwargs: e.TemplateKwargs == nil || *e.TemplateKwargs,
		StreamOptions:  e.StreamOptions == nil || *e.StreamOptions,
		Fallbacks:      e.Fallbacks,
		Affinity:       e.Affinity == nil || *e.Affinity,
		MaxChoices:     DefaultMaxChoices, MaxPrompts: DefaultMaxPrompts, MaxEvent: DefaultMaxEvent,
	}
	wrong := func(field string, err error) error {
		return wrongAt(path+field, "inference model %q: %w", e.ID, err)
	}
	if m.MaxTokensField == "" {
		m.MaxTokensField = DefaultMaxTokensField
	}
	if field, err := e.check(m); err != nil {
		return nil, wrong(field, err)
	}
	var err error
	if m.Price, err = e.Price.price(); err != nil {
		return nil, wrong(".price", err)
	}
	if e.Placeholder {
		return m, nil
	}
	if field, err := e.timeouts(m); err != nil {
		return nil, wrong(".timeouts."+field, err)
	}
	if field, err := e.bounds(m); err != nil {
		return nil, wrong(field, err)
	}
	if field, err := e.queue(m); err != nil {
		return nil, wrong(field, err)
	}
	if field, err := e.upstreams(m); err != nil {
		return nil, wrong(field, err)
	}
	// By default, local model servers get every field of a request.
	if e.Fields == nil && !slices.ContainsFunc(m.Upstreams, func(u Upstream) bool { return !u.local() }) {
		m.AnyField = true
	}
	return m, nil
}

// check validates values that need no conversion. Here and below, field is the YAML key of the invalid value.
func (e inferenceEntry) check(m *Inference) (field string, err error) {
	for _, route := range e.Routes {
		if route.Path() == "" {
			return ".routes", fmt.Errorf("the route %q must be chat, completions, responses, messages, "+
				"count_tokens, embeddings, rerank, score, transcriptions or speech", route)
		}
	}
	leastOutput, leastContext, isAudio := 0, max(e.MaxOutputLength, 1), slices.ContainsFunc(e.Routes, Route.IsAudio)
	if slices.ContainsFunc(e.Routes, Route.Generates) {
		leastOutput = 1
	}
	if isAudio {
		leastContext = 0
	}
	between := func(n, low int) bool { return low <= n && n <= maxTokens }
	switch {
	case e.Placeholder && len(e.Upstreams) > 0:
		return ".upstreams", errors.New("a placeholder must not have upstreams")
	case e.Placeholder:
		return "", nil
	case len(e.Routes) == 0:
		return "", errors.New("routes must list at least one route, such as chat")
	case isAudio && len(e.Routes) > 1:
		return ".routes", errors.New("transcriptions and speech must be the only route of a row, because their prices have other units")
	case !between(e.MaxOutputLength, leastOutput):
		return ".max_output_length", errors.New("max_output_length must be a number of tokens, at least 1")
	case !between(e.ContextLength, leastContext):
		return ".context_length", errors.New("context_length must be a number of tokens, at least max_output_length")
	case !between(e.DefaultMaxTokens, 0):
		return ".default_max_tokens", errors.New("default_max_tokens must be a number of tokens, or absent")
	case !isField(m.MaxTokensField):
		return ".max_tokens_field", fmt.Errorf("max_tokens_field %q is not a valid field name", e.MaxTokensField)
	case e.Effort != EffortTopLevel && e.Effort != EffortTemplate:
		return ".reasoning_effort", errors.New("reasoning_effort must be \"template\" or absent")
	case e.Effort == EffortTemplate && !m.TemplateKwargs:
		return ".reasoning_effort", errors.New("reasoning_effort \"template\" requires upstreams that accept chat_template_kwargs")
	case !slices.Contains([]ReasoningField{"", ReasoningOnly, ReasoningContent, ReasoningBoth}, e.Reasoning):
		return ".reasoning_field", fmt.Errorf("reasoning_field %q must be reasoning, reasoning_content or both, or absent", e.Reasoning)
	case len(e.Upstreams) == 0:
		return "", errors.New("the model has no upstreams and is not a placeholder")
	}
	return "", nil
}

func (e inferenceEntry) upstreams(m *Inference) (field string, err error) {
	names := map[string]bool{}
	for i, entry := range e.Upstreams {
		at := fmt.Sprintf(".upstreams[%d]", i)
		upstream, field, err := entry.upstream(e.ID)
		if err != nil {
			return at + field, fmt.Errorf("upstream %d: %w", i+1, err)
		}
		if names[upstream.Name] {
			return at, fmt.Errorf("two upstreams have the name %q: give each a different name", upstream.Name)
		}
		names[upstream.Name] = true
		m.Upstreams = append(m.Upstreams, upstream)
	}
	return "", nil
}

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
			return timeout.field, fmt.Errorf("the timeout %q must be a duration of at most an hour, such as 30s", timeout.text)
		}
		*timeout.target = d
	}
	return "", nil
}

func (e inferenceEntry) queue(m *Inference) (field string, err error) {
	if e.Queue == nil {
		return "", nil
	}
	wait, err := time.ParseDuration(e.Queue.Wait)
	if err != nil || wait <= 0 || wait > maxWait {
		return ".queue", fmt.Errorf("queue: wait %q must be a duration of at most a minute, such as 10s", e.Queue.Wait)
	}
	if e.Queue.Calls < 1 || e.Queue.Calls > maxQueue {
		return ".queue", fmt.Errorf("queue: calls must be from 1 to %d", maxQueue)
	}
	m.Queue = Queue{Calls: e.Queue.Calls, Wait: wait}
	return "", nil
}

func (e inferenceEntry) bounds(m *Inference) (field string, err error) {
	for _, bound := range []struct {
		field       string
		sent        *int
		target      *int
		least, most int
	}{
		{"max_choices", e.MaxChoices, &m.MaxChoices, 1, maxMany},
		{"max_prompts", e.MaxPrompts, &m.MaxPrompts, 1, maxMany},
		{"max_event_bytes", e.MaxEvent, &m.MaxEvent, 64 << 10, 128 << 20},
	} {
		if bound.sent == nil {
			continue
		}
		if *bound.sent < bound.least || *bound.sent > bound.most {
			return "." + bound.field, fmt.Errorf("%s must be from %d to %d", bound.field, bound.least, bound.most)
		}
		*bound.target = *bound.sent
	}
	for i, name := range e.Fields {
		if name == anyField {
			m.AnyField = true
			continue
		}
		if !isField(name) {
			return fmt.Sprintf(".fields[%d]", i), fmt.Errorf("%q is not a valid field name; %q stands for all fields", name, anyField)
		}
		m.Fields = append(m.Fields, name)
	}
	return "", nil
}

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

// upstream parses an entry. The name defaults to the host of the server.
func (e upstreamEntry) upstream(id string) (u Upstream, field string, err error) {
	u = Upstream{Name: e.Name, URL: e.URL, Model: e.Model, Secret: e.Secret, Weight: 1, Concurrency: e.Concurrency}
	host := strings.TrimSuffix(Embedded, ":")
	if e.URL != Embedded {
		if u.Discovery, u.URL, host, err = location(e.URL); err != nil {
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
	if field, err := e.credential(&u); err != nil {
		return u, field, err
	}
	if e.Weight != nil {
		u.Weight = *e.Weight
	}
	if u.Weight < 1 || u.Weight > maxWeight {
		return u, ".weight", fmt.Errorf("weight must be from 1 to %d", maxWeight)
	}
	if u.Concurrency < 0 || u.Concurrency > maxConcurrency {
		return u, ".concurrency", fmt.Errorf("concurrency must be from 0 (no limit) to %d", maxConcurrency)
	}
	return u, "", nil
}

func (e upstreamEntry) credential(u *Upstream) (field string, err error) {
	switch name := strings.ToLower(e.KeyHeader); name {
	case "", "authorization":
	case apiKeyHeader, "api-key":
		u.KeyHeader = name
	default:
		return ".key_header", errors.New("key_header must be authorization, x-api-key or api-key")
	}
	u.Version = e.Version
	if u.Version == "" && u.KeyHeader == apiKeyHeader {
		u.Version = defaultVersion
	}
	if u.Version != "" && (len(u.Version) > 64 || !ascii.Only(u.Version, ".-")) {
		return ".version", errors.New("version must consist of letters, digits, '.' and '-', such as 2023-06-01")
	}
	return "", nil
}

func location(text string) (how Discovery, base, host string, err error) {
	rest := text
	for _, known := range []Discovery{ByAddress, ByService} {
		if after, found := strings.CutPrefix(text, string(known)+"+"); found {
			how, rest = known, after
		}
	}
	if base, host, err = baseURL(rest); err != nil || how == Fixed {
		return how, base, host, err
	}
	name, port, _ := strings.Cut(host, ":")
	if _, err := netip.ParseAddr(name); err == nil || strings.HasPrefix(host, "[") {
		return how, "", "", fmt.Errorf("url: %s+ must be followed by a URL with a host name, not an address", how)
	}
	if how == ByService && port != "" {
		return how, "", "", errors.New("url: srv+ must not have a port, because the SRV record contains it")
	}
	return how, base, host, nil
}

// baseURL adds /v1 to a URL without a path, because nearly all servers use that path.
func baseURL(text string) (base, host string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		// The error omits the URL, because it may contain a key.
		return "", "", fmt.Errorf("url must be an http or https URL, with the prefix dns+ or srv+ if its host name stands for several servers, or %s", Embedded)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", "", errors.New("url must not contain a user, query or fragment; put the key in secret")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u.String(), u.Host, nil
}

// checkSecret checks the format of a secret's source, but not that the secret exists.
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
	// The error omits the value, because it may be a key that was put here by mistake.
	return errors.New("secret must be env:NAME, file:PATH or secretsmanager:ARN#FIELD")
}
