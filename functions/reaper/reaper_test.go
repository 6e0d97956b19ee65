package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"cutroom/shared/domain/job"
)

// Events that AWS would never send cause an error, or their messages are returned as failed.
func TestBrokenEventsFail(t *testing.T) {
	r := &reaper{jobs: &job.Reaper{Store: &jobs{}, Now: time.Now}, logger: slog.New(slog.DiscardHandler)}
	invoke := lambda.NewHandler(r.handle).Invoke
	for _, event := range []string{
		`null`, `[]`, `{}`, `{"Records":null}`, `{"Records":{}}`, `{"Records":[1]}`, `{"Records":[{"body":1}]}`,
		`{"detail":null}`, `{"detail":1}`, `{"detail":{"name":1}}`, `{"detail":{"name":"a","status":"x"}}`,
		`{"detail":{"name":"` + strings.Repeat("a", 1<<20) + `"}}`, `{"detail":` + strings.Repeat("[", 1<<20),
	} {
		if got, err := invoke(context.Background(), []byte(event)); err == nil {
			t.Errorf("%.80s: %s", event, got)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `{\"job\":1}`, `{\"job\":\"a\"}`, strings.Repeat("[", 1<<20)} {
		const records = 10
		const good = `,{"messageId":"1","body":"{\"detail\":{\"name\":\"job_1\",\"status\":\"TIMED_OUT\"}}"}`
		failing := `{"Records":[{}` + strings.Repeat(`,{"messageId":"m","body":"`+body+`"}`, records)
		got, err := invoke(context.Background(), []byte(failing+good+`]}`))
		if err != nil || strings.Count(string(got), "itemIdentifier") != records+1 {
			t.Errorf("%.80s: %.100s, %v", body, got, err)
		}
		if got, err := invoke(context.Background(), []byte(failing+`]}`)); err == nil {
			t.Errorf("%.80s, all failed: %.100s", body, got)
		}
	}
}

// jobs has one job whose execution has stopped.
type jobs struct {
	job.Store
	failed []string
}

func (jobs) Get(_ context.Context, id string) (job.Job, error) {
	return job.Job{ID: id, Status: job.Pending, Deadline: time.Now().Add(time.Hour)}, nil
}

func (j *jobs) Fail(_ context.Context, id, _ string, failure job.Failure, _ time.Time) error {
	j.failed = append(j.failed, id+" "+string(failure.Code))
	return nil
}

// An event that was lost, because the function failed or could not be invoked, is handled from the dead-letter queue.
func TestLostEventsEndTheirJobs(t *testing.T) {
	store := &jobs{}
	r := &reaper{jobs: &job.Reaper{Store: store, Now: time.Now}, logger: slog.New(slog.DiscardHandler)}
	const lost = `{"version":"0","detail-type":"Step Functions Execution Status Change","detail":{"name":"job_1","status":"TIMED_OUT"}}`
	answer, err := r.handle(t.Context(), event{Records: []events.SQSMessage{{MessageId: "1", Body: lost}}})
	if err != nil || len(answer.BatchItemFailures) > 0 || !slices.Equal(store.failed, []string{"job_1 timeout"}) {
		t.Errorf("%v, %v: %v", answer, err, store.failed)
	}
}
