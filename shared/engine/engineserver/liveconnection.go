package engineserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/panics"
)

var errLiveEnded = errors.New("engineserver: the connection of a live session has ended")

// liveConnection is a session on a server: a single request whose body and response stream at the
// same time. It buffers at most two outgoing and three incoming frames.
type liveConnection struct {
	server *liveServer
	end    func()
	body   *io.PipeWriter
	name   string

	// outgoing holds messages for the writer, which returns picture buffers to the channel `packed`.
	outgoing chan outgoing
	packed   chan []byte
	// results holds the newest result. spare holds the buffers of older results for reuse.
	results chan liveResult
	spare   chan []byte
	sets    chan livewire.Set
	// held is the buffer of the last frame returned.
	held []byte

	// ended is closed once the connection has ended. why holds the error that ended it.
	ended  chan struct{}
	ending sync.Once
	why    error
	work   sync.WaitGroup
}

type outgoing struct {
	message []byte
	picture bool
}

type liveResult struct {
	number  uint32
	picture *engine.Picture
	payload []byte
	err     error
}

func (s *liveServer) session(ctx context.Context, model string, seed uint32) (*liveConnection, error) {
	first, err := livewire.AppendText(nil, livewire.Begin{Version: livewire.Version, Model: model, Seed: seed})
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	rest, body := io.Pipe()
	// Close the request body too, because an HTTP call returns only once its body has ended.
	end := func() {
		cancel()
		body.Close()
	}
	stream := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), rest), rest}
	request, err := http.NewRequestWithContext(life, http.MethodPost, s.base+livewire.Path, stream)
	if err != nil {
		end()
		return nil, fmt.Errorf("engineserver: %w", err)
	}
	request.Header.Set("Content-Type", livewire.ContentType)
	c := &liveConnection{
		server: s, end: end, body: body, outgoing: make(chan outgoing), packed: make(chan []byte, 2),
		results: make(chan liveResult, 1), spare: make(chan []byte, 3), sets: make(chan livewire.Set, 1),
		ended: make(chan struct{}),
	}
	c.packed <- nil
	c.packed <- nil
	// The wait for the server ends when the caller's context ends or after openTime.
	late := time.AfterFunc(openTime, end)
	left := context.AfterFunc(ctx, end)
	response, reader, err := s.begin(request)
	if !late.Stop() || !left() || err != nil {
		end()
		if err == nil {
			response.Body.Close()
			err = errors.New("the server took too long, or the caller disconnected")
		}
		return nil, fmt.Errorf("engineserver: start a live session: %w", err)
	}
	s.open.Add(1)
	c.name = reader.ready.Engine
	c.work.Go(c.guarded(c.write))
	c.work.Go(c.guarded(func() error {
		defer response.Body.Close()
		return c.read(reader.Reader)
	}))
	return c, nil
}

type readyReader struct {
	*livewire.Reader
	ready livewire.Ready
}

// begin sends the request and reads the server's first message. It returns an error if the server
// rejects the session.
func (s *liveServer) begin(request *http.Request) (response *http.Response, reader readyReader, err error) {
	response, err = s.client.Do(request)
	if err != nil {
		return nil, reader, err
	}
	defer func() {
		if err != nil {
			response.Body.Close()
		}
	}()
	if response.StatusCode != http.StatusOK {
		return response, reader, liveRefusal(response)
	}
	reader.Reader = livewire.NewReader(response.Body)
	kind, payload, err := reader.Next(nil)
	if err != nil {
		return response, reader, err
	}
	var line livewire.Line
	if kind != livewire.Text || boundedjson.Unmarshal(payload, maxValues, &line) != nil || line.Ready == nil {
		return response, reader, fmt.Errorf("unexpected first message of kind %d: %.100q", kind, payload)
	}
	reader.ready = *line.Ready
	reader.ready.Engine = named(reader.ready.Engine)
	return response, reader, nil
}

// faultOf returns fault.Invalid if the request is at fault, and fault.Unavailable if a retry may succeed.
func faultOf(f livewire.Failure) error {
	code := fault.Unavailable
	if f.Code == job.InvalidInput {
		code = fault.Invalid
	}
	message := engine.OneLine(f.Message, maxMessage)
	if message == "" {
		message = "The engine rejected the request."
	}
	return fault.New(code, "%s", message)
}

func named(reported string) string {
	if reported = engine.OneLine(reported, maxName); reported == "" {
		return Name
	}
	return reported
}

func liveRefusal(response *http.Response) error {
	var body []byte
	if response.StatusCode >= http.StatusBadRequest { // other bodies may never end
		body, _ = io.ReadAll(io.LimitReader(response.Body, livewire.MaxText)) // a truncated body does not parse
	}
	var line livewire.Line
	if boundedjson.Unmarshal(body, maxValues, &line) != nil || line.Error == nil {
		return fmt.Errorf("the engine server returned status %d", response.StatusCode)
	}
	return fmt.Errorf("the engine server returned status %d: %s", response.StatusCode,
		engine.OneLine(line.Error.Message, maxMessage))
}

// guarded wraps a function so that the connection ends when the function returns or panics.
func (c *liveConnection) guarded(work func() error) func() {
	return func() {
		err := func() (err error) {
			defer panics.Error(&err)
			return work()
		}()
		c.fail(err)
	}
}

// Only the first error is recorded.
func (c *liveConnection) fail(err error) {
	c.ending.Do(func() {
		c.why = err
		close(c.ended)
		c.end()
		c.server.open.Add(-1)
	})
}

func (c *liveConnection) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *liveConnection) close() {
	c.fail(errors.New("the session was closed"))
	c.work.Wait()
}

func (c *liveConnection) write() error {
	for {
		select {
		case <-c.ended:
			return nil
		case out := <-c.outgoing:
			_, err := c.body.Write(out.message)
			if out.picture {
				c.packed <- out.message
			}
			if err != nil {
				return err
			}
		}
	}
}

func (c *liveConnection) read(from *livewire.Reader) error {
	for {
		kind, payload, err := from.Next(c.unused)
		switch {
		case err != nil:
			return err
		case kind == livewire.Picture:
			number, picture, err := livewire.ParsePicture(payload)
			if err != nil {
				return err
			}
			c.put(liveResult{number: number, picture: picture, payload: payload})
			continue
		case kind == livewire.Text:
			err = c.hear(payload)
		default:
			err = fmt.Errorf("unexpected message of kind %d", kind)
		}
		c.reuse(payload)
		if err != nil {
			return err
		}
	}
}

// hear handles a text message. It returns an error if the message ends the session or is invalid.
func (c *liveConnection) hear(text []byte) error {
	var line livewire.Line
	if err := boundedjson.Unmarshal(text, maxValues, &line); err != nil {
		return fmt.Errorf("%.100q: %w", text, err)
	}
	switch {
	case line.Error != nil:
		return &engine.Error{
			Code: job.EngineError, Message: engine.OneLine(line.Error.Message, maxMessage), Retryable: line.Error.Retryable,
		}
	case line.Refused != nil:
		c.put(liveResult{number: line.Refused.Number, err: faultOf(line.Refused.Error)})
	case line.Set != nil:
		// If a change was abandoned, its response may still be here. Discard it.
		select {
		case <-c.sets:
		default:
		}
		c.sets <- *line.Set
	}
	return nil
}

func (c *liveConnection) put(result liveResult) {
	select {
	case old := <-c.results:
		c.reuse(old.payload)
	default:
	}
	c.results <- result
}

func (c *liveConnection) unused() []byte {
	select {
	case memory := <-c.spare:
		return memory
	default:
		return nil
	}
}

func (c *liveConnection) reuse(memory []byte) {
	select {
	case c.spare <- memory:
	default:
	}
}

// edit sends a picture and returns its result, which is valid until the next call. Errors:
// fault.Invalid if the server rejects the frame; errLiveEnded.
func (c *liveConnection) edit(ctx context.Context, number uint32, picture *engine.Picture) (*engine.Picture, error) {
	c.reuse(c.held)
	c.held = nil
	var memory []byte
	select {
	case memory = <-c.packed:
	case <-c.ended:
		return nil, c.lost()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	message := livewire.AppendPicture(memory[:0], number, picture)
	if err := c.send(ctx, outgoing{message, true}); err != nil {
		c.packed <- message
		return nil, err
	}
	for {
		select {
		case result := <-c.results:
			switch {
			case result.number != number: // from an abandoned picture
				c.reuse(result.payload)
				continue
			case result.err != nil:
				return nil, result.err
			case result.picture.Narrow != picture.Narrow:
				c.fail(errors.New("the server changed the color range of a picture"))
				return nil, c.lost()
			}
			c.held = result.payload
			return result.picture, nil
		case <-c.ended:
			return nil, c.lost()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// set sends a change and returns the server's response. Errors: fault.Invalid if the server rejects
// it; fault.Unavailable.
func (c *liveConnection) set(ctx context.Context, number uint32, message []byte) (reported engine.Outcome, err error) {
	ended := func() error { return fault.Wrap(c.lost(), fault.Unavailable, "The engine has stopped. Try again.") }
	if err := c.send(ctx, outgoing{message, false}); errors.Is(err, errLiveEnded) {
		return reported, ended()
	} else if err != nil {
		return reported, err
	}
	for {
		select {
		case set := <-c.sets:
			switch {
			case set.Number != number: // from an abandoned change
				continue
			case set.Error != nil:
				return reported, faultOf(*set.Error)
			}
			result := Result{Engine: set.Engine, Understood: set.Understood, Notice: set.Notice}
			if result.Engine == "" {
				result.Engine = c.name
			}
			return result.outcome(), nil
		case <-c.ended:
			return reported, ended()
		case <-ctx.Done():
			return reported, ctx.Err()
		}
	}
}

func (c *liveConnection) send(ctx context.Context, out outgoing) error {
	select {
	case c.outgoing <- out:
		return nil
	case <-c.ended:
		return c.lost()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lost returns why the connection has ended. After a fault.EngineFailed, the session must not be reopened.
func (c *liveConnection) lost() error {
	var reported *engine.Error
	if errors.As(c.why, &reported) && !reported.Retryable {
		return fault.Wrap(reported, fault.EngineFailed, "The engine failed.")
	}
	return errors.Join(errLiveEnded, c.why)
}
