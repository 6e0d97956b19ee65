package realtime

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
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
// turn. It returns nil if no frame waits.
//
// Errors: fault.Invalid when it is not a frame; those of the engine.
func (c *connection) editNewest() ([]byte, error) {
	defer c.server.edits.Release(1)
	frame := c.frames.take()
	if frame == nil || !c.serving() {
		return nil, nil
	}
	if err := checkFrame(frame); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.life, editTime)
	defer cancel()
	return c.editor.Edit(ctx, frame)
}

// checkFrame checks by its header whether an engine may decode the frame. It is
// decoded in this process, as starting another program would take longer than a
// frame may take: so the check is strict, and bounds memory and time.
//
// Errors: fault.Invalid.
func checkFrame(frame []byte) error {
	kind, known := media.Sniff(frame)
	if !known || kind.MIME != "image/jpeg" {
		return fault.New(fault.Invalid, "A binary message is a JPEG frame, and this one is not.")
	}
	header, ok := media.InspectJPEG(frame)
	switch {
	case !ok:
		return fault.New(fault.Invalid, "The frame is broken.")
	// The sides of a JPEG have 16 bits, so the product does not overflow.
	case header.Width*header.Height > maxFramePixels:
		return fault.New(fault.Invalid, "The frame is larger than 1920x1080 pixels.")
	case header.Scans > maxScans:
		return fault.New(fault.Invalid, "The frame has more than %d scans.", maxScans)
	case header.Memory > maxFrameMemory:
		return fault.New(fault.Invalid, "The frame takes too much memory to decode.")
	}
	return nil
}

// maxScans is how many scans a JPEG may have. Encoders make about ten. A dozen
// bytes can encode a scan that changes nothing, but a decoder still has to
// visit every block for it: a file of the allowed size could occupy a processor
// for minutes.
const maxScans = 100

// scans returns at least the number of scans of a JPEG: the bytes that begin a
// scan do not appear within one (ITU-T T.81, B.1.1.5).
func scans(jpeg []byte) int { return bytes.Count(jpeg, []byte{0xff, 0xda}) }
