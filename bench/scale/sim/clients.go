package sim

import (
	"context"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/usage"
)

// tracked is a job as its client and the simulation know it.
type tracked struct {
	id string
	// count is where the job is counted: with those that were asked for when it was.
	count    *count
	account  *Account
	lane     job.Lane
	work     time.Duration
	asked    time.Time
	accepted time.Time
	// started is when its first run began, ended when its client saw its end.
	started, ended time.Time
	runs           int
	status         job.Status
	// billed counts how often it was completed by a worker.
	completions int
}

// client is one caller with one job.
type client struct {
	*World
	job       *tracked
	impatient bool
	tries     int
}

// How clients behave.
const (
	// impatientClients is the part that tries again at once, whatever Retry-After says.
	impatientClients = 0.3
	// mostTries is how often a client tries to submit.
	mostTries = 20
	// imageWait is how long a call for an image may wait, and cancelWait how long it takes at
	// most to fail its job then.
	imageWait, cancelWait = 60 * time.Second, 10 * time.Second
)

// video is a client that submits a video, polls its status and fetches the result.
func (w *World) video() {
	c := w.newClient(w.chooser.choose(w.random), job.VideoLane, videoWork(w.random))
	c.submit()
}

// images are clients of one account that send images within five seconds.
func (w *World) images() {
	account := w.chooser.choose(w.random)
	// What is left of a burst when the load stops does not come.
	submit := func(c *client) func() {
		return func() {
			if !w.closed {
				c.submit()
			}
		}
	}
	for range 1 + int(w.random.ExpFloat64()*(imageBurst-0.5)) {
		c := w.newClient(account, job.ImageLane, imageWork(w.random))
		w.clock.After(between(w.random, 0, 5*time.Second), submit(c))
	}
}

func (w *World) newClient(account *Account, lane job.Lane, work time.Duration) *client {
	return &client{
		World: w, impatient: w.random.Float64() < impatientClients,
		job: &tracked{account: account, lane: lane, work: work, count: w.count, asked: w.clock.Now()},
	}
}

// submit submits the job, and tries again if it is refused.
func (c *client) submit() {
	if c.tries == 0 {
		c.job.asked, c.job.count = c.clock.Now(), c.count
		c.job.count.asked++
	} else {
		c.trying--
	}
	c.tries++
	function := "jobs"
	if c.job.lane == job.ImageLane {
		function = "images"
	}
	c.request()
	instance, done := c.begin(function)
	accepted, err := c.accept(instance)
	if err != nil || c.job.lane == job.VideoLane {
		c.clock.After(submitTime, done)
	}
	if err == nil {
		c.accepted(accepted, instance, done)
		return
	}
	c.job.count.refused[refusalOf(err)]++
	if c.tries >= mostTries || c.closed {
		c.job.count.gaveUp++
		return
	}
	c.trying++
	wait := between(c.random, 2*time.Second, 5*time.Second)
	if c.impatient {
		wait = between(c.random, 200*time.Millisecond, time.Second)
	}
	c.clock.After(wait, c.submit)
}

// refusalOf names why a call was refused.
func refusalOf(err error) string {
	for _, code := range []fault.Code{fault.Limited, fault.Unavailable, fault.Exhausted} {
		if fault.Is(err, code) {
			return string(code)
		}
	}
	return "failed"
}

// accept does what the API does for a submission, in its order.
func (c *client) accept(instance *instance) (job.Job, error) {
	ctx := context.Background()
	who, err := instance.authenticate(ctx, c.job.account)
	if err != nil {
		return job.Job{}, err
	}
	if c.job.lane == job.ImageLane {
		warm, err := instance.workers.Warm(ctx, c.job.lane)
		if err != nil {
			return job.Job{}, err
		}
		if !warm {
			c.clock.After(time.Second, c.wake)
			return job.Job{}, fault.New(fault.Unavailable, "no worker is running")
		}
	}
	limit := who.Tier.PendingJobs
	wait := time.Duration(0)
	if c.job.lane == job.ImageLane {
		wait = imageWait
	}
	if err := instance.jobs.CheckCapacity(ctx, c.job.lane, who.Account(), limit, wait); err != nil {
		return job.Job{}, err
	}
	model, kind := "gen-2.5", catalog.Edit
	if c.job.lane == job.ImageLane {
		model, kind = "image-2.5", catalog.Image
	}
	instance.jobs.Estimate(ctx, job.EditKind{Model: model})
	id, err := instance.jobs.NewID()
	if err != nil {
		return job.Job{}, err
	}
	// A worker may have the message before the submission returns.
	c.job.id = id
	c.jobs[id] = c.job
	asked := request(kind, instance.jobs.InputBlob(id, "data"))
	if stored := c.job.account.files; kind == catalog.Edit && len(stored) > 0 && c.random.Float64() < referring {
		// The file is copied, so that the job owns what it works on.
		if _, err := instance.files.Get(ctx, who.Account(), stored[c.random.IntN(len(stored))]); err != nil {
			return job.Job{}, err
		}
	}
	c.count.puts.add(c.clock.Now(), asked.Inputs["data"].Blob, 1)
	j, err := instance.jobs.Submit(ctx, job.Job{
		ID: id, Account: who.Account(), Key: who.Key.ID, Model: model, Lane: c.job.lane, Seed: 42, Request: asked,
	}, limit, wait)
	if err != nil {
		delete(c.jobs, id)
	}
	return j, err
}

// accepted follows an accepted job to its end.
func (c *client) accepted(j job.Job, instance *instance, done func()) {
	c.job.count.accepted++
	c.open[c.job.account.Name]++
	c.most.openJobs = max(c.most.openJobs, c.open[c.job.account.Name])
	c.job.accepted, c.job.status = j.CreatedAt, j.Status
	if c.job.lane == job.ImageLane {
		c.await(instance, done)
		return
	}
	c.clock.After(c.pollEvery(), c.poll)
}

func (c *client) pollEvery() time.Duration {
	if c.impatient {
		return between(c.random, time.Second, 2*time.Second)
	}
	return between(c.random, 3*time.Second, 6*time.Second)
}

// poll reads the status, until the job has ended; then it fetches the result.
func (c *client) poll() {
	ctx := context.Background()
	c.request()
	instance := c.serve("jobs", statusTime)
	who, err := instance.auth.Authenticate(ctx, c.job.account.secret)
	if err != nil {
		c.clock.After(c.pollEvery(), c.poll)
		return
	}
	j, err := instance.jobs.Get(ctx, c.job.account.Name, c.job.id)
	if err == nil && j.Status == job.Pending {
		_, _ = instance.jobs.Outlook(ctx, j, who.Tier.PendingJobs) // without it the answer says less
	}
	if err != nil || !j.Status.Terminal() {
		c.clock.After(c.pollEvery(), c.poll)
		return
	}
	c.request()
	download := c.serve("content", contentTime)
	if _, err := download.auth.Authenticate(ctx, c.job.account.secret); err == nil {
		_, _ = download.jobs.Get(ctx, c.job.account.Name, c.job.id) // the end was seen already
	}
	c.ended(j)
}

// await waits for an image within the call, as job.Service's Wait does.
func (c *client) await(instance *instance, done func()) {
	pace := instance.jobs.Pace(context.Background())
	begun := c.clock.Now()
	var look func()
	last, cancelled := job.Job{}, false
	look = func() {
		j, err := instance.jobs.Get(context.Background(), c.job.account.Name, c.job.id)
		switch {
		case err == nil && j.Status.Terminal():
			done()
			c.ended(j)
			return
		case c.clock.Now().Sub(begun) >= imageWait+cancelWait:
			done()
			c.clock.After(5*time.Second, c.poll)
			return
		case c.clock.Now().Sub(begun) >= imageWait && !cancelled:
			// By the contract, the job fails with its call.
			reason := job.Failure{Code: job.TimedOut, Message: "The image was not edited within 60 seconds."}
			cancelled = instance.jobs.Cancel(context.Background(), c.job.id, reason) == nil
		}
		if err == nil {
			last = j
		}
		c.clock.After(pace.Next(last, c.clock.Now()), look)
	}
	c.clock.After(pace.Next(last, begun), look)
}

// ended notes the end of a job.
func (c *client) ended(j job.Job) {
	c.job.ended, c.job.status = j.CompletedAt, j.Status
	c.finish(c.job)
	c.open[c.job.account.Name]--
	id := c.job.id
	c.clock.After(2*time.Minute, func() {
		c.cloud.DynamoDB.Forget("jobs", id)
		if c.job.completions > 1 {
			c.job.count.doubled++
		}
		delete(c.jobs, id)
	})
}

// completion is a call of the gateway.
func (w *World) completion() {
	account := w.chooser.choose(w.random)
	w.request()
	instance := w.serve("inference", completionTime+between(w.random, time.Second, 20*time.Second))
	w.count.completions++
	ctx := context.Background()
	who, err := instance.auth.Authenticate(ctx, account.secret)
	if err != nil {
		w.count.refused[refusalOf(err)]++
		return
	}
	requests, tokens := ratelimit.PerMinute(1e7), ratelimit.PerMinute(1e9)
	_, err1 := instance.rates.Take(ctx, "inference-requests/"+account.Name, 1, requests)
	_, err2 := instance.rates.Take(ctx, "inference-tokens/"+account.Name, 0, tokens)
	used := int64(200 + w.random.IntN(1000))
	_, err3 := instance.rates.Charge(ctx, "inference-tokens/"+account.Name, int(used), tokens)
	err4 := w.service.usage.Add(ctx, []usage.Record{{
		ID: w.newID(), Account: account.Name, Key: who.Key.ID, Model: "chat", Day: usage.DayOf(w.clock.Now()),
		Counts: usage.Counts{Requests: 1, PromptTokens: used / 2, CompletionTokens: used / 2},
	}})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			w.count.refused[refusalOf(err)]++
			return
		}
	}
}
