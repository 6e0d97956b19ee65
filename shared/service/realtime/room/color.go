package room

import (
	"sync/atomic"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// colorURI identifies the header extension for a frame's color space. Browsers assume BT.601, but
// they send frames from a canvas as BT.709.
const colorURI = "http://www.webrtc.org/experiments/rtp-hdrext/color-space"

// colorSize is the extension's size in bytes without HDR metadata, which VP8 does not support.
const colorSize = 4

// color is the color space of both the client's frames and the edited ones. nil means unspecified.
type color struct {
	atomic.Pointer[[colorSize]byte]
}

// read reads the header extension with the given id, and reports whether the packet has it.
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

func extensionOf(receiver *webrtc.RTPReceiver, uri string) uint8 {
	for _, extension := range receiver.GetParameters().HeaderExtensions {
		if extension.URI == uri {
			return uint8(extension.ID)
		}
	}
	return 0
}

// colored adds the color space to the last packet of each video frame.
type colored struct {
	interceptor.NoOp
	color *color
}

func (c *colored) NewInterceptor(string) (interceptor.Interceptor, error) { return c, nil }

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
