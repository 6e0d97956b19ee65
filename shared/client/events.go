package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// maxEvent is the maximum size, in bytes, of an event in a stream and of each line of an event.
const maxEvent = 1 << 20

type event struct{ name, data string }

// The sequence ends after an error.
func readEvents(stream io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, maxEvent)
		var name string
		var data []string
		left := maxEvent
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case lines.Text() == "":
				if data != nil && !yield(event{name, strings.Join(data, "\n")}, nil) {
					return
				}
				name, data, left = "", nil, maxEvent
			case field == "event":
				name = value
			case field == "data":
				if left -= len(value) + len("\n"); left < 0 {
					yield(event{}, bufio.ErrTooLong)
					return
				}
				data = append(data, value)
			}
		}
		if err := lines.Err(); err != nil {
			yield(event{}, err)
		}
	}
}

const (
	// followings is the number of consecutive times that the event stream may fail without an event
	// before AwaitJob polls the job instead.
	followings                = 3
	reconnect                 = time.Second
	shortestPoll, longestPoll = 500 * time.Millisecond, 3 * time.Second
	// outage is how long AwaitJob tolerates an unreachable service.
	outage = time.Minute
)

// AwaitJob waits until a job has ended. It reads the job's event stream, or polls if the stream fails. It passes each
// change to the callback `seen`.
func (c *Client) AwaitJob(ctx context.Context, id string, seen func(Job)) (Job, error) {
	for left := followings; left > 0; left-- {
		received := false
		job, err := c.follow(ctx, id, func(job Job) {
			received = true
			seen(job)
		})
		var broken *ConnectionError
		switch {
		case err == nil && job.Ended():
			return job, nil
		case ctx.Err() != nil:
			return job, context.Cause(ctx)
		case err != nil && !errors.As(err, &broken):
			// Either the service has no event streams, or the job does not exist. Polling shows which.
			return c.poll(ctx, id, seen)
		case received:
			left = followings + 1
		}
		if err := sleep(ctx, reconnect); err != nil {
			return job, err
		}
	}
	return c.poll(ctx, id, seen)
}

func (c *Client) follow(ctx context.Context, id string, seen func(Job)) (Job, error) {
	request := c.media(http.MethodGet, jobPath(id)+"/events", nil)
	request.header.Set("Accept", "text/event-stream")
	response, err := c.once(ctx, request)
	if err != nil {
		return Job{}, err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return Job{}, fmt.Errorf("the response has the type %q, not text/event-stream", kind)
	}
	var job Job
	for event, err := range readEvents(response.Body) {
		if err != nil {
			return job, connectionError(ctx, request.url, err)
		}
		if event.name != "job" {
			continue
		}
		if job, err = parseJob(json.RawMessage(event.data)); err != nil {
			return job, err
		}
		seen(job)
		if job.Ended() {
			return job, nil
		}
	}
	return job, nil
}

func (c *Client) poll(ctx context.Context, id string, seen func(Job)) (Job, error) {
	pause, heard := shortestPoll, time.Now()
	for {
		job, err := c.Job(ctx, id)
		var broken *ConnectionError
		switch {
		case err == nil:
			heard = time.Now()
			seen(job)
			if job.Ended() {
				return job, nil
			}
		case !errors.As(err, &broken) || time.Since(heard) > outage:
			return job, err
		}
		if err := sleep(ctx, pause); err != nil {
			return job, err
		}
		pause = min(pause*3/2, longestPoll)
	}
}
