package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
)

// newest holds the next frame to edit. A newer frame replaces it.
type newest[T any] struct {
	waits    chan struct{}
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

// drop ends the wait of the frame, if any.
func (n *newest[T]) drop() {
	if frame, there := n.take(); there && n.replaced != nil {
		n.replaced(frame)
	}
}

func (n *newest[T]) lost() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

const editTime = 10 * time.Second

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
		// Take the frame only once the turn starts, so that it is the newest.
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
			c.server.config.Logger.Error("cannot edit a frame", "session", c.session.ID(), "error", err)
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

// If the edit will also prepare the prompt, allowPlan gives up the turn to edit and takes a turn to change the
// prompt, so that other accounts' frames do not have to wait. It returns false if the session ends first.
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

// editNewest edits the waiting JPEG, if any, and ends the turn. If send is not nil, it sends the result.
//
// Errors: fault.Invalid for an invalid frame.
func (c *connection) editNewest() (send func(), err error) {
	defer c.endTurn()
	frame, there := c.frames.take()
	if !there {
		return nil, nil
	}
	defer frame.release()
	if !c.serving() {
		return nil, nil
	}
	picture, err := decodeFrame(frame.content)
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

// complain reports an invalid frame to the client. For camera frames, it does so at most once a second.
func (c *connection) complain(err error) {
	report := func() { c.say(errorMessage{"error", c.explain(err)}) }
	if l := c.media(); l != nil {
		l.complaints.Do(report)
		return
	}
	report()
}
