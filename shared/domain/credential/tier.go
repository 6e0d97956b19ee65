package credential

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

//go:embed tiers.yaml
var defaultTiers []byte

const (
	// DefaultTier is the tier of a key that names none, or one that is gone.
	DefaultTier = "default"
	// DevTier is the tier of the development key.
	DevTier = "dev"
)

// Tier is what an account may use (docs/contract/limits.md#tiers). A limit of 0 is
// no limit.
type Tier struct {
	Name string `yaml:"-"`
	// PendingJobs is how many jobs may be pending or processing at once.
	PendingJobs int `yaml:"pending_jobs"`
	// RequestsPerSecond is how often an account may call in the long run, Burst
	// how often at once.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
	Burst             int     `yaml:"burst"`
	// StoredBytes is how many bytes its files may have together, those of uploads
	// that are under way counted in.
	StoredBytes int64 `yaml:"stored_bytes"`
	// Uploads is how many uploads may be under way at once, and how many announced
	// files may wait for their bytes. A table that says nothing of it means
	// DefaultUploads.
	Uploads int `yaml:"uploads"`
	// RealtimeSessions is how many realtime sessions may be open at once.
	RealtimeSessions int `yaml:"realtime_sessions"`
	// RealtimeSessionsPerKey is how many of them one key, with its client tokens, may
	// have open at one instance of the service.
	RealtimeSessionsPerKey int `yaml:"realtime_sessions_per_key"`
	// EventStreams is how many streams of the events of jobs may be open at once, and
	// EventStreamsPerKey how many of them one key, with its client tokens, may have. A
	// table that says nothing of them means DefaultEventStreams and half of it.
	EventStreams       int `yaml:"event_streams"`
	EventStreamsPerKey int `yaml:"event_streams_per_key"`
	// InferenceRequestsPerMinute and InferenceTokensPerMinute bound the calls of
	// the inference gateway and the tokens that they are billed for.
	InferenceRequestsPerMinute int `yaml:"inference_requests_per_minute"`
	InferenceTokensPerMinute   int `yaml:"inference_tokens_per_minute"`
	// MaxTokens caps what one completion may be asked to generate, in tokens.
	MaxTokens int `yaml:"max_tokens"`
}

// DefaultUploads is how many uploads a tier lets be under way that says nothing of
// them.
const DefaultUploads = 64

// DefaultEventStreams is how many streams of events a tier lets be open that says
// nothing of them.
const DefaultEventStreams = 200

// UnmarshalYAML reads a tier.
func (t *Tier) UnmarshalYAML(read func(any) error) error {
	type fields Tier
	said := fields{Uploads: DefaultUploads, EventStreams: DefaultEventStreams, EventStreamsPerKey: DefaultEventStreams / 2}
	err := read(&said)
	*t = Tier(said)
	return err
}

// Tiers is the table of tiers by name.
type Tiers map[string]Tier

// DefaultTiers is the table that comes with the program.
func DefaultTiers() (Tiers, error) { return ParseTiers(defaultTiers) }

// ParseTiers reads a table of tiers (see tiers.yaml). An error names the line
// that is wrong.
func ParseTiers(source []byte) (Tiers, error) {
	tiers := Tiers{}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&tiers); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	for name, tier := range tiers {
		lowest := min(int64(tier.PendingJobs), int64(tier.Burst), tier.StoredBytes, int64(tier.Uploads), int64(tier.RealtimeSessions), int64(tier.RealtimeSessionsPerKey),
			int64(tier.EventStreams), int64(tier.EventStreamsPerKey),
			int64(tier.InferenceRequestsPerMinute), int64(tier.InferenceTokensPerMinute), int64(tier.MaxTokens))
		if lowest < 0 || !(tier.RequestsPerSecond >= 0) {
			return nil, fmt.Errorf("tier %q: a limit is 0 (none) or more", name)
		}
		if tier.RequestsPerSecond > 0 && tier.Burst == 0 {
			return nil, fmt.Errorf("tier %q: requests_per_second needs a burst of 1 or more", name)
		}
		tier.Name = name
		tiers[name] = tier
	}
	if _, ok := tiers[DefaultTier]; !ok {
		return nil, fmt.Errorf("there is no tier %q", DefaultTier)
	}
	return tiers, nil
}

// Find gives the tier by name, and the default one when there is none of it:
// a key never has more than its tier says because the table lost a row.
func (t Tiers) Find(name string) Tier {
	if tier, ok := t[name]; ok {
		return tier
	}
	return t[DefaultTier]
}
