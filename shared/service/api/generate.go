package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// DefaultImageWait is how long a caller waits for an edited image at most
// (docs/contract/jobs.md#synchronous-calls).
const DefaultImageWait = 60 * time.Second

// cancelTime is how long the cancellation of a job may take.
const cancelTime = 10 * time.Second

var (
	errWaitOver = errors.New("the time to wait is over")
	errStopping = errors.New("the service is stopping")
)

// Generate is the group of image editing and of the deprecated synchronous
// video routes (docs/contract/media.md#images and
// docs/contract/README.md#versioning).
func Generate(s *service) []route {
	return []route{{
		method: http.MethodPost, path: "/v1/generate/{id}", access: keyOrToken, serves: isGenerated, handle: s.generate,
	}}
}

func isGenerated(m *catalog.Model) bool { return m.Generate != catalog.NotGenerated }

// generate is POST /v1/generate/{id or alias of a model}: a job like any other,
// whose caller waits for it. The header x-job-id names the job.
func (s *service) generate(w http.ResponseWriter, r *http.Request, c call) error {
	header := w.Header()
	if c.model.Generate == catalog.GenerateDeprecated {
		header.Set("Deprecation", "true")
		header.Set("Link", linkToJobs(r.PathValue("id"), "successor-version"))
	}
	if err := s.unlessKnown(r, c, s.checkWarm(r.Context(), c.model)); err != nil {
		return err
	}
	accepted, err := s.submit(w, r, c, c.model.Form)
	if err != nil {
		return err
	}
	header.Set("X-Job-Id", accepted.ID)
	j, err := s.await(r.Context(), accepted, c.model, s.repeatable(r))
	if errors.Is(err, errWaitOver) {
		header.Add("Link", linkToJobs(accepted.ID, "status"))
		return fault.New(fault.Timeout, "The video is not ready; the job goes on.")
	}
	if err != nil {
		return err
	}
	if j.Status == job.Failed {
		return failureOf(j)
	}
	// A job of an earlier request may have ended long ago.
	if err := s.Jobs.CheckResult(j); err != nil {
		return err
	}
	return s.sendResult(w, r, j)
}

// linkToJobs gives a Link to what a name stands for under /v1/jobs/. It is relative
// to /v1/generate/…, so that it holds below a prefix too, as a stage of API
// Gateway is.
func linkToJobs(name, relation string) string {
	return fmt.Sprintf("<../../v1/jobs/%s>; rel=%q", name, relation)
}

// coldRetry is when to come back for an image that no worker was there for: a
// container takes about that long to start.
const coldRetry = 45 * time.Second

// checkWarm refuses an image that nobody would edit within the time that its
// caller waits.
//
// Errors: fault.Unavailable with RetryAfter.
func (s *service) checkWarm(ctx context.Context, m *catalog.Model) error {
	if s.Warm == nil || m.Kind != catalog.Image {
		return nil
	}
	warm, err := s.Warm(ctx, job.LaneOf(m.Kind))
	if err != nil {
		return fmt.Errorf("look for a worker: %w", err)
	}
	if warm {
		return nil
	}
	cold := fault.New(fault.Unavailable, "No worker is running; one is being started. Try again, or submit the image as a job to /v1/jobs/%s.", m.ID)
	cold.RetryAfter = coldRetry
	return cold
}

// await waits for a job that has just been accepted to end. A job that nobody
// waits for any more is cancelled, unless its caller can come back for it, and so
// is an image that is late; a video goes on after its wait, and errWaitOver says so.
func (s *service) await(ctx context.Context, accepted job.Job, m *catalog.Model, repeatable bool) (job.Job, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.Stopping, func() { stop(errStopping) })()
	limit := s.VideoWait
	if m.Kind == catalog.Image {
		limit = s.ImageWait
	}
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { stop(errWaitOver) })
		defer timer.Stop()
	}
	j, err := s.Jobs.Wait(waiting, accepted.Account, accepted.ID)
	if waiting.Err() == nil {
		return j, err
	}
	var reason job.Failure
	switch cause := context.Cause(waiting); {
	case errors.Is(cause, errStopping) && repeatable:
		return job.Job{}, fault.New(fault.Unavailable, "The service is stopping. Send the request again.")
	case errors.Is(cause, errStopping):
		reason = job.Failure{Code: job.Cancelled, Message: "The service was stopped."}
	case !errors.Is(cause, errWaitOver) && repeatable:
		return j, ctx.Err()
	case !errors.Is(cause, errWaitOver):
		reason = job.Failure{Code: job.Cancelled, Message: "The caller did not wait for the result."}
	case m.Kind == catalog.Image:
		reason = job.Failure{Code: job.TimedOut, Message: fmt.Sprintf("The image was not edited within %d seconds.", wholeSeconds(s.ImageWait))}
	default:
		return job.Job{}, errWaitOver
	}
	if j, err = s.cancel(ctx, accepted, reason); err == nil && ctx.Err() != nil {
		return j, ctx.Err() // there is nobody to tell
	}
	return j, err
}

// cancel ends a job for a reason, and gives it as it has ended: the job itself
// may have been faster.
func (s *service) cancel(ctx context.Context, accepted job.Job, reason job.Failure) (job.Job, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	if err := s.Jobs.Cancel(ctx, accepted.ID, reason); err != nil && !fault.Is(err, fault.Conflict) {
		return job.Job{}, err
	}
	return s.Jobs.Get(ctx, accepted.Account, accepted.ID)
}

// failureOf is the error for the caller who waited for a job that has failed. An
// input that cannot be edited is a problem of the request: of the file where
// there is one, else of the body.
func failureOf(j job.Job) error {
	message := j.Failure.Message
	switch j.Failure.Code {
	case job.InvalidInput:
		if len(j.Request.Inputs) == 1 {
			for field := range j.Request.Inputs {
				return problems{valueProblem(field, nil, message)}
			}
		}
		return problems{bodyProblem(message)}
	case job.TimedOut:
		return fault.New(fault.Timeout, "%s", message)
	case job.Cancelled:
		return fault.New(fault.Unavailable, "%s", message)
	}
	return fault.New(fault.EngineFailed, "%s", message)
}

// sendResult answers with a completed job's result.
func (s *service) sendResult(w http.ResponseWriter, r *http.Request, j job.Job) error {
	content, err := s.Blobs.Open(r.Context(), j.Result.Blob, 0, j.Result.Size)
	if err != nil {
		return fmt.Errorf("open the result: %w", err)
	}
	defer content.Close()
	header := w.Header()
	describeResult(header, j)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.FormatInt(j.Result.Size, 10))
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(w, content); err != nil && r.Context().Err() == nil {
		// The answer is shorter than it said, which the client sees.
		s.log(r, fmt.Errorf("send the result: %w", err))
	}
	return nil
}
