package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
)

// newest holds the frame that waits to be edited: a newer one replaces it.
type newest struct {
	// waits has an element while there is a frame.
	waits chan struct{}

	mu      sync.Mutex
	frame   []byte
	dropped int64
}

func newNewest() *newest { return &newest{waits: make(chan struct{}, 1)} }

func (n *newest) put(frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frame != nil {
		n.dropped++
	}
	n.frame = frame
	select {
	case n.waits <- struct{}{}:
	default:
	}
}

// take returns the frame and removes it; nil if there is none.
func (n *newest) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	frame := n.frame
	n.frame = nil
	return frame
}

func (n *newest) lost() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

// editTime bounds the edit of one frame.
const editTime = 10 * time.Second

// edit edits frames, always the newest, until the session ends.
func (c *connection) edit() {
	for {
		select {
		case <-c.life.Done():
			return
		case <-c.frames.waits:
		}
		// The frame is taken only when it is this session's turn, so that it is
		// the newest.
		if c.server.edits.Acquire(c.life, 1) != nil {
			return
		}
		edited, err := c.editNewest()
		switch {
		case c.life.Err() != nil:
			return
		case fault.Is(err, fault.Invalid):
			c.say(errorMessage{"error", c.explain(err)})
		case err != nil:
			c.server.config.Logger.Error("a frame could not be edited", "session", c.session.ID(), "error", err)
			c.end(endedByFailure)
			return
		case edited != nil:
			c.edited++
			c.write(websocket.MessageBinary, edited)
		}
	}
}

// editNewest edits the waiting frame, and then lets another session have its
// turn: decoding and encoding are a part of it. It returns nil if no frame waits.
//
// Errors: fault.Invalid when it is not a frame; those of the engine.
func (c *connection) editNewest() ([]byte, error) {
	defer c.server.edits.Release(1)
	frame := c.frames.take()
	if frame == nil || !c.serving() {
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
	return encodeFrame(edited)
}
