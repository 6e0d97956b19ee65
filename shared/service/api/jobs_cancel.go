package api

import (
	"net/http"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// deleteJob cancels a job (docs/contract/jobs.md#cancellation) or, with purge=true, deletes an
// ended job (docs/contract/jobs.md#deletion).
func (s *service) deleteJob(w http.ResponseWriter, r *http.Request, c call) error {
	purge, found := purgeQuery(r.URL.RawQuery)
	if len(found) > 0 {
		return found
	}
	if purge && c.who.Token != nil {
		return credential.ErrKeyRequired
	}
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	if !purge {
		return s.cancelJob(w, r, j)
	}
	if err := s.Jobs.Purge(r.Context(), j, s.Blobs); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// purgeQuery treats an empty value as absent.
func purgeQuery(raw string) (purge bool, found problems) {
	text := readQuery(raw)["purge"]
	if text == "" {
		return false, nil
	}
	field := &catalog.Field{Name: "purge", Type: catalog.Boolean}
	value, wrong := parse(field, &sent{name: field.Name, text: text})
	if wrong != nil {
		return false, problems{wrong.in("query")}
	}
	return value.(bool), nil
}

// Cancelling again succeeds, so a client may retry after a lost response.
func (s *service) cancelJob(w http.ResponseWriter, r *http.Request, j job.Job) (err error) {
	if !j.Status.Terminal() {
		if j, err = s.cancel(r.Context(), j, job.CancelledFailure()); err != nil {
			return err
		}
	}
	switch {
	case j.Status == job.Completed:
		return fault.New(fault.Conflict, "The job has already completed.")
	case j.Failure.Code != job.Cancelled:
		return fault.New(fault.Conflict, "The job failed (%s): %s", j.Failure.Code, j.Failure.Message)
	}
	s.writeJSON(w, r, http.StatusOK, s.jobBody(j))
	return nil
}

// namedJob returns the job in the path. Errors: fault.NotFound; fault.Forbidden if the job's model
// is outside the caller's scope.
func (s *service) namedJob(r *http.Request, c call) (job.Job, error) {
	j, err := s.Jobs.Get(r.Context(), c.who.Account(), r.PathValue("id"))
	if err != nil {
		return job.Job{}, err
	}
	return j, s.checkModel(c.who, j.Model)
}
