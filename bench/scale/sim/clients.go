package sim

import (
	"context"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

type client struct {
	*World
	account *account
	lane    job.Lane
	// work is the time that a worker will need for the job.
	work      time.Duration
	impatient bool
	tries     int
	// counts holds the counters for this job. They depend on when the job was first submitted.
	counts            *Counts
	id                string
	accepted, started time.Time
	completions       int
}

const (
	// impatientClients is the fraction of clients that retry a rejected request within a second.
	impatientClients = 0.3
	// mostTries is the maximum number of times a client submits a job.
	mostTries = 20
	// imageWait is the maximum time that a request waits for an image. After that, the request
	// takes up to cancelWait to fail its job.
	imageWait, cancelWait = 60 * time.Second, 10 * time.Second
)

// video simulates a client that submits a video, polls its status and fetches the result.
func (w *World) video() { w.newClient(w.choose(), job.VideoLane, videoWork(w.random)).submit() }

// images simulates several clients of one account that send one image each, all within five seconds.
func (w *World) images() {
	account := w.choose()
	for range 1 + int(w.random.ExpFloat64()*(imageBurst-0.5)) {
		c := w.newClient(account, job.ImageLane, between(w.random, time.Second, 3*time.Second))
		w.clock.After(between(w.random, 0, 5*time.Second), func() {
			if !w.closed {
				c.submit()
			}
		})
	}
}

func (w *World) newClient(a *account, lane job.Lane, work time.Duration) *client {
	return &client{World: w, account: a, lane: lane, work: work, impatient: w.random.Float64() < impatientClients}
}

func (c *client) submit() {
	if c.tries == 0 {
		c.counts = c.World.counts
		c.counts.Asked++
	} else {
		c.retrying--
	}
	c.tries++
	function := "jobs"
	if c.lane == job.ImageLane {
		function = "images"
	}
	i, done := c.begin(function)
	j, err := c.accept(i)
	if err != nil || c.lane == job.VideoLane {
		c.clock.After(submitTime, done)
	}
	if c.counts.count("jobs", err); err == nil {
		c.follow(j, i, done)
		return
	}
	if c.tries >= mostTries || c.closed {
		c.counts.GaveUp++
		return
	}
	c.retrying++
	wait := between(c.random, 2*time.Second, 5*time.Second)
	if c.impatient {
		wait = between(c.random, 200*time.Millisecond, time.Second)
	}
	c.clock.After(wait, c.submit)
}

// accept makes the same calls as the API does for a submission, in the same order.
func (c *client) accept(i *instance) (job.Job, error) {
	ctx := context.Background()
	who, err := i.authenticate(ctx, c.account)
	if err != nil {
		return job.Job{}, err
	}
	model, kind, wait := "gen-2.5", catalog.Edit, time.Duration(0)
	if c.lane == job.ImageLane {
		model, kind, wait = "image-2.5", catalog.Image, imageWait
		if warm, err := i.workers.Warm(ctx, c.lane); err != nil {
			return job.Job{}, err
		} else if !warm {
			c.clock.After(time.Second, c.wake)
			return job.Job{}, fault.New(fault.Unavailable, "no worker is running")
		}
	}
	limit := who.Tier.PendingJobs
	if err := i.jobs.CheckCapacity(ctx, c.lane, who.Account(), limit, wait); err != nil {
		return job.Job{}, err
	}
	i.jobs.Estimate(ctx, job.EditKind{Model: model})
	id, err := i.jobs.NewID()
	if err != nil {
		return job.Job{}, err
	}
	// Set the id first, because a worker may receive the message before Submit returns.
	c.id = id
	c.clients[id] = c
	j, err := i.jobs.Submit(ctx, job.Job{
		ID: id, Account: who.Account(), Key: who.Key.ID, Model: model, Lane: c.lane, Seed: 42,
		Request: job.Request{
			Prompt:  "Make it look like a rainy evening in a city of neon lights, filmed from a moving tram",
			Options: map[string]any{"resolution": "720p"},
			Inputs: map[string]job.Input{"data": {
				Blob: i.jobs.InputBlob(id, "data"), Name: "clip." + string(kind), MIME: "video/mp4", Size: 9_876_543,
				MD5: "d41d8cd98f00b204e9800998ecf8427e",
			}},
		},
	}, limit, wait)
	if err != nil {
		delete(c.clients, id)
	}
	return j, err
}

func (c *client) follow(j job.Job, i *instance, done func()) {
	c.open[c.account.name]++
	c.peaks.OpenJobs = max(c.peaks.OpenJobs, c.open[c.account.name])
	c.accepted = j.CreatedAt
	if c.lane == job.ImageLane {
		c.await(i, done)
		return
	}
	c.pollLater()
}

func (c *client) pollLater() {
	wait := between(c.random, 3*time.Second, 6*time.Second)
	if c.impatient {
		wait = between(c.random, time.Second, 2*time.Second)
	}
	c.clock.After(wait, c.poll)
}

// poll reads the status until the job has ended, and then downloads the result.
func (c *client) poll() {
	ctx := context.Background()
	i := c.serve("jobs", statusTime)
	if _, err := i.auth.Authenticate(ctx, c.account.secret); err != nil {
		c.pollLater()
		return
	}
	j, err := i.jobs.Get(ctx, c.account.name, c.id)
	if err == nil && j.Status == job.Pending {
		_, _ = i.jobs.Outlook(ctx, j) // the response does not depend on the outlook
	}
	if err != nil || !j.Status.Terminal() {
		c.pollLater()
		return
	}
	download := c.serve("content", contentTime)
	if _, err := download.auth.Authenticate(ctx, c.account.secret); err == nil {
		_, _ = download.jobs.Get(ctx, c.account.name, c.id) // the job is known to have ended
	}
	c.ended(j)
}

// await waits for an image within the request, like job.Service.Wait.
func (c *client) await(i *instance, done func()) {
	ctx := context.Background()
	pace := i.jobs.Pace(ctx)
	begun := c.clock.Now()
	last, cancelled := job.Job{}, false
	var look func()
	look = func() {
		waited := c.clock.Now().Sub(begun)
		j, err := i.jobs.Get(ctx, c.account.name, c.id)
		switch {
		case err == nil && j.Status.Terminal():
			done()
			c.ended(j)
			return
		case waited >= imageWait+cancelWait:
			done()
			c.clock.After(5*time.Second, c.poll)
			return
		case waited >= imageWait && !cancelled:
			// According to the contract, the job fails together with its request.
			reason := job.Failure{Code: job.TimedOut, Message: "The image was not edited within 60 seconds."}
			cancelled = i.jobs.Cancel(ctx, c.id, reason) == nil
		}
		if err == nil {
			last = j
		}
		c.clock.After(pace.Next(last, c.clock.Now()), look)
	}
	c.clock.After(pace.Next(last, begun), look)
}

// ended counts an ended job, and forgets it after a while.
func (c *client) ended(j job.Job) {
	c.counts.Ended++
	if j.Status == job.Completed {
		c.counts.Completed++
	}
	c.open[c.account.name]--
	c.clock.After(2*time.Minute, func() {
		c.cloud.DynamoDB.Forget("jobs", c.id)
		if c.completions > 1 {
			c.counts.doubled++
		}
		delete(c.clients, c.id)
	})
}
