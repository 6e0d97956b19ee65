package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine/preview/understanding"
	"cutroom/shared/platform/trace"
)

// Jobs is the group for creating, reading, listing and cancelling jobs. In a POST, the path names a model. For other
// methods, the path names a job.
func Jobs(s *service) []route {
	return within(credential.JobRoutes, []route{
		{method: http.MethodPost, path: "/v1/jobs/{id}", access: keyOrToken, serves: everyModel, form: jobForm,
			handle: s.createJob},
		{method: http.MethodGet, path: "/v1/jobs/{id}", access: keyOrToken, unlimited: true, handle: s.showJob},
		{method: http.MethodDelete, path: "/v1/jobs/{id}", access: keyOrToken, handle: s.deleteJob},
		{method: http.MethodPost, path: "/v1/jobs/{id}/shares", access: keyOnly, handle: s.createShare},
		{method: http.MethodGet, path: "/v1/jobs", access: keyOnly, handle: s.inTurn(s.listJobs)},
	})
}

func everyModel(*catalog.Model) bool { return true }

func (s *service) createJob(w http.ResponseWriter, r *http.Request, c call) error {
	accepted, err := s.submit(w, r, c, jobForm(c.model))
	if err != nil {
		return err
	}
	if wait := preferredWait(r.Header); wait > 0 {
		if j, err := s.Jobs.Get(r.Context(), accepted.Account, accepted.ID); err == nil {
			j, _ = s.awaitJob(r, c, j, time.Duration(wait)*time.Second) // after an error, the caller gets the open job
			w.Header().Set("Preference-Applied", fmt.Sprint("wait=", wait))
			s.writeJSON(w, r, http.StatusOK, s.followedBody(r.Context(), c, j))
			return nil
		}
	}
	s.writeJSON(w, r, http.StatusOK, createdBody{accepted.ID, accepted.Status})
	return nil
}

type createdBody struct {
	ID     string     `json:"job_id"`
	Status job.Status `json:"status"`
}

// submit reads a request's form, stores its files and submits the job. If that fails, it deletes the files, unless
// the job may have been accepted: the store's response can get lost. A retry with the same Idempotency-Key gets the
// original job. Errors: problems; as for s.once and job.Service.
func (s *service) submit(w http.ResponseWriter, r *http.Request, c call, form *catalog.Form) (job.Job, error) {
	read := func(ctx context.Context, r *http.Request, b *body, in *inputs) (*catalog.Form, submission, error) {
		sub, err := s.readForm(ctx, r, b, form, in)
		return form, sub, err
	}
	accepted, err := s.submitAll(w, r, &c, read)
	if err != nil {
		return job.Job{}, err
	}
	return accepted[0], nil
}

// readRequest reads a request's body, stores its files, and returns the model's form and its fields.
type readRequest func(context.Context, *http.Request, *body, *inputs) (*catalog.Form, submission, error)

// submitAll submits a job and in.copies more jobs with other seeds. The function read may set c.model and in.copies.
func (s *service) submitAll(w http.ResponseWriter, r *http.Request, c *call, read readRequest) (accepted []job.Job, err error) {
	ctx, who := r.Context(), c.who
	if r.ContentLength > s.maxBody() {
		return nil, s.errBodyTooLarge()
	}
	id, err := s.Jobs.NewID()
	if err != nil {
		return nil, err
	}
	in := &inputs{storedBlobs: storedBlobs{service: s}, account: who.Account(), jobID: id}
	defer in.discard(ctx)

	upload, body, err := s.beginUpload(r, who)
	if err != nil {
		return nil, err
	}
	// Always release the reservation, because input files belong to the job and do not count toward the account's
	// storage.
	defer s.endUpload(r, upload)
	in.upload, in.unlessRepeated = upload, func(full error) error { return s.unlessRepeated(r, *c, full) }
	in.earlier = func() string { return s.earlier(r, *c) }
	form, sub, err := read(ctx, r, body, in)
	if err != nil {
		return nil, err
	}
	upload.Arrived()
	s.checkWebhook(sub)
	s.checkPriority(sub)
	order, found := interpret(form, sub)
	if len(found) > 0 {
		return nil, found
	}
	asked := order.asked()
	if in.copies > 0 {
		asked = []any{asked, in.copies}
	}
	if order.seed == nil {
		seed, err := s.Jobs.NewSeed()
		if err != nil {
			return nil, err
		}
		order.seed = &seed
	}
	first := job.Job{
		ID: id, Account: who.Account(), Key: who.Key.ID, Model: c.model.ID, Lane: job.LaneOf(c.model.Kind),
		Seed: *order.seed, Request: order.request, Webhook: order.webhook, Trace: trace.Parent(ctx),
	}
	first.Request.Label = who.Scope().Label
	defer func() {
		if err != nil {
			s.cancelAll(ctx, accepted)
		}
	}()
	// Submit the copies before the first job, because the first job's inputs are deleted when it ends.
	for n := range in.copies {
		j, err := s.submitCopy(w, r, *c, n+1, asked, first, in)
		if err != nil {
			return accepted, err
		}
		accepted = append(accepted, j)
	}
	j, err := s.submitOnce(w, r, *c, asked, first, in)
	if err != nil {
		return accepted, err
	}
	return append(accepted, j), nil
}

func (s *service) submitCopy(
	w http.ResponseWriter, r *http.Request, c call, nth int, asked any, first job.Job, in *inputs,
) (job.Job, error) {
	id, err := s.Jobs.NewID()
	if err != nil {
		return job.Job{}, err
	}
	c.copy = nth
	first.ID, first.Seed = id, first.Seed+uint32(nth)
	first.Request.Inputs = maps.Clone(first.Request.Inputs)
	copied := &inputs{
		storedBlobs: storedBlobs{service: s, upload: in.upload, full: in.full}, clip: in.clip, size: in.size, rate: in.rate,
	}
	for field, input := range first.Request.Inputs {
		from := cmp.Or(input.File, input.Blob)
		input.Blob = s.Jobs.InputBlob(id, field)
		first.Request.Inputs[field] = input
		copied.references = append(copied.references,
			fileReference{from, input.Blob, valueProblem(field, nil, "The file was deleted.")})
	}
	defer copied.discard(r.Context())
	return s.submitOnce(w, r, c, asked, first, copied)
}

func (s *service) cancelAll(ctx context.Context, accepted []job.Job) {
	for _, j := range accepted {
		if _, err := s.cancel(ctx, j, job.CancelledFailure()); err != nil {
			s.Logger.WarnContext(ctx, "cannot cancel a job", "job", j.ID, "error", err)
		}
	}
}

// promptWait limits the wait until an account's earlier prompts have been read.
const promptWait = 10 * time.Second

// plan adds the price, and the size and length that the result will have according to the prompt. It returns the length,
// or 0 if it is unknown. It is called only for new jobs, because reading a prompt takes milliseconds. Errors: as for
// readPrompt.
func (s *service) plan(ctx context.Context, c call, request *job.Request, in *inputs) (length time.Duration, err error) {
	m := c.model
	var read understanding.Result // stays empty for other engines
	if s.Engine.isPreview() {
		read, err = readPrompt(ctx, s.promptTurns, c.who.Account(), promptWait, understanding.Request{
			Kind: m.Kind, Prompt: request.Prompt, Reference: request.Inputs[catalog.ReferenceField].Blob != "",
		})
		if err != nil {
			return 0, err
		}
	}
	edited := len(read.Edits) > 0 && in.clip > 0
	if length = in.clip; edited {
		length = read.Length(in.clip)
	}
	if request.Length = lengthOf(m, in.clip); edited {
		request.Length, request.Clip = length, in.clip
	}
	if m.Price != nil {
		request.Price = m.Price.At(request.Option(catalog.ResolutionField))
	}
	if request.Inputs[catalog.DataField].Blob == "" || in.size.Width > 0 && in.size.Height > 0 {
		plan := read.Planned(m.Plan(
			request.Option(catalog.ResolutionField), request.Option("orientation"), in.size, in.rate,
		))
		request.Planned = &plan
	}
	return length, nil
}

// submitOnce returns the job created for this request, or for an earlier request with the same Idempotency-Key.
// Errors: problems if the edit would take too long; as for s.once and job.Service.
func (s *service) submitOnce(
	w http.ResponseWriter, r *http.Request, c call, asked any, accepted job.Job, in *inputs,
) (job.Job, error) {
	earlier, err := s.once(w, r, c, creation{
		asked: asked, resource: accepted.ID,
		made: func(ctx context.Context, id string) (answer []byte, made bool, err error) {
			made, err = s.Jobs.Resume(ctx, id)
			return nil, made, err
		},
		create: func(ctx context.Context) (answer []byte, err error) {
			if in.full != nil {
				return nil, in.full
			}
			length, err := s.plan(ctx, c, &accepted.Request, in)
			if err != nil {
				return nil, err
			}
			if err := s.estimate(ctx, c.model, &accepted, length); err != nil {
				return nil, err
			}
			if err := in.upload.CheckSpace(ctx); err != nil {
				return nil, err
			}
			if err := in.copyReferences(ctx); err != nil {
				return nil, err
			}
			in.kept = true
			accepted, err = s.Jobs.Submit(ctx, accepted, c.who.Tier.PendingJobs, c.wait)
			in.kept = !rejected(err)
			return nil, err
		},
	})
	if earlier != nil {
		return job.Job{ID: earlier.Resource, Account: c.who.Account(), Status: job.Pending}, nil
	}
	return accepted, err
}

// rejected reports whether an error from create proves that nothing was created.
func rejected(err error) bool {
	if invalid := (problems)(nil); errors.As(err, &invalid) {
		return true
	}
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case fault.Internal, fault.Unavailable, fault.Timeout:
		return false
	}
	return true
}

// A form without files may also be URL-encoded.
func (s *service) readForm(
	ctx context.Context, r *http.Request, b *body, form *catalog.Form, in *inputs,
) (submission, error) {
	kind, parameters, err := contentType(r)
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		return readURLEncoded(b, form)
	case err == nil && kind == "multipart/form-data" && parameters["boundary"] != "":
		take := func(p filePart) (*job.Input, *problem, error) { return in.take(ctx, p) }
		return readMultipart(b, parameters["boundary"], form.Field, take)
	case err == nil && kind == "application/json":
		return s.readJSONForm(ctx, r, b, form, in)
	case form.URLEncoded:
		return nil, problems{bodyProblem("The body must be application/x-www-form-urlencoded, multipart/form-data with a " +
			"boundary, or application/json.")}
	}
	return nil, problems{bodyProblem("The body must be multipart/form-data with a boundary, or application/json.")}
}

// readJSONForm reads a form as a JSON object. A file is a string with a URL or the id of a stored file.
func (s *service) readJSONForm(
	ctx context.Context, r *http.Request, b *body, form *catalog.Form, in *inputs,
) (submission, error) {
	sub := submission{}
	err := s.eachMember(ctx, r, b, in, func(name string, value json.RawMessage) error {
		field, known := form.Field(name)
		if !known {
			return nil
		}
		text, isFile := string(value), field.Type.IsFile()
		isText := json.Unmarshal(value, &text) == nil
		if isFile && text == "" || !isFile && isAbsent(field, shorten(text)) {
			return nil
		}
		sent := sub.begin(field, name)
		switch {
		case sent == nil: // the field was also sent by its other name
			return nil
		case !isText && (isFile || strings.Contains("[{", text[:1])):
			sent.problems = append(sent.problems, notText(name, value))
			return nil
		case !isFile:
			sent.text = shorten(text)
			return nil
		}
		input, wrong, err := in.take(ctx, filePart{field: field, name: name, content: strings.NewReader(text)})
		if wrong != nil {
			sent.problems = append(sent.problems, *wrong)
		}
		sent.input = input
		return err
	})
	return sub, err
}

func (s *service) showJob(w http.ResponseWriter, r *http.Request, c call) error {
	wait, err := waitQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	j, err := s.namedJob(r, c)
	if err == nil {
		j, err = s.awaitJob(r, c, j, wait)
	}
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, s.followedBody(r.Context(), c, j))
	return nil
}

// followedBody includes a pending job's outlook, for clients that poll the job.
func (s *service) followedBody(ctx context.Context, c call, j job.Job) jobBody {
	body := s.jobBody(j)
	if outlook, known := s.Jobs.Outlook(ctx, j); known {
		body.QueuePosition = outlook.Position
		body.EstimatedStart, body.EstimatedCompletion = newSpanBody(outlook.Start), newSpanBody(outlook.Completion)
	}
	return body
}

type spanBody struct {
	Earliest *string `json:"earliest"`
	Latest   *string `json:"latest"`
}

func newSpanBody(s *job.Span) *spanBody {
	if s == nil {
		return nil
	}
	return &spanBody{timestamp(s.Earliest), timestamp(s.Latest)}
}

func (s *service) jobBody(j job.Job) jobBody {
	resultAge, _ := s.Jobs.Ages()
	return newJobBody(j, s.Jobs.Now(), resultAge)
}

func newJobBody(j job.Job, now time.Time, resultAge time.Duration) jobBody {
	body := jobBody{
		ID: j.ID, Status: j.Status, Model: j.Model,
		CreatedAt: timestamp(j.CreatedAt), StartedAt: timestamp(j.StartedAt), CompletedAt: timestamp(j.CompletedAt),
		Progress: j.Progress, Seed: j.Seed, Failure: j.Failure,
		askedBody: newAskedBody(j.Request), Planned: j.Request.Planned, Result: newResultBody(j, resultAge),
		Estimate: newCostBody(j), Cost: newBillBody(j),
	}
	if left, known := j.Left(now); known {
		body.SecondsLeft = new(wholeSeconds(left))
	}
	if j.Estimate > 0 {
		body.EstimatedSeconds = new(max(1, wholeSeconds(j.Estimate)))
	}
	if changed, known := j.Changed(); known {
		body.Changed = &changed
	}
	if j.Result != nil {
		body.EnhancedPrompt = j.Result.EnhancedPrompt
		body.Engine, body.Understood, body.Notice = j.Result.Engine, j.Result.Understood, j.Result.Notice
	}
	return body
}

// See docs/contract/media.md#job-record. Times that have not been reached are null.
type jobBody struct {
	ID          string     `json:"job_id"`
	Status      job.Status `json:"status"`
	Model       string     `json:"model"`
	CreatedAt   *string    `json:"created_at"`
	StartedAt   *string    `json:"started_at"`
	CompletedAt *string    `json:"completed_at"`
	Progress    float64    `json:"progress"`
	// A pending job's outlook (docs/contract/jobs.md#outlook). Absent if unknown.
	QueuePosition       int       `json:"queue_position,omitempty"`
	EstimatedStart      *spanBody `json:"estimated_start_at,omitempty"`
	EstimatedCompletion *spanBody `json:"estimated_completion_at,omitempty"`
	// EstimatedSeconds is the engine's estimate when the job was accepted. It is absent if unknown.
	EstimatedSeconds *int64 `json:"estimated_seconds,omitempty"`
	// SecondsLeft is absent if the time until the job ends cannot be estimated.
	SecondsLeft *int64 `json:"seconds_left,omitempty"`
	Seed        uint32 `json:"seed"`
	askedBody
	EnhancedPrompt string `json:"enhanced_prompt,omitempty"`
	// See docs/contract/jobs.md#engine-report.
	Changed    *bool    `json:"changed,omitempty"`
	Engine     string   `json:"engine,omitempty"`
	Understood []string `json:"understood,omitzero"`
	Notice     string   `json:"notice,omitempty"`
	// Planned is absent if the input's header did not show its size.
	Planned *catalog.Plan `json:"planned,omitempty"`
	Result  *resultBody   `json:"result,omitempty"`
	// Estimate is absent if the model has no price or the length is unknown.
	Estimate *costBody    `json:"estimated_cost,omitempty"`
	Cost     *billBody    `json:"cost,omitempty"`
	Failure  *job.Failure `json:"error,omitempty"`
}

// timestamp formats a time in UTC with milliseconds. It returns nil for the zero time.
func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return &text
}
