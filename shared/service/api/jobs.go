package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/trace"
)

// Jobs is the group of job creation and status (docs/contract/media.md#jobs), and
// of two extensions of this service: the list of an account's jobs, and their
// cancellation. A POST names a model where the other methods name a job.
func Jobs(s *service) []route {
	return []route{
		{method: http.MethodPost, path: "/v1/jobs/{id}", access: keyOrToken, serves: everyModel, form: jobForm, handle: s.createJob},
		{method: http.MethodGet, path: "/v1/jobs/{id}", access: keyOrToken, unlimited: true, handle: s.showJob},
		{method: http.MethodDelete, path: "/v1/jobs/{id}", access: keyOrToken, handle: s.cancelJob},
		{method: http.MethodGet, path: "/v1/jobs", access: keyOnly, handle: s.listJobs},
	}
}

func everyModel(*catalog.Model) bool { return true }

// createJob is POST /v1/jobs/{id or alias of a model}.
func (s *service) createJob(w http.ResponseWriter, r *http.Request, c call) error {
	accepted, err := s.submit(w, r, c, jobForm(c.model))
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, createdBody{accepted.ID, accepted.Status})
	return nil
}

type createdBody struct {
	ID     string     `json:"job_id"`
	Status job.Status `json:"status"`
}

// submit reads a request by the form, stores its files and has the job accepted.
// When it fails, nothing that it stored stays, unless the job may have been
// accepted all the same: the answer of a store can be lost. A request that was
// sent before under the same Idempotency-Key gets that one's job, as it was then.
//
// Errors: problems; those of the body, the stores, once and job.Service.
func (s *service) submit(w http.ResponseWriter, r *http.Request, c call, form *catalog.Form) (job.Job, error) {
	ctx, who, m := r.Context(), c.who, c.model
	if r.ContentLength > s.maxBody() {
		return job.Job{}, s.errBodyTooLarge()
	}
	id, err := s.Jobs.NewID()
	if err != nil {
		return job.Job{}, err
	}
	in := &inputs{storedBlobs: storedBlobs{service: s}, account: who.Account(), jobID: id}
	defer in.discard(ctx)

	upload, body, err := s.beginUpload(r, who)
	if err != nil {
		return job.Job{}, err
	}
	// What the job keeps is its own, for the minutes that it takes; the account's
	// storage is that of its files.
	defer s.endUpload(r, upload)
	in.upload, in.pardon = upload, func(refusal error) error { return s.unlessKnown(r, c, refusal) }
	sub, err := s.readForm(ctx, r, body, form, in)
	if err != nil {
		return job.Job{}, err
	}
	upload.Arrived()
	s.checkWebhook(sub)
	order, found := interpret(form, sub)
	if len(found) > 0 {
		return job.Job{}, found
	}
	asked := order.asked()
	if order.seed == nil {
		seed, err := s.Jobs.NewSeed()
		if err != nil {
			return job.Job{}, err
		}
		order.seed = &seed
	}
	accepted := job.Job{
		ID: id, Account: who.Account(), Key: who.Key.ID, Model: m.ID, Lane: job.LaneOf(m.Kind),
		Seed: *order.seed, Request: order.request, Webhook: order.webhook, Trace: trace.Parent(ctx),
	}
	earlier, err := s.once(w, r, c, creation{
		asked: asked, resource: id,
		made: func(ctx context.Context, id string) (answer []byte, made bool, err error) {
			made, err = s.Jobs.Resume(ctx, id)
			return nil, made, err
		},
		create: func(ctx context.Context) (answer []byte, err error) {
			if in.pardoned != nil {
				return nil, in.pardoned
			}
			in.kept = true
			accepted, err = s.Jobs.Submit(ctx, accepted, who.Tier.PendingJobs)
			in.kept = !refused(err)
			return nil, err
		},
	})
	if earlier != nil {
		return job.Job{ID: earlier.Resource, Account: who.Account(), Status: job.Pending}, nil
	}
	return accepted, err
}

// refused reports whether an error of a creation says for certain that nothing was
// made.
func refused(err error) bool {
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

// readForm reads the form of a request by its content type. A form without
// files may come urlencoded as well as in parts.
//
// Errors: problems; those of the body and the stores.
func (s *service) readForm(ctx context.Context, r *http.Request, b *body, form *catalog.Form, in *inputs) (submission, error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		return readURLEncoded(b, form)
	case err == nil && kind == "multipart/form-data" && parameters["boundary"] != "":
		return readMultipart(b, parameters["boundary"], form, func(p filePart) (*job.Input, *problem, error) { return in.take(ctx, p) })
	case form.URLEncoded:
		return nil, problems{bodyProblem("The body must be application/x-www-form-urlencoded, or multipart/form-data with a boundary.")}
	}
	return nil, problems{bodyProblem("The body must be multipart/form-data with a boundary.")}
}

// showJob is GET /v1/jobs/{id of a job}.
func (s *service) showJob(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, newJobBody(j))
	return nil
}

func newJobBody(j job.Job) jobBody {
	body := jobBody{
		ID: j.ID, Status: j.Status, Model: j.Model,
		CreatedAt: timestamp(j.CreatedAt), StartedAt: timestamp(j.StartedAt), CompletedAt: timestamp(j.CompletedAt),
		Progress: j.Progress, Seed: j.Seed, Failure: j.Failure,
	}
	if j.Result != nil {
		body.EnhancedPrompt = j.Result.EnhancedPrompt
	}
	return body
}

// jobBody is a job as its account sees it (docs/contract/media.md#job-record).
// Times that are still to come are null; error is there when the job has failed.
type jobBody struct {
	ID          string     `json:"job_id"`
	Status      job.Status `json:"status"`
	Model       string     `json:"model"`
	CreatedAt   *string    `json:"created_at"`
	StartedAt   *string    `json:"started_at"`
	CompletedAt *string    `json:"completed_at"`
	Progress    float64    `json:"progress"`
	Seed        uint32     `json:"seed"`
	// EnhancedPrompt is there when the job is completed and its prompt was
	// expanded.
	EnhancedPrompt string       `json:"enhanced_prompt,omitempty"`
	Failure        *job.Failure `json:"error,omitempty"`
}

// timestamp writes a time as RFC 3339 in UTC, to the millisecond; nil for the
// zero time.
func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return &text
}
