package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

const (
	// DefaultTier is the tier of keys that have no tier, or whose tier was deleted.
	DefaultTier = "default"
	DevTier     = "dev"
)

// Tier holds the limits of an account (docs/contract/limits.md#tiers). 0 means no limit.
type Tier struct {
	Name        string `yaml:"-"`
	PendingJobs int    `yaml:"pending_jobs"` // pending and processing jobs
	// Burst is the number of requests that an account may make at once.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
	Burst             int     `yaml:"burst"`
	StoredBytes       int64   `yaml:"stored_bytes"` // including uploads in progress
	// Uploads limits the uploads in progress. It also limits the number of pending files.
	Uploads          int `yaml:"uploads"`
	RealtimeSessions int `yaml:"realtime_sessions"`
	// RealtimeSessionsPerKey limits the sessions of a key and its client tokens at one instance.
	RealtimeSessionsPerKey int `yaml:"realtime_sessions_per_key"`
	// RealtimeQueue limits the clients that wait for a realtime session. 0 means the maximum queue length.
	RealtimeQueue int `yaml:"realtime_line" json:"RealtimeLine"`
	// EventStreamsPerKey includes the key's client tokens. It defaults to half of EventStreams.
	EventStreams               int `yaml:"event_streams"`
	EventStreamsPerKey         int `yaml:"event_streams_per_key"`
	InferenceRequestsPerMinute int `yaml:"inference_requests_per_minute"`
	InferenceTokensPerMinute   int `yaml:"inference_tokens_per_minute"`
	MaxTokens                  int `yaml:"max_tokens"` // per completion
}

// These are the defaults for tiers that do not set the limits.
const (
	DefaultUploads      = 64
	DefaultQueue        = 20 // clients that wait for a realtime session
	DefaultEventStreams = 200
)

func (t *Tier) UnmarshalYAML(read func(any) error) error {
	type fields Tier
	values := fields{Uploads: DefaultUploads, RealtimeQueue: DefaultQueue,
		EventStreams: DefaultEventStreams, EventStreamsPerKey: DefaultEventStreams / 2}
	err := read(&values)
	*t = Tier(values)
	return err
}

type Tiers map[string]Tier

// DefaultTiers returns the tiers in tiers.yaml. They are compiled in, because functions need them at each startup.
func DefaultTiers() Tiers {
	return Tiers{
		DefaultTier: {
			Name: DefaultTier, PendingJobs: 100, RequestsPerSecond: 50, Burst: 200,
			StoredBytes: 100 << 30, Uploads: DefaultUploads, RealtimeSessions: 5, RealtimeQueue: DefaultQueue,
			EventStreams: DefaultEventStreams, EventStreamsPerKey: DefaultEventStreams / 2,
			InferenceRequestsPerMinute: 600, InferenceTokensPerMinute: 1_000_000, MaxTokens: 32768,
		},
		DevTier: {Name: DevTier, RealtimeSessions: 5, RealtimeQueue: DefaultQueue},
	}
}

// ParseTiers returns errors with line numbers.
func ParseTiers(source []byte) (Tiers, error) {
	tiers := Tiers{}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&tiers); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	return tiers.checked()
}

func (t Tiers) JSON() ([]byte, error) { return json.Marshal(t) }

func ParseTiersJSON(source []byte) (Tiers, error) {
	tiers := Tiers{}
	if err := json.Unmarshal(source, &tiers); err != nil {
		return nil, err
	}
	return tiers.checked()
}

func (t Tiers) checked() (Tiers, error) {
	for name, tier := range t {
		lowest := min(int64(tier.PendingJobs), int64(tier.Burst), tier.StoredBytes, int64(tier.Uploads),
			int64(tier.RealtimeSessions), int64(tier.RealtimeSessionsPerKey), int64(tier.RealtimeQueue),
			int64(tier.EventStreams), int64(tier.EventStreamsPerKey),
			int64(tier.InferenceRequestsPerMinute), int64(tier.InferenceTokensPerMinute), int64(tier.MaxTokens))
		if lowest < 0 || !(tier.RequestsPerSecond >= 0) {
			return nil, fmt.Errorf("tier %q: a limit must be 0 (unlimited) or more", name)
		}
		if tier.RequestsPerSecond > 0 && tier.Burst == 0 {
			return nil, fmt.Errorf("tier %q: requests_per_second needs a burst of 1 or more", name)
		}
		tier.Name = name
		t[name] = tier
	}
	if _, ok := t[DefaultTier]; !ok {
		return nil, fmt.Errorf("the table has no tier %q", DefaultTier)
	}
	return t, nil
}

// Find returns the tier with the name. If it does not exist, Find returns the default tier, because a key must not
// gain permissions from a missing tier.
func (t Tiers) Find(name string) Tier {
	if tier, ok := t[name]; ok {
		return tier
	}
	return t[DefaultTier]
}
