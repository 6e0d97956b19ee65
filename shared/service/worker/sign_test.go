package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
)

// marker is a signer that appends a text to a file, after a number of failures.
type marker struct{ failures atomic.Int64 }

var marked = job.Credentials{
	SourceType: "trainedAlgorithmicMedia", SignedBy: "Cutroom", SignedAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
}

func (m *marker) Sign(
	_ context.Context, spec engine.Spec, made engine.Outcome, mime, path string,
) (job.Credentials, error) {
	if m.failures.Add(-1) >= 0 {
		return job.Credentials{}, errors.New("the library failed")
	}
	output, err := os.ReadFile(spec.Output)
	if err == nil {
		err = os.WriteFile(path, append([]byte("signed by "+made.Engine+" as "+mime+": "), output...), 0o600)
	}
	return marked, err
}

// A result that cannot be signed is not delivered. The job is run again and finally fails.
func TestResultsAreSigned(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int64]job.Status{0: job.Completed, 1: job.Completed, job.MaxRuns: job.Failed} {
		s := newFixture(t)
		signer := &marker{}
		signer.failures.Store(failures)
		s.start(succeed, func(c *worker.Config) { c.Signer = signer })
		j := s.awaitEnd(s.submit("clip", 0))
		if j.Status != want || j.Runs != int(min(failures+1, job.MaxRuns)) {
			t.Fatalf("after %d failures: %s after %d runs: %+v", failures, j.Status, j.Runs, j.Failure)
		}
		if want == job.Failed {
			if *j.Failure != (job.Failure{Code: job.EngineError, Message: "The result could not be signed."}) || j.Result != nil {
				t.Errorf("it failed with %+v, %+v", j.Failure, j.Result)
			}
			continue
		}
		content, _ := s.read(j.Result.Blob)
		sum := sha256.Sum256(content)
		if string(content) != "signed by script as video/mp4: edited: clip" ||
			j.Result.Size != int64(len(content)) || j.Result.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("the result is %q, %+v", content, j.Result)
		}
		if j.Result.Credentials == nil || *j.Result.Credentials != marked {
			t.Errorf("got the credentials %+v", j.Result.Credentials)
		}
	}
}
