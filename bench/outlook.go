package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/testkit/servertest"
)

// outlookJobs lists how many jobs each account submits, in this order. The accounts with few jobs
// submit last, but their turns come before the first account's jobs are done.
var outlookJobs = []int{24, 8, 4}

const (
	outlookBar = 40 // percent of the wait
	// The estimates are read several times, because they become better with each run. The pause is longer than the two
	// seconds for which the server caches a queue.
	outlookReads, outlookPause = 4, 3 * time.Second
)

// outlook submits a burst from several accounts, asks for each job's estimated start and completion, and compares them
// with the actual times.
func (b *bench) outlook(ctx context.Context) error {
	_, clip, err := b.shortClip(ctx)
	if err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "outlook")
	if err != nil {
		return err
	}
	defer stop()
	var clients []*servertest.Client
	for i := range outlookJobs {
		key, err := b.newKey(ctx, "outlook", fmt.Sprintf("account%d", i))
		if err != nil {
			return err
		}
		clients = append(clients, &servertest.Client{URL: server.URL(), Key: key})
	}
	// Run two edits first, so that the server knows how long an edit takes.
	for range 2 {
		file := servertest.File("data", "short.mp4", clip)
		if err := editByService(ctx, clients[0], file, "a watercolor painting"); err != nil {
			return err
		}
	}
	var all []estimated
	for i, jobs := range outlookJobs {
		for range jobs {
			job, err := clients[i].Submit(ctx, benchModel, servertest.Form{
				servertest.File("data", "short.mp4", clip), servertest.Text("prompt", "a watercolor painting")})
			if err != nil {
				return err
			}
			all = append(all, estimated{client: clients[i], id: job.ID})
		}
	}
	var asked []estimated
	for range outlookReads {
		select {
		case <-time.After(outlookPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, one := range all {
			one.at = time.Now()
			if one.job, err = one.read(ctx); err != nil {
				return err
			}
			asked = append(asked, one)
		}
	}
	for i := range asked {
		if _, err := asked[i].client.Await(ctx, asked[i].id, nil); err != nil {
			return err
		}
		if asked[i].ended, err = asked[i].read(ctx); err != nil {
			return err
		}
	}
	b.reportOutlook(asked)
	return nil
}

type estimated struct {
	client     *servertest.Client
	id         string
	at         time.Time
	job, ended client.Job
}

func (f estimated) read(ctx context.Context) (job client.Job, err error) {
	answer, err := f.client.Get(ctx, "/v1/jobs/"+f.id)
	if err == nil {
		err = json.Unmarshal(answer.Body, &job)
	}
	return job, err
}

type misses struct {
	// shares holds the errors of the estimates, in thousandths of the waiting time. They are stored
	// as durations so that quantile works on them.
	shares []time.Duration
	within int
}

func (m *misses) add(asked time.Time, expected *client.Span, happened *time.Time) {
	if expected == nil || happened == nil {
		return
	}
	middle := expected.Earliest.Add(expected.Latest.Sub(expected.Earliest) / 2)
	wait := happened.Sub(asked).Seconds()
	if wait < 1 {
		return // a wait this short says little about the estimate
	}
	m.shares = append(m.shares, time.Duration(1000*happened.Sub(middle).Abs().Seconds()/wait))
	if !happened.Before(expected.Earliest) && !happened.After(expected.Latest) {
		m.within++
	}
}

func (b *bench) reportOutlook(asked []estimated) {
	var start, completion misses
	for _, f := range asked {
		start.add(f.at, f.job.EstimatedStart, f.ended.StartedAt)
		completion.add(f.at, f.job.EstimatedCompletion, f.ended.CompletedAt)
	}
	for _, one := range []struct {
		what string
		misses
	}{{"start", start}, {"completion", completion}} {
		measured, verdict := "no job had an estimate", verdictOf(false)
		if n := len(one.shares); n > 0 {
			measured = fmt.Sprintf("p50 %d %%, p90 %d %% of the wait; %d of %d in the range",
				median(one.shares)/10, quantile(one.shares, 0.9)/10, one.within, n)
			verdict = verdictOf(median(one.shares)/10 <= outlookBar)
		}
		b.table.add(row{
			what:     fmt.Sprintf("error of the estimated %s, jobs of %d accounts", one.what, len(outlookJobs)),
			measured: measured, floor: "-", ratio: "-", bar: fmt.Sprintf("p50 %d %%", outlookBar), verdict: verdict,
		})
	}
}
