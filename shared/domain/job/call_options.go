package job

import (
	"maps"
	"strings"
	"time"
)

// These options belong to the service. Every model's form has them, and engines do not receive them.
const (
	// StartWithin is the number of seconds after its creation within which a job must start.
	StartWithin = "start_within"
	// WebhookEvents is a comma-separated list of the statuses for which the webhook is called.
	WebhookEvents = "webhook_events"
	// ResultTTL is how many seconds the result is kept, if that is shorter than the service keeps results.
	ResultTTL = "result_ttl"
	// Priority is "normal" or LowPriority. A job with low priority waits while other jobs wait on its lane.
	Priority    = "priority"
	LowPriority = "low"
)

// EngineOptions returns a copy of the options without the service's own.
func (r Request) EngineOptions() map[string]any {
	options := maps.Clone(r.Options)
	for _, name := range []string{StartWithin, WebhookEvents, ResultTTL, Priority} {
		delete(options, name)
	}
	return options
}

// BriefLength is the longest video that may run in a spare slot. Otherwise, long videos of a few accounts would keep all
// slots.
const BriefLength = 15 * time.Second

// Brief reports whether the job may run in a spare slot: an image, or a video that is known to be short.
func (j Job) Brief() bool {
	return !j.Low() && (j.Lane == ImageLane || j.Request.Length > 0 && max(j.Request.Length, j.Request.Clip) <= BriefLength)
}

func (j Job) Low() bool { return j.Request.Option(Priority) == LowPriority }

// Notifies reports whether a webhook must be sent for the ended job.
func (j Job) Notifies() bool {
	events := j.Request.Option(WebhookEvents)
	return j.Webhook != "" && j.Status.Terminal() && (events == "" || strings.Contains(events, string(j.Status)))
}

// ResultExpiry returns when the result of a completed job expires. age is how long the service keeps results.
func (j Job) ResultExpiry(age time.Duration) time.Time {
	if ttl := j.Request.seconds(ResultTTL); ttl > 0 {
		age = min(age, ttl)
	}
	return j.CompletedAt.Add(age)
}

// seconds returns an option's duration, or 0 if the request does not have the option.
func (r Request) seconds(option string) time.Duration {
	seconds, _ := r.Options[option].(int64)
	return time.Duration(seconds) * time.Second
}
