package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/origin"
)

type Verifier interface {
	// Verify returns origin.ErrNoReader if this machine cannot verify files.
	Verify(ctx context.Context, file *os.File) (origin.Report, error)
}

// verifyRetry is the Retry-After value when too many files are being verified.
const verifyRetry = 5 * time.Second

var errNoVerifier = fault.New(fault.NotFound, "This service cannot verify Content Credentials because libc2pa_c is not "+
	"installed. Use cutroom inspect or another C2PA reader.")

func Credentials(s *service) []route {
	return append(within(credential.JobRoutes, []route{
		{method: http.MethodGet, path: "/v1/jobs/{id}/credentials", access: keyOrToken, handle: s.showCredentials},
	}), within(credential.FileRoutes, []route{
		{method: http.MethodGet, path: "/v1/uploads/{file_id}/credentials", access: keyOrToken, handle: s.showFileCredentials},
	})...)
}

// See docs/contract/jobs.md#content-credentials.
func (s *service) showCredentials(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err == nil {
		err = s.Jobs.CheckResult(j)
	}
	if err != nil {
		return err
	}
	return s.sendCredentials(w, r, c, j.Result.Blob, j.Result.Size, job.ErrResultExpired)
}

// See docs/contract/media.md#credentials-of-files.
func (s *service) showFileCredentials(w http.ResponseWriter, r *http.Request, c call) error {
	f, err := s.Files.Get(r.Context(), c.who.Account(), r.PathValue("file_id"))
	if err == nil {
		err = batch.CheckResult(c.who, f)
	}
	if err != nil {
		return err
	}
	return s.sendCredentials(w, r, c, f.Blob, f.Size, file.ErrNotFound)
}

// sendCredentials verifies a blob and responds with the report. Accounts take turns, because verifying a hostile file
// can take long. The parameter gone is the error to return if the blob has just been deleted.
func (s *service) sendCredentials(
	w http.ResponseWriter, r *http.Request, c call, name string, size int64, gone error,
) error {
	if s.Verifier == nil {
		return errNoVerifier
	}
	if s.MaxVerified > 0 && size > s.MaxVerified {
		return fault.New(fault.TooLarge, "The file has %d bytes; this service verifies files of at most %d bytes. "+
			"Use cutroom inspect or another C2PA reader.", size, s.MaxVerified)
	}
	report, known := s.slowFiles.report(name)
	if known {
		s.writeJSON(w, r, http.StatusOK, report)
		return nil
	}
	waiting, cancel := context.WithTimeout(r.Context(), turnWait)
	defer cancel()
	begun, late := false, false
	err := s.verifyTurns.Slowly(waiting, c.who.Account(), 4, func() (err error) {
		begun = true
		ctx, cancel := r.Context(), func() {}
		if s.VerifyTime > 0 {
			ctx, cancel = context.WithTimeout(ctx, s.VerifyTime)
		}
		defer cancel()
		report, err = s.slowFiles.verify(name, func() (origin.Report, error) { return s.verify(ctx, name) })
		late = ctx.Err() != nil && r.Context().Err() == nil
		return err
	})
	if !begun {
		busy := fault.New(fault.Unavailable, "Other files are being verified. Try again.")
		busy.RetryAfter = verifyRetry
		return cmp.Or(r.Context().Err(), error(busy))
	}
	switch {
	case err != nil && late:
		return fault.New(fault.Timeout, "Verifying the file took too long. Use cutroom inspect or another C2PA reader.")
	case fault.Is(err, fault.NotFound):
		return gone
	case errors.Is(err, origin.ErrNoReader):
		return errNoVerifier
	case err != nil:
		return fmt.Errorf("verify Content Credentials: %w", err)
	}
	s.writeJSON(w, r, http.StatusOK, report)
	return nil
}

// slowFiles has the recent reports of files that could not be verified in a reasonable time. These files are not read
// again for a while. The machine may only have been busy.
type slowFiles struct {
	mu      sync.Mutex
	reports map[string]slowReport
}

type slowReport struct {
	origin.Report
	at time.Time
}

const (
	maxSlowFiles = 1000
	slowFileTime = 10 * time.Minute
)

func (f *slowFiles) report(name string) (report origin.Report, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.reports[name]
	return kept.Report, !kept.at.IsZero() && time.Since(kept.at) < slowFileTime
}

func (f *slowFiles) verify(name string, verify func() (origin.Report, error)) (origin.Report, error) {
	began := time.Now()
	report, err := verify()
	if err == nil && report.State == origin.Unreadable && time.Since(began) > time.Second {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.reports == nil || len(f.reports) == maxSlowFiles {
			f.reports = map[string]slowReport{}
		}
		f.reports[name] = slowReport{report, time.Now()}
	}
	return report, err
}

// verify returns fault.NotFound if the blob is gone.
func (s *service) verify(ctx context.Context, name string) (report origin.Report, err error) {
	folder, err := os.MkdirTemp(s.Scratch, "credentials-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "file")
	if err := blob.Fetch(ctx, s.Blobs, name, path); err != nil {
		return report, err
	}
	opened, err := os.Open(path)
	if err != nil {
		return report, err
	}
	defer opened.Close()
	return s.Verifier.Verify(ctx, opened)
}
