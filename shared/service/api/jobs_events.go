package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/contain"
)

const (
	// eventsRetry is how soon a client whose stream has ended comes back, in
	// milliseconds.
	eventsRetry = 2000
	// eventsAlive is how often a stream without events says that it is there:
	// more often than proxies close what is silent.
	eventsAlive = 15 * time.Second
	// maxEventStreams is how many streams one process has open, of all accounts.
	maxEventStreams = 4096
	// eventsBusy is how soon to ask again for a stream where too many are open.
	eventsBusy = 5 * time.Second
)

// Events is the group of the events of jobs, an extension of this service.
func Events(s *service) []route {
	return []route{{
		method: http.MethodGet, path: "/v1/jobs/{id}/events", access: keyOrToken, queryToken: true, unlimited: true, handle: s.streamJob,
	}}
}

// streamJob is GET /v1/jobs/{id of a job}/events: server-sent events (HTML Living
// Standard, "Server-sent events") of a job as it is and each time that its status
// or progress changes, to its end. A stream that breaks misses nothing, as the
// next one begins with how the job is then.
func (s *service) streamJob(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	if r.Method != http.MethodHead && !s.EventsOnce {
		leave, err := s.enterStream(c.who)
		if err != nil {
			return err
		}
		defer leave()
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	stream := &eventStream{w: w, controller: http.NewResponseController(w)}
	// The numbers go on where the last stream was cut off; they say no more than
	// the order.
	stream.last, _ = strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 32)
	stream.write(fmt.Sprintf("retry: %d\n\n", eventsRetry))
	if s.EventsOnce {
		stream.job(j)
		return nil
	}
	s.follow(r, c, j, stream)
	return nil
}

// enterStream counts one more stream, and returns what takes it back.
//
// Errors: fault.Limited with RetryAfter.
func (s *service) enterStream(who credential.Principal) (leave func(), err error) {
	leave, ok := s.streams.Enter(
		ratelimit.Bound{Name: "all", Most: maxEventStreams},
		ratelimit.Bound{Name: "account/" + who.Account(), Most: who.Tier.EventStreams},
		ratelimit.Bound{Name: "key/" + who.Key.ID, Most: who.Tier.EventStreamsPerKey},
	)
	if !ok {
		over := fault.New(fault.Limited, "Too many streams of events are open. Close one, or read the job instead.")
		over.RetryAfter = eventsBusy
		return nil, over
	}
	return leave, nil
}

// follow writes the events of a job until it has ended, the client has left, its
// key is revoked, or the service stops.
func (s *service) follow(r *http.Request, c call, j job.Job, stream *eventStream) {
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	defer context.AfterFunc(s.Draining, leave)()
	changes := make(chan job.Job)
	go func() {
		defer close(changes)
		contain.Run(s.Logger, "events of a job", func() { s.watch(ctx, r, j, changes) })
	}()
	alive := time.NewTicker(eventsAlive)
	defer alive.Stop()
	for {
		tell := func() { stream.write(": the job goes on\n\n") }
		select {
		case changed, more := <-changes:
			if !more {
				return
			}
			tell = func() { stream.job(changed) }
		case <-alive.C:
		}
		// Who comes back after this is told why.
		refused := s.Authenticator.Recheck(ctx, c.who)
		if refused == nil {
			tell()
		}
		if refused != nil || stream.failed {
			leave()
			for range changes { // until who follows the job has stopped
			}
			return
		}
	}
}

// watch sends a job's states as they change, until it has ended or the context has.
func (s *service) watch(ctx context.Context, r *http.Request, j job.Job, changes chan<- job.Job) {
	for changed, err := range s.Jobs.Changes(ctx, j.Account, j.ID) {
		if err != nil {
			if ctx.Err() == nil {
				s.log(r, err) // the client comes back by itself
			}
			return
		}
		select {
		case changes <- changed:
		case <-ctx.Done():
		}
	}
}

// eventStream writes server-sent events.
type eventStream struct {
	w          io.Writer
	controller *http.ResponseController
	// last is the number of the last event.
	last uint64
	// failed says that the client has gone.
	failed bool
}

// job writes the event of a job.
func (e *eventStream) job(j job.Job) {
	text, err := json.Marshal(newJobBody(j))
	if err != nil {
		e.failed = true
		return
	}
	e.last++
	e.write(fmt.Sprintf("id: %d\nevent: job\ndata: %s\n\n", e.last, text))
}

// write sends a text at once.
func (e *eventStream) write(text string) {
	if e.failed {
		return
	}
	if _, err := io.WriteString(e.w, text); err != nil {
		e.failed = true
		return
	}
	e.failed = e.controller.Flush() != nil
}
