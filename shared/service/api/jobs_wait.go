package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

const (
	// maxJobWait is in seconds.
	maxJobWait int64 = 60
	// answerTime is reserved for the response. A wait ends this long before a function's timeout.
	answerTime = 4 * time.Second
)

// waitQuery returns the value of the query's wait parameter, or 0. Errors: problems.
func waitQuery(raw string) (time.Duration, error) {
	text := readQuery(raw)["wait"]
	if text == "" {
		return 0, nil
	}
	field := &catalog.Field{Name: "wait", Type: catalog.Integer, Min: new(int64(0)), Max: new(maxJobWait)}
	value, wrong := parse(field, &sent{name: field.Name, text: text})
	if wrong != nil {
		return 0, problems{wrong.in("query")}
	}
	return time.Duration(value.(int64)) * time.Second, nil
}

// preferredWait returns the wait in a Prefer header (RFC 7240) in seconds, or 0.
func preferredWait(header http.Header) int64 {
	for preference := range strings.SplitSeq(header.Get("Prefer"), ",") {
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "wait") {
			seconds, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 31) // a malformed wait is ignored
			return min(int64(seconds), maxJobWait)
		}
	}
	return 0
}

// awaitJob waits until the job ends, the time has passed, the caller disconnects or the service stops. It returns the
// job as last read, even with an error. A waiting call counts toward the limit on event streams.
func (s *service) awaitJob(r *http.Request, c call, j job.Job, wait time.Duration) (job.Job, error) {
	if j.Status.Terminal() || wait == 0 || r.Method == http.MethodHead {
		return j, nil
	}
	leave, err := s.enterStream(c.who)
	if err != nil {
		return j, err
	}
	defer leave()
	ctx, cancel := limited(r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(s.Draining, cancel)()
	for changed, err := range s.Jobs.Changes(ctx, j.Account, j.ID) {
		switch {
		case err == nil:
			j = changed
		case ctx.Err() == nil:
			return j, err
		}
	}
	return j, s.Authenticator.Recheck(r.Context(), c.who)
}
