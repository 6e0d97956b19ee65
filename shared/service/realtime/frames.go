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

// newest holds the frame that waits to be edited: a newer one takes its place.
type newest struct {
	// waits has an element while a frame is there.
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

// take gives the frame, nil when it is gone.
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

// edit edits frames, the newest first, until the session ends.
func (c *connection) edit() {
	for {
		select {
		case <-c.life.Done():
			return
		case <-c.frames.waits:
		}
		// The frame is taken when it is this session's turn: it is then the
		// newest that there is.
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
			c.server.Logger.Error("a frame could not be edited", "session", c.session.ID(), "error", err)
			c.end(endedByFailure)
			return
		case edited != nil:
			c.edited++
			c.write(websocket.MessageBinary, edited)
		}
	}
}

// editNewest edits the frame that waits, and then lets another session have its
// turn; nil when there is none.
//
// Errors: fault.Invalid when it is no frame; those of the engine.
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

// checkFrame tells by its header whether an engine may decode the frame. It is
// decoded in this process, as a program of its own would take longer to start than
// a frame may take: so the check is strict, and bounds memory and time.
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
	// Sides of JPEG have 16 bits, so that the product is a number.
	case header.Width*header.Height > maxFramePixels:
		return fault.New(fault.Invalid, "The frame is larger than 1920x1080 pixels.")
	case header.Scans > maxScans:
		return fault.New(fault.Invalid, "The frame has more than %d scans.", maxScans)
	case header.Memory > maxFrameMemory:
		return fault.New(fault.Invalid, "The frame takes too much memory to decode.")
	}
	return nil
}

// maxScans is how many scans a JPEG may have. Encoders make about ten. A scan may
// say in a dozen bytes that nothing changes, and still costs a decoder a look at
// every block: a file of the allowed size could keep a processor for minutes.
const maxScans = 100

// scans counts at least the scans of a JPEG: the bytes that begin one do not
// appear within one (ITU-T T.81, B.1.1.5).
func scans(jpeg []byte) int { return bytes.Count(jpeg, []byte{0xff, 0xda}) }
