package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
)

// newest holds the frame that waits to be edited. A newer frame replaces it.
type newest[T any] struct {
	// waits has an element while a frame is held.
	waits chan struct{}
	// replaced, if not nil, is called with each replaced frame.
	replaced func(T)

	mu      sync.Mutex
	frame   T
	there   bool
	dropped int64
}

func newNewest[T any](replaced func(T)) *newest[T] {
	return &newest[T]{waits: make(chan struct{}, 1), replaced: replaced}
}

func (n *newest[T]) put(frame T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.there {
		n.dropped++
		if n.replaced != nil {
			n.replaced(n.frame)
		}
	}
	n.frame, n.there = frame, true
	select {
	case n.waits <- struct{}{}:
	default:
	}
}

func (n *newest[T]) take() (frame T, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var none T
	frame, there = n.frame, n.there
	n.frame, n.there = none, false
	return frame, there
}

func (n *newest[T]) lost() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

// editTime limits the edit of one frame.
const editTime = 10 * time.Second

// edit edits the newest frame of either transport until the session ends.
func (c *connection) edit() {
	for {
		next := c.editNewest
		select {
		case <-c.life.Done():
			return
		case <-c.frames.waits:
		case <-c.video.waits:
			next = c.editPicture
		}
		// Take the frame only at the session's turn, so that it is the newest.
		if !c.edits.Take(c.life, c.account()) {
			return
		}
		c.turn = c.edits
		send, err := next()
		switch {
		case c.life.Err() != nil:
			return
		case fault.Is(err, fault.Invalid):
			c.complain(err)
		case err != nil:
			c.server.config.Logger.Error("a frame could not be edited", "session", c.session.ID(), "error", err)
			c.end(endedByFailure)
			return
		case send != nil:
			c.edited++
			send()
		}
	}
}

func (c *connection) endTurn() {
	if c.turn != nil {
		c.turn.Release(c.account())
		c.turn = nil
	}
}

// allowPlan changes the session's turn to one of changes if the edit of the picture prepares the
// prompt, so that frames of other accounts do not wait for it. It returns false if the session ends
// first.
func (c *connection) allowPlan(picture *engine.Picture) bool {
	if p, ok := c.editor.(engine.LivePlanner); !ok || !p.Plans(picture) {
		return true
	}
	c.endTurn()
	if !c.beginChange() {
		return false
	}
	c.turn = c.changes
	return true
}

// editNewest decodes, edits and encodes the waiting JPEG, and then ends its turn. It returns the
// function that sends the result, or nil without a frame.
//
// Errors: fault.Invalid for an invalid frame.
func (c *connection) editNewest() (send func(), err error) {
	defer c.endTurn()
	frame, there := c.frames.take()
	if !there || !c.serving() {
		return nil, nil
	}
	picture, err := decodeFrame(frame)
	if err != nil {
		return nil, err
	}
	if !c.allowPlan(picture) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.life, editTime)
	defer cancel()
	edited, err := c.editor.Edit(ctx, picture)
	if err != nil {
		return nil, err
	}
	encoded, err := encodeFrame(edited)
	if err != nil {
		return nil, err
	}
	return func() { c.write(websocket.MessageBinary, encoded) }, nil
}

// complain reports a frame that cannot be edited: each JPEG, because the client waits for it, and
// camera frames once a second.
func (c *connection) complain(err error) {
	tell := func() { c.say(errorMessage{"error", c.explain(err)}) }
	if l := c.media(); l != nil {
		l.complaints.Do(tell)
		return
	}
	tell()
}
