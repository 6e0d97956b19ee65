package worker_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
)

// header describes a video from its header. The description is complete if the file contains "plain".
type header struct{}

func (header) DescribeVideo(path, _ string) (media.Info, bool, error) {
	content, err := os.ReadFile(path)
	return media.Info{Width: 1080, Height: 1920}, strings.Contains(string(content), "plain"), err
}

type countedProber struct {
	prober
	probes *atomic.Int32
}

func (p countedProber) ProbeVideo(ctx context.Context, path, mime string) (media.Info, error) {
	p.probes.Add(1)
	return p.prober.ProbeVideo(ctx, path, mime)
}

func (p countedProber) ReadVideo(ctx context.Context, folder, path, mime string) (engine.Input, error) {
	p.probes.Add(1)
	return p.prober.ReadVideo(ctx, folder, path, mime)
}

func TestPlainVideoIsProbedOnlyAfterFailure(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, engine.Spec, func(engine.Progress)) error {
		return &engine.Error{Code: job.EngineError, Message: "The engine gave up.", Err: errors.New("a test")}
	}
	for _, test := range []struct {
		content string
		engine  script
		probes  int32
		status  job.Status
		message string
	}{
		{"plain", succeed, 0, job.Completed, ""},
		{"another", succeed, 1, job.Completed, ""},
		{"plain and good", fails, 1, job.Failed, "The engine gave up."},
		{"plain and broken", fails, 1, job.Failed, "The video cannot be decoded."},
		{"another", fails, 1, job.Failed, "The engine gave up."},
	} {
		s := newFixture(t)
		var probes atomic.Int32
		id := s.submit(test.content, 0)
		s.start(test.engine, func(c *worker.Config) {
			c.Describer, c.Prober = header{}, countedProber{probes: &probes}
		})
		j := s.awaitEnd(id)
		message := ""
		if j.Failure != nil {
			message = j.Failure.Message
		}
		if j.Status != test.status || message != test.message || probes.Load() != test.probes {
			t.Errorf("%q: the job is %s, %q after %d probes", test.content, j.Status, message, probes.Load())
		}
	}
}
