package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// See docs/contract/jobs.md#states.
const (
	Pending    = "pending"
	Processing = "processing"
	Completed  = "completed"
	Failed     = "failed"
)

type Span struct {
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
}

// Job is a job record (docs/contract/media.md#job-record). The time of a state that the job has not reached is nil.
type Job struct {
	ID          string     `json:"job_id"`
	Status      string     `json:"status"`
	Model       string     `json:"model"`
	CreatedAt   *time.Time `json:"created_at"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Progress    float64    `json:"progress"`
	// QueuePosition is a pending job's position in the queue, counted from 1, or 0 if unknown.
	// EstimatedStart and EstimatedCompletion are nil if unknown.
	QueuePosition       int   `json:"queue_position"`
	EstimatedStart      *Span `json:"estimated_start_at"`
	EstimatedCompletion *Span `json:"estimated_completion_at"`
	// EstimatedSeconds is the engine's estimated run time, or nil if unknown.
	EstimatedSeconds *int64 `json:"estimated_seconds"`
	SecondsLeft      *int64 `json:"seconds_left"`
	Seed             uint32 `json:"seed"`
	// Prompt, Options and Inputs are copied from the request. In lists, long prompts are truncated.
	Prompt  string              `json:"prompt"`
	Options map[string]any      `json:"options"`
	Inputs  map[string]JobInput `json:"inputs"`
	// Planned describes the result before it exists. It is nil if unknown.
	Planned *Planned `json:"planned"`
	// Changed is false if the edit changed nothing but the size and frame rate. It is nil if unknown.
	Changed *bool `json:"changed"`
	// Engine is the engine that made the result. Understood lists the parts of the prompt that the
	// engine followed, or is nil if unknown. Notice contains the engine's remarks on the result.
	Engine     string     `json:"engine"`
	Understood []string   `json:"understood"`
	Notice     string     `json:"notice"`
	Result     *JobResult `json:"result"`
	// Cost is an estimate, or nil if unknown. Bill is a completed job's actual cost, or nil if the
	// model has no price.
	Cost  *Cost    `json:"estimated_cost"`
	Bill  *Cost    `json:"cost"`
	Error *Failure `json:"error"`

	Raw json.RawMessage `json:"-"`
}

// Planned is a size in pixels and a number of frames per second, which is 0 for an image.
type Planned struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	FPS    int `json:"fps"`
}

func (p Planned) String() string {
	if p.FPS == 0 {
		return fmt.Sprintf("%dx%d", p.Width, p.Height)
	}
	return fmt.Sprintf("%dx%d, %d frames per second", p.Width, p.Height, p.FPS)
}

type JobInput struct {
	Name string `json:"name"`
	MIME string `json:"mime"`
	Size int64  `json:"size_bytes"`
}

// See docs/contract/jobs.md#prices.
type Cost struct {
	Amount float64 `json:"amount"`
	// Currency is an ISO 4217 code.
	Currency string `json:"currency"`
}

type JobResult struct {
	MIME string `json:"mime"`
	// Size is in bytes, Width and Height are in pixels, and Duration is in seconds.
	Size      int64      `json:"size_bytes"`
	Width     int        `json:"width"`
	Height    int        `json:"height"`
	Duration  float64    `json:"duration"`
	ExpiresAt *time.Time `json:"expires_at"`
	// Credentials may be nil.
	Credentials *ContentCredentials `json:"content_credentials"`
}

// ContentCredentials states how a result was made (in IPTC's terms), who signed it, and when.
type ContentCredentials struct {
	SourceType string     `json:"source_type"`
	SignedBy   string     `json:"signed_by"`
	SignedAt   *time.Time `json:"signed_at"`
}

const Cancelled = "cancelled"

func (j Job) Cancelled() bool { return j.Error != nil && j.Error.Code == Cancelled }

type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (j Job) Ended() bool { return j.Status == Completed || j.Status == Failed }

func parseJob(raw json.RawMessage) (Job, error) {
	job := Job{Raw: raw}
	err := decode(raw, &job)
	return job, err
}

type Edit struct {
	// Model is an id or an alias.
	Model string
	// Data is the video or image to edit. Both Data and Reference, a reference image, may be nil.
	Data, Reference *Source
	// Fields contains the other fields of the model's form, such as "prompt".
	Fields map[string]string
}

// These fields are sent before the files, so that the service can reject an invalid request early.
var fieldOrder = []string{"prompt", "seed", "resolution", "orientation", "enhance_prompt", "self_anchor", "webhook_url",
	"webhook_events", "start_within", "result_ttl", "priority"}

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

// CreateJob submits an edit. If the request is too large, it first stores the inputs as files. The callback `sent`
// receives the progress and may be nil.
func (c *Client) CreateJob(ctx context.Context, edit Edit, sent Progress) (Job, error) {
	job, err := c.createJob(ctx, edit, sent)
	if !IsStatus(err, http.StatusRequestEntityTooLarge) {
		return job, err
	}
	for _, source := range []**Source{&edit.Data, &edit.Reference} {
		if *source == nil || (*source).Reference != "" {
			continue
		}
		stored, err := c.PutLargeFile(ctx, **source, inputAge, sent)
		if err != nil {
			return Job{}, err
		}
		*source = &Source{Reference: stored.ID}
	}
	return c.createJob(ctx, edit, nil)
}

// A file that is stored for a job is kept for an hour. Once accepted, the job has its own copy of the bytes.
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

func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	answer, err := c.fetch(ctx, c.media(http.MethodGet, jobPath(id), nil))
	if err != nil {
		return Job{}, err
	}
	return parseJob(answer)
}

func jobPath(id string) string { return "/v1/jobs/" + url.PathEscape(id) }

func (c *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	answer, err := c.fetch(ctx, c.media(http.MethodDelete, jobPath(id), nil))
	if err != nil {
		return Job{}, err
	}
	return parseJob(answer)
}

func (c *Client) DeleteJob(ctx context.Context, id string) error {
	_, err := c.fetch(ctx, c.media(http.MethodDelete, jobPath(id)+"?purge=true", nil))
	return err
}

type Share struct {
	URL       string     `json:"url"`
	ExpiresAt *time.Time `json:"expires_at"`

	Raw json.RawMessage `json:"-"`
}

// ShareJob creates a public link to a job's result. A lifetime of 0 means that the link lasts as long as the result.
func (c *Client) ShareJob(ctx context.Context, id string, lifetime time.Duration) (Share, error) {
	wanted := map[string]int64{}
	if lifetime > 0 {
		wanted["expires_in"] = int64(lifetime / time.Second)
	}
	body, err := jsonBody(wanted)
	if err != nil {
		return Share{}, err
	}
	answer, err := c.fetch(ctx, c.media(http.MethodPost, jobPath(id)+"/shares", body))
	if err != nil {
		return Share{}, err
	}
	share := Share{Raw: answer}
	return share, decode(answer, &share)
}

type Delivery struct {
	Attempt int        `json:"attempt"`
	At      *time.Time `json:"at"`
	// Status is the status of the receiver's response, or nil if there was no response. In that case Error says why.
	Status        *int       `json:"status"`
	Error         *string    `json:"error"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`

	Raw json.RawMessage `json:"-"`
}

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

func (c *Client) WebhookSecret(ctx context.Context) (string, error) {
	var answer struct {
		Secret string `json:"secret"`
	}
	err := c.get(ctx, c.media(http.MethodGet, "/v1/webhooks/secret", nil), &answer)
	return answer.Secret, err
}

// JobFilter selects jobs by status, model and search words. An empty field selects all jobs.
type JobFilter struct{ Status, Model, Search string }

// Jobs iterates over jobs, newest first, up to the limit. It stops after an error.
func (c *Client) Jobs(ctx context.Context, filter JobFilter, limit int) iter.Seq2[Job, error] {
	query := url.Values{}
	if filter.Status != "" {
		query.Set("status", filter.Status)
	}
	if filter.Model != "" {
		query.Set("model", filter.Model)
	}
	if filter.Search != "" {
		query.Set("q", filter.Search)
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

// See docs/contract/limits.md#lists.
const maxPage = 1000

// maxEmpty limits the number of consecutive empty pages.
const maxEmpty = 1000

func (c *Client) list(ctx context.Context, path, items string, query url.Values,
	limit int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		empty := 0
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
			// A page may be empty even if more pages follow, because searches have a time limit.
			if left -= len(found); next == nil {
				return
			}
			if len(found) > 0 {
				empty = 0
			} else if empty++; empty == maxEmpty {
				yield(nil, fmt.Errorf("the server returned %d empty pages in a row", empty))
				return
			}
			query.Set("cursor", *next)
		}
	}
}
