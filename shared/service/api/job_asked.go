package api

import (
	"maps"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/job"
)

// See docs/contract/media.md#job-record.
type askedBody struct {
	Prompt string `json:"prompt"`
	// The seed is a separate field, because a job has a seed even if the request had none.
	Options map[string]any       `json:"options"`
	Inputs  map[string]inputBody `json:"inputs"`
}

type inputBody struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime"`
	Size int64  `json:"size_bytes"`
}

func newAskedBody(r job.Request) askedBody {
	body := askedBody{Prompt: r.Prompt, Options: map[string]any{}, Inputs: map[string]inputBody{}}
	maps.Copy(body.Options, r.Options)
	for field, input := range r.Inputs {
		body.Inputs[field] = inputBody{input.Name, input.MIME, input.Size}
	}
	return body
}

// maxListed keeps pages small even if prompts are long (docs/contract/media.md#list-of-jobs).
const maxListed = 500

// excerpt returns a copy with shortened strings, for lists.
func (b askedBody) excerpt() askedBody {
	b.Prompt = listed(b.Prompt)
	for name, value := range b.Options {
		if text, ok := value.(string); ok {
			b.Options[name] = listed(text)
		}
	}
	return b
}

func listed(text string) string {
	if utf8.RuneCountInString(text) <= maxListed {
		return text
	}
	return string([]rune(text)[:maxListed-1]) + "…"
}

type resultBody struct {
	MIME string `json:"mime"`
	Size int64  `json:"size_bytes"`
	// Width and Height are in pixels and Duration is in seconds. They are absent if unknown.
	Width       int              `json:"width,omitempty"`
	Height      int              `json:"height,omitempty"`
	Duration    float64          `json:"duration,omitempty"`
	ExpiresAt   *string          `json:"expires_at"`
	Credentials *credentialsBody `json:"content_credentials,omitempty"`
}

// See docs/contract/jobs.md#content-credentials.
type credentialsBody struct {
	SourceType string  `json:"source_type"`
	SignedBy   string  `json:"signed_by"`
	SignedAt   *string `json:"signed_at"`
}

func newResultBody(j job.Job, age time.Duration) *resultBody {
	if j.Result == nil {
		return nil
	}
	body := &resultBody{
		MIME: j.Result.MIME, Size: j.Result.Size, Width: j.Result.Width, Height: j.Result.Height,
		Duration: j.Result.Duration.Seconds(), ExpiresAt: timestamp(j.ResultExpiry(age)),
	}
	if signed := j.Result.Credentials; signed != nil {
		body.Credentials = &credentialsBody{signed.SourceType, signed.SignedBy, timestamp(signed.SignedAt)}
	}
	return body
}
