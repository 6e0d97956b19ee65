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
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/httpserver"
)

// See docs/contract/jobs.md#synchronous-calls.
const DefaultImageWait = 60 * time.Second

const cancelTime = 10 * time.Second

var (
	errWaitTimeout = errors.New("the wait for the job timed out")
	errStopping    = errors.New("the service is stopping")
)

// Generate is the group of image editing and the deprecated synchronous video routes
// (docs/contract/README.md#versioning).
func Generate(s *service) []route {
	return within(credential.ImageRoutes, []route{{
		method: http.MethodPost, path: "/v1/generate/{id}", access: keyOrToken, waits: true, handle: s.generate,
		serves: func(m *catalog.Model) bool { return m.Generate != catalog.NotGenerated },
	}})
}

// generate submits a job and waits for it. The response's x-job-id header is the job's id.
func (s *service) generate(w http.ResponseWriter, r *http.Request, c call) error {
	header := w.Header()
	if c.model.Generate == catalog.GenerateDeprecated {
		header.Set("Deprecation", "true")
		header.Set("Link", linkToJobs(r.PathValue("id"), "successor-version"))
	}
	if err := s.unlessRepeated(r, c, s.checkWarm(r.Context(), c.model)); err != nil {
		return err
	}
	accepted, err := s.submit(w, r, c, c.model.Form)
	if err != nil {
		return err
	}
	header.Set("X-Job-Id", accepted.ID)
	j, err := s.await(r.Context(), accepted, c.model, s.repeatable(r))
	if errors.Is(err, errWaitTimeout) {
		header.Add("Link", linkToJobs(accepted.ID, "status"))
		return fault.New(fault.Timeout, "The video is not ready yet; the job continues.")
	}
	if err != nil {
		return err
	}
	if j.Status == job.Failed {
		return failureOf(j)
	}
	// The result of an earlier request's job may have expired.
	if err := s.Jobs.CheckResult(j); err != nil {
		return err
	}
	return s.sendResult(w, r, j)
}

// The link is relative to /v1/generate/…, so it works below a prefix, such as an API Gateway stage.
func linkToJobs(name, relation string) string {
	return fmt.Sprintf("<../../v1/jobs/%s>; rel=%q", name, relation)
}

// coldRetry is the approximate startup time of a container.
const coldRetry = 45 * time.Second

// NoWorker is the logged reason for rejecting an image because no worker is warm.
const NoWorker = "no_worker"

// checkWarm rejects an image that no worker could edit in time for the waiting caller. Errors:
// fault.Unavailable with RetryAfter.
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
	cold := fault.New(fault.Unavailable,
		"No worker is running; one is starting. Try again, or submit the image as a job to /v1/jobs/%s.", m.ID)
	cold.RetryAfter = coldRetry
	httpserver.SetRefusal(ctx, NoWorker)
	return cold
}

// await waits until a job ends. It cancels the job if the caller disconnects, unless a retry could get the result.
// When the wait times out, it cancels an image job. For a video job, it returns errWaitTimeout.
func (s *service) await(ctx context.Context, accepted job.Job, m *catalog.Model, repeatable bool) (job.Job, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.Stopping, func() { stop(errStopping) })()
	limit := s.VideoWait
	if m.Kind == catalog.Image {
		limit = s.ImageWait
	}
	if limit > 0 {
		defer s.AfterWait(limit, func() { stop(errWaitTimeout) })()
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
		reason = job.Failure{Code: job.Cancelled, Message: "The service is stopping."}
	case !errors.Is(cause, errWaitTimeout) && repeatable:
		return j, ctx.Err()
	case !errors.Is(cause, errWaitTimeout):
		reason = job.Failure{Code: job.Cancelled, Message: "The caller did not wait for the result."}
	case m.Kind == catalog.Image:
		message := fmt.Sprintf("The image was not edited within %d seconds.", wholeSeconds(s.ImageWait))
		reason = job.Failure{Code: job.TimedOut, Message: message}
	default:
		return job.Job{}, errWaitTimeout
	}
	if j, err = s.cancel(ctx, accepted, reason); err == nil && ctx.Err() != nil {
		return j, ctx.Err() // the client has disconnected
	}
	return j, err
}

func (s *service) cancel(ctx context.Context, accepted job.Job, reason job.Failure) (job.Job, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	switch err := s.Jobs.Cancel(ctx, accepted.ID, reason); {
	case err == nil:
		if err := accepted.DeleteInputs(ctx, s.Blobs); err != nil { // a later sweep deletes them
			s.Logger.WarnContext(ctx, "cannot delete the inputs of a cancelled job", "job", accepted.ID, "error", err)
		}
	case !fault.Is(err, fault.Conflict):
		return job.Job{}, err
	}
	return s.Jobs.Get(ctx, accepted.Account, accepted.ID)
}

// failureOf reports an invalid input as a problem with the request's file. If the request has no file or several, it
// reports a problem with the body.
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
	case job.TimedOut, job.StartTimeout:
		return fault.New(fault.Timeout, "%s", message)
	case job.Cancelled:
		return fault.New(fault.Unavailable, "%s", message)
	}
	return fault.New(fault.EngineFailed, "%s", message)
}

func (s *service) sendResult(w http.ResponseWriter, r *http.Request, j job.Job) error {
	content, err := s.Blobs.Open(r.Context(), j.Result.Blob, 0, j.Result.Size)
	if err != nil {
		return fmt.Errorf("open the result: %w", err)
	}
	defer content.Close()
	header := w.Header()
	describeResult(header, j)
	describeOutcome(header, j)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.FormatInt(j.Result.Size, 10))
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(w, content); err != nil && r.Context().Err() == nil {
		// The client notices the failure, because it gets fewer bytes than Content-Length promised.
		s.log(r, fmt.Errorf("send the result: %w", err))
	}
	return nil
}
