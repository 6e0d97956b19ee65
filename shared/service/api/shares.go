package api

import (
	"net/http"
	"net/url"
	"time"

	"cutroom/shared/domain/job"
)

// followed by a job's id
const sharesPath = "/v1/shares/"

// maxShare is in seconds. Deleting the result also ends the share.
const maxShare = 30 * 24 * 60 * 60

type shareBody struct {
	URL       string  `json:"url"`
	ExpiresAt *string `json:"expires_at"`
}

// See docs/contract/jobs.md#shares.
func (s *service) createShare(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	lifetime, found := sent.integer("expires_in", 1, maxShare)
	if len(found) > 0 {
		return found
	}
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	if err := s.Jobs.CheckResult(j); err != nil {
		return err
	}
	resultAge, _ := s.Jobs.Ages()
	until := j.ResultExpiry(resultAge)
	if lifetime != nil {
		if asked := s.Jobs.Now().Add(time.Duration(*lifetime) * time.Second); asked.Before(until) {
			until = asked
		}
	}
	until = until.Truncate(time.Second)
	link, err := s.shareURL(r, j, until)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, shareBody{link, timestamp(until)})
	return nil
}

func (s *service) shareURL(r *http.Request, j job.Job, until time.Time) (string, error) {
	share, err := s.Shares.Sign(r.Context(), j.ID, until)
	query := url.Values{"expires": {share.Expires}, "signature": {share.Signature}}
	return base(r) + sharesPath + j.ID + "?" + query.Encode(), err
}

// showShared names the file after the job's id, so that neither the prompt nor the source is revealed.
func (s *service) showShared(w http.ResponseWriter, r *http.Request, _ call) error {
	ctx, id, query := r.Context(), r.PathValue("job_id"), readQuery(r.URL.RawQuery)
	header := w.Header()
	// The link grants access, so browsers must not leak it and search engines must not index it.
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Robots-Tag", "noindex")
	share := job.Share{Expires: query["expires"], Signature: query["signature"]}
	if err := s.Shares.Check(ctx, id, share); err != nil {
		return err
	}
	j, err := s.Jobs.Shared(ctx, id)
	if err != nil {
		return err
	}
	return s.sendBlob(w, r, resultOf(j, j.ID))
}
