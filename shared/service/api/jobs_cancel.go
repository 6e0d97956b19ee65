package api

import (
	"net/http"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// cancelJob is DELETE /v1/jobs/{id of a job}, an extension of this service.
// Cancelling a job again succeeds, so that a client may repeat a call whose
// response was lost.
func (s *service) cancelJob(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	if !j.Status.Terminal() {
		if j, err = s.cancel(r.Context(), j, job.CancelledFailure()); err != nil {
			return err
		}
	}
	switch {
	case j.Status == job.Completed:
		return fault.New(fault.Conflict, "The job is completed.")
	case j.Failure.Code != job.Cancelled:
		return fault.New(fault.Conflict, "The job failed (%s): %s", j.Failure.Code, j.Failure.Message)
	}
	s.writeJSON(w, r, http.StatusOK, s.jobBody(j))
	return nil
}

// namedJob returns the job that the path names.
//
// Errors: fault.NotFound; fault.Forbidden if the job's model is outside the
// caller's scope.
func (s *service) namedJob(r *http.Request, c call) (job.Job, error) {
	j, err := s.Jobs.Get(r.Context(), c.who.Account(), r.PathValue("id"))
	if err != nil {
		return job.Job{}, err
	}
	return j, s.checkModel(c.who, j.Model)
}
