package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The states of a job (docs/contract/jobs.md#states).
const (
	Pending    = "pending"
	Processing = "processing"
	Completed  = "completed"
	Failed     = "failed"
)

// Job is a job as the service shows it (docs/contract/media.md#job-record). Times
// that are still to come are nil.
type Job struct {
	ID          string     `json:"job_id"`
	Status      string     `json:"status"`
	Model       string     `json:"model"`
	CreatedAt   *time.Time `json:"created_at"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	// Progress goes from 0 to 1.
	Progress float64  `json:"progress"`
	Seed     uint32   `json:"seed"`
	Error    *Failure `json:"error"`

	// Raw is the whole record as it was sent.
	Raw json.RawMessage `json:"-"`
}

// Failure is why a job failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Ended reports whether the job's state will not change any more.
func (j Job) Ended() bool { return j.Status == Completed || j.Status == Failed }

func parseJob(raw json.RawMessage) (Job, error) {
	job := Job{Raw: raw}
	err := decode(raw, &job)
	return job, err
}

// Edit is what a model is asked to do.
type Edit struct {
	// Model is an id or an alias.
	Model string
	// Data is the video or image to edit, nil for a model that takes none;
	// Reference is a reference image, where one is given.
	Data, Reference *Source
	// Fields are the other fields of the model's form, such as "prompt".
	Fields map[string]string
}

// fieldOrder is the order in which the fields of an edit are sent: those that
// decide early come first.
var fieldOrder = []string{"prompt", "seed", "resolution", "orientation", "enhance_prompt", "self_anchor", "webhook_url"}

func (e Edit) parts() []part {
	var parts []part
	for _, name := range fieldOrder {
		if value, there := e.Fields[name]; there {
			parts = append(parts, part{name: name, text: value})
		}
	}
	if e.Reference != nil {
		parts = append(parts, part{name: "reference_image", source: e.Reference})
	}
	if e.Data != nil {
		parts = append(parts, part{name: "data", source: e.Data})
	}
	return parts
}

// CreateJob has the service accept an edit as a job. What is too large for a
// request is stored as files first. Sent is told of the upload; it may be nil.
func (c *Client) CreateJob(ctx context.Context, edit Edit, sent Progress) (Job, error) {
	job, err := c.createJob(ctx, edit, sent)
	if !IsStatus(err, http.StatusRequestEntityTooLarge) {
		return job, err
	}
	for _, source := range []**Source{&edit.Data, &edit.Reference} {
		if *source == nil || (*source).Reference != "" {
			continue
		}
		stored, err := c.announce(ctx, **source, inputAge, sent)
		if err != nil {
			return Job{}, err
		}
		*source = &Source{Reference: stored.ID}
	}
	return c.createJob(ctx, edit, nil)
}

// inputAge is how long a file is stored that a job alone needs: the job owns its
// bytes from its acceptance on.
const inputAge = "3600"

func (c *Client) createJob(ctx context.Context, edit Edit, sent Progress) (Job, error) {
	form, err := formBody(edit.parts(), sent)
	if err != nil {
		return Job{}, err
	}
	request := c.creating(c.media(http.MethodPost, "/v1/jobs/"+url.PathEscape(edit.Model), form))
	answer, err := c.fetch(ctx, request)
	if err != nil {
		return Job{}, err
	}
	return parseJob(answer)
}

// Job reads a job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	answer, err := c.fetch(ctx, c.media(http.MethodGet, jobPath(id), nil))
	if err != nil {
		return Job{}, err
	}
	return parseJob(answer)
}

func jobPath(id string) string { return "/v1/jobs/" + url.PathEscape(id) }

// CancelJob cancels a job that has not ended, and gives it.
func (c *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	answer, err := c.fetch(ctx, c.media(http.MethodDelete, jobPath(id), nil))
	if err != nil {
		return Job{}, err
	}
	return parseJob(answer)
}

// Delivery is a try to tell a job's webhook of its end.
type Delivery struct {
	Attempt int        `json:"attempt"`
	At      *time.Time `json:"at"`
	// Status is the receiver's answer, nil where there was none; Error says why.
	Status *int    `json:"status"`
	Error  *string `json:"error"`
	// NextAttemptAt is nil after the last try.
	NextAttemptAt *time.Time `json:"next_attempt_at"`

	// Raw is the whole record as it was sent.
	Raw json.RawMessage `json:"-"`
}

// Deliveries reads the tries to tell a job's webhook.
func (c *Client) Deliveries(ctx context.Context, id string) ([]Delivery, error) {
	var log struct {
		Deliveries []json.RawMessage `json:"deliveries"`
	}
	if err := c.get(ctx, c.media(http.MethodGet, jobPath(id)+"/deliveries", nil), &log); err != nil {
		return nil, err
	}
	deliveries := make([]Delivery, len(log.Deliveries))
	for i, raw := range log.Deliveries {
		deliveries[i].Raw = raw
		if err := decode(raw, &deliveries[i]); err != nil {
			return nil, err
		}
	}
	return deliveries, nil
}

// WebhookSecret reads what the account's webhooks are signed with.
func (c *Client) WebhookSecret(ctx context.Context) (string, error) {
	var answer struct {
		Secret string `json:"secret"`
	}
	err := c.get(ctx, c.media(http.MethodGet, "/v1/webhooks/secret", nil), &answer)
	return answer.Secret, err
}

// JobFilter chooses jobs of a list. The zero JobFilter chooses all.
type JobFilter struct{ Status, Model string }

// Jobs gives the account's jobs, newest first, at most as many as the limit says.
// It reads pages as they are needed. After an error there is nothing more.
func (c *Client) Jobs(ctx context.Context, filter JobFilter, limit int) iter.Seq2[Job, error] {
	query := url.Values{}
	if filter.Status != "" {
		query.Set("status", filter.Status)
	}
	if filter.Model != "" {
		query.Set("model", filter.Model)
	}
	return func(yield func(Job, error) bool) {
		for raw, err := range c.list(ctx, "/v1/jobs", "jobs", query, limit) {
			var job Job
			if err == nil {
				job, err = parseJob(raw)
			}
			if !yield(job, err) || err != nil {
				return
			}
		}
	}
}

// maxPage is how many items a page of a list has at most
// (docs/contract/limits.md#lists).
const maxPage = 1000

// list gives the items of a list that comes in pages, at most as many as the
// limit says.
func (c *Client) list(ctx context.Context, path, items string, query url.Values, limit int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for left := limit; left > 0; {
			query.Set("limit", strconv.Itoa(min(left, maxPage)))
			var page map[string]json.RawMessage
			var found []json.RawMessage
			var next *string
			err := c.get(ctx, c.media(http.MethodGet, path+"?"+query.Encode(), nil), &page)
			if err == nil {
				err = decode(page[items], &found)
			}
			if err == nil {
				err = decode(page["next_cursor"], &next)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range found {
				if !yield(item, nil) {
					return
				}
			}
			// A page may be empty though others follow: the service bounds how long it
			// looks for what a filter wants.
			if left -= len(found); next == nil {
				return
			}
			query.Set("cursor", *next)
		}
	}
}
