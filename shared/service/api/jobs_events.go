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
	"cutroom/shared/platform/panics"
)

const (
	// eventsReconnect is how long clients wait before they reconnect, in milliseconds.
	eventsReconnect = 2000
	// eventsKeepAlive is the interval between keep-alives. It is shorter than common proxies' idle timeouts.
	eventsKeepAlive = 15 * time.Second
	// maxEventStreams limits the open streams in one process, across all accounts.
	maxEventStreams  = 4096
	eventsRetryAfter = 5 * time.Second
)

func Events(s *service) []route {
	return within(credential.JobRoutes, []route{{
		method: http.MethodGet, path: "/v1/jobs/{id}/events", access: keyOrToken, queryToken: true, unlimited: true,
		handle: s.streamJob,
	}})
}

// streamJob sends the job as server-sent events until the job ends. It sends an event immediately, after each change
// of status or progress, and every eventsKeepAlive while the job is pending. A client that reconnects misses nothing,
// because every stream starts with the current state.
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
	header.Set("X-Accel-Buffering", "no") // nginx would buffer events
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	stream := &eventStream{w: w, controller: http.NewResponseController(w), show: func(j job.Job) jobBody { return s.followedBody(r.Context(), c, j) }}
	// Continue the previous stream's event numbers, which only show the order.
	stream.last, _ = strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 32)
	stream.write(fmt.Sprintf("retry: %d\n\n", eventsReconnect))
	if s.EventsOnce {
		stream.job(j)
		return nil
	}
	s.follow(r, c, j, stream)
	return nil
}

// enterStream counts an open stream. The caller must call leave. Errors: fault.Limited with RetryAfter.
func (s *service) enterStream(who credential.Principal) (leave func(), err error) {
	leave, ok := s.streams.Enter(
		ratelimit.OpenLimit{Name: "all", Most: maxEventStreams},
		ratelimit.OpenLimit{Name: "account/" + who.Account(), Most: who.Tier.EventStreams},
		ratelimit.OpenLimit{Name: "key/" + who.Key.ID, Most: who.Tier.EventStreamsPerKey},
	)
	if !ok {
		over := fault.New(fault.Limited, "Too many event streams are open. Close one, or poll the job instead.")
		over.RetryAfter = eventsRetryAfter
		return nil, over
	}
	return leave, nil
}

// follow sends events until the job ends, the client disconnects, the key is revoked, or the service stops.
func (s *service) follow(r *http.Request, c call, j job.Job, stream *eventStream) {
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	defer context.AfterFunc(s.Draining, leave)()
	changes := make(chan job.Job)
	go func() {
		defer close(changes)
		panics.Run(s.Logger, "events of a job", func() { s.watch(ctx, r, j, changes) })
	}()
	alive := time.NewTicker(eventsKeepAlive)
	defer alive.Stop()
	for {
		send := func() { stream.write(": keep-alive\n\n") }
		select {
		case changed, more := <-changes:
			if !more {
				return
			}
			j = changed
			send = func() { stream.job(j) }
		case <-alive.C:
			if j.Status == job.Pending { // its queue position may have changed
				send = func() { stream.job(j) }
			}
		}
		// If the key has been revoked, end the stream. The client gets an error when it reconnects.
		err := s.Authenticator.Recheck(ctx, c.who)
		if err == nil {
			send()
		}
		if err != nil || stream.failed {
			leave()
			for range changes { // wait until watch returns
			}
			return
		}
	}
}

// watch sends changed states until the job or the context ends.
func (s *service) watch(ctx context.Context, r *http.Request, j job.Job, changes chan<- job.Job) {
	for changed, err := range s.Jobs.Changes(ctx, j.Account, j.ID) {
		if err != nil {
			if ctx.Err() == nil {
				s.log(r, err) // the client reconnects
			}
			return
		}
		select {
		case changes <- changed:
		case <-ctx.Done():
		}
	}
}

type eventStream struct {
	w          io.Writer
	controller *http.ResponseController
	show       func(job.Job) jobBody
	last       uint64
	failed     bool
}

func (e *eventStream) job(j job.Job) {
	text, err := json.Marshal(e.show(j))
	if err != nil {
		e.failed = true
		return
	}
	e.last++
	e.write(fmt.Sprintf("id: %d\nevent: job\ndata: %s\n\n", e.last, text))
}

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
