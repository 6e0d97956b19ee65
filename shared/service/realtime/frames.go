package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
)

// newest holds the frame that waits to be edited: a newer one replaces it.
type newest[T any] struct {
	// waits has an element while there is a frame.
	waits chan struct{}
	// replaced is called with each frame that a newer one replaces, unless it is nil.
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

// take returns the frame and removes it. It reports whether there was one.
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

// editTime bounds the edit of one frame.
const editTime = 10 * time.Second

// edit edits frames of either transport, always the newest, until the session ends.
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
		// The frame is taken only when it is this session's turn, so that it is
		// the newest.
		if !c.edits.Take(c.life, c.account()) {
			return
		}
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

// editNewest edits the waiting JPEG, and then ends its turn:
// decoding and encoding are a part of it. It returns what sends the result, nil if no
// frame waits.
//
// Errors: fault.Invalid when it is not a frame; those of the engine.
func (c *connection) editNewest() (send func(), err error) {
	defer c.edits.Release(c.account())
	frame, there := c.frames.take()
	if !there || !c.serving() {
		return nil, nil
	}
	picture, err := decodeFrame(frame)
	if err != nil {
		return nil, err
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

// complain tells the client of a frame that cannot be edited: of each JPEG, as the client
// waits for it, and of a camera's frames once a second.
func (c *connection) complain(err error) {
	tell := func() { c.say(errorMessage{"error", c.explain(err)}) }
	if l := c.media(); l != nil {
		l.complaints.Do(tell)
		return
	}
	tell()
}
