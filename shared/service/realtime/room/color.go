package room

import (
	"sync/atomic"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// colorURI names the header extension by which a sender tells what the numbers of a
// picture mean. Browsers take pictures without it for BT.601, and send those of a canvas as
// BT.709: shown as the other, their colours are wrong.
const colorURI = "http://www.webrtc.org/experiments/rtp-hdrext/color-space"

// colorSize is the length of the extension, in bytes, unless it has the metadata of
// pictures of high dynamic range, which VP8 does not have.
const colorSize = 4

// color is what the client says of its pictures' colours, which holds for the edited ones
// too. nil means that it says nothing.
type color struct {
	atomic.Pointer[[colorSize]byte]
}

// read notes what a packet says, by the extension of the id. It reports whether it says
// anything.
func (c *color) read(p *rtp.Packet, id uint8) bool {
	if id == 0 {
		return false
	}
	said := p.GetExtension(id)
	if len(said) != colorSize {
		return false
	}
	if known := c.Load(); known == nil || *known != [colorSize]byte(said) {
		next := [colorSize]byte(said)
		c.Store(&next)
	}
	return true
}

// extensionOf returns the id of a header extension of what a client sends, 0 if it does
// not send it.
func extensionOf(receiver *webrtc.RTPReceiver, uri string) uint8 {
	for _, extension := range receiver.GetParameters().HeaderExtensions {
		if extension.URI == uri {
			return uint8(extension.ID)
		}
	}
	return 0
}

// colored tells receivers of video what its colours mean, in the last packet of each
// frame.
type colored struct {
	interceptor.NoOp
	color *color
}

// NewInterceptor is for the library.
func (c *colored) NewInterceptor(string) (interceptor.Interceptor, error) { return c, nil }

// BindLocalStream is for the library.
func (c *colored) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	id := extensionID(info, colorURI)
	if id == 0 {
		return w
	}
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if said := c.color.Load(); said != nil && h.Marker {
			if err := h.SetExtension(id, said[:]); err != nil {
				return 0, err
			}
		}
		return w.Write(h, payload, a)
	})
}
