package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"cutroom/shared/testkit/servertest"
)

const (
	overheadRounds = 5
	// A job's overhead must stay below the fraction overheadPart of the floor, or below overheadTime.
	overheadPart = 0.03
	overheadTime = 100 * time.Millisecond
)

// overhead edits the sample clip alternately through the API, with the engine, and with the engine's ffmpeg command
// lines. The overhead is the difference between the API and the engine. The bar compares this difference with the
// time of the command lines.
func (b *bench) overhead(ctx context.Context) error {
	e, err := newEdit(ctx, b.folder, b.clip, "a watercolor painting")
	if err != nil {
		return err
	}
	defer e.close()
	clip, err := os.ReadFile(b.clip)
	if err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "overhead")
	if err != nil {
		return err
	}
	defer stop()
	client := server.Client()

	var f overheadFigures
	for range overheadRounds {
		for _, step := range []struct {
			into *[]time.Duration
			do   func() error
		}{
			{&f.bare, func() error { return e.bare(ctx) }},
			{&f.engine, func() error { return e.engine(ctx) }},
			{&f.service, func() error {
				return editByService(ctx, client, servertest.File("data", "clip.mp4", clip), e.prompt)
			}},
		} {
			begun := time.Now()
			if err := step.do(); err != nil {
				return err
			}
			*step.into = append(*step.into, time.Since(begun))
		}
		// Measure in rounds, because the machine's other load may change.
		last := len(f.bare) - 1
		f.over = append(f.over, f.service[last]-f.engine[last])
	}
	b.reportOverhead(f)
	return nil
}

// overheadFigures holds each round's times: the command lines, the engine, the job through the API,
// and how much longer the job took than the engine.
type overheadFigures struct{ bare, engine, service, over []time.Duration }

func (b *bench) reportOverhead(f overheadFigures) {
	floor, over := median(f.bare), median(f.over)
	bar := time.Duration(overheadPart*float64(floor)) + overheadTime
	b.table.add(row{
		what:     "job, less the engine",
		measured: short(over),
		floor:    short(floor) + " bare ffmpeg",
		ratio:    fmt.Sprintf("+%.0f %%", 100*over.Seconds()/floor.Seconds()),
		bar:      short(bar) + " (3 % + 100 ms)",
		verdict:  verdictOf(over <= bar),
	})
	for _, r := range []struct {
		what     string
		measured []time.Duration
	}{{"  the job, submission to downloaded result", f.service}, {"  the preview engine alone", f.engine}} {
		b.table.add(row{
			what: r.what, measured: short(median(r.measured)), floor: short(floor) + " bare ffmpeg",
			ratio: ratio(median(r.measured), floor), bar: "-", verdict: noBar,
		})
	}
}

// awaitByEvents reads a job's event stream, which ends when the job ends. It returns the job. Polling would take CPU
// time from the edits.
func awaitByEvents(ctx context.Context, client *servertest.Client, id string) (servertest.Job, error) {
	events, err := client.Get(ctx, "/v1/jobs/"+id+"/events")
	if err != nil {
		return servertest.Job{}, err
	}
	if events.Status != http.StatusOK {
		failure := servertest.StatusError(events)
		return servertest.Job{}, &failure
	}
	job, err := client.Job(ctx, id)
	if err == nil && !job.Ended() {
		err = fmt.Errorf("the events of job %s ended while it was %s", id, job.Status)
	}
	return job, err
}

func editByService(ctx context.Context, client *servertest.Client, clip servertest.Part, prompt string) error {
	job, err := client.Submit(ctx, benchModel, servertest.Form{clip, servertest.Text("prompt", prompt),
		servertest.Text("seed", "1")})
	if err != nil {
		return err
	}
	if job, err = awaitByEvents(ctx, client, job.ID); err != nil {
		return err
	}
	if job.Status != "completed" {
		return fmt.Errorf("job %s is %s: %+v", job.ID, job.Status, job.Error)
	}
	_, err = client.Content(ctx, job.ID)
	return err
}
