package room

import (
	"strings"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	// minBitrate, firstBitrate and maxBitrate bound what is sent to a peer, in bit/s.
	minBitrate, firstBitrate, maxBitrate = 150_000, 1_500_000, 2_500_000
	// minEstimate is the least that the network is taken for, also when it drops much: with
	// less there would be nothing to measure it by.
	minEstimate = 100_000
)

// bandwidth estimates what one peer's network takes, and paces the video that goes there.
// Audio passes: it is little, and late audio is worse than lost.
type bandwidth struct {
	interceptor.Interceptor
	estimator cc.BandwidthEstimator
}

// newBandwidth returns the estimator of a peer.
//
// Errors: those of the library.
func newBandwidth(l *logs) (*bandwidth, error) {
	b := &bandwidth{}
	factory, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		return gcc.NewSendSideBWE(
			gcc.SendSideBWEInitialBitrate(firstBitrate), gcc.SendSideBWEMinBitrate(minEstimate),
			gcc.SendSideBWEMaxBitrate(2*maxBitrate), gcc.SendSideBWEPacer(newPacer(firstBitrate)), gcc.WithLoggerFactory(l),
		)
	})
	if err != nil {
		return nil, err
	}
	factory.OnNewPeerConnection(func(_ string, e cc.BandwidthEstimator) { b.estimator = e })
	b.Interceptor, err = factory.NewInterceptor("")
	return b, err
}

// NewInterceptor is for the library, which asks once for each peer.
func (b *bandwidth) NewInterceptor(string) (interceptor.Interceptor, error) { return b, nil }

// BindLocalStream is for the library.
func (b *bandwidth) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	if !strings.HasPrefix(info.MimeType, "video/") {
		return w
	}
	return b.Interceptor.BindLocalStream(info, w)
}

// BindRTCPReader is for the library, which would take for lost packets what fills the last
// part of a report that tells of some lost ones: with one packet of fifty lost it took half
// of them for lost, and sent less and less.
func (b *bandwidth) BindRTCPReader(reader interceptor.RTCPReader) interceptor.RTCPReader {
	return b.Interceptor.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(in []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			n, a, err := reader.Read(in, a)
			if err != nil {
				return n, a, err
			}
			reports, err := a.GetRTCPPackets(in[:n])
			for _, report := range reports {
				if times, is := report.(*rtcp.TransportLayerCC); is {
					trim(times)
				}
			}
			return n, a, err
		}))
}

// trim takes from a report what fills its last part.
func trim(report *rtcp.TransportLayerCC) {
	left := int(report.PacketStatusCount)
	for _, part := range report.PacketChunks {
		switch part := part.(type) {
		case *rtcp.RunLengthChunk:
			part.RunLength = uint16(min(int(part.RunLength), left))
			left -= int(part.RunLength)
		case *rtcp.StatusVectorChunk:
			part.SymbolList = part.SymbolList[:min(len(part.SymbolList), left)]
			left -= len(part.SymbolList)
		}
	}
}

// bitrate returns what video may take now, in bit/s.
func (b *bandwidth) bitrate() int {
	// A tenth is left to retransmissions and the rest.
	return max(minBitrate, min(b.estimator.GetTargetBitrate()*9/10, maxBitrate))
}

// playoutURI names the header extension by which a sender asks for a delay.
const playoutURI = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"

// playoutMost is the longest delay that is asked for, in units of 10 ms: browsers keep
// pictures for longer unless they are asked not to.
const playoutMost = 10

// playout asks receivers of video to show it at once.
type playout struct{ interceptor.NoOp }

// NewInterceptor is for the library.
func (p *playout) NewInterceptor(string) (interceptor.Interceptor, error) { return p, nil }

// BindLocalStream is for the library.
func (*playout) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	id := extensionID(info, playoutURI)
	if id == 0 {
		return w
	}
	// 12 bits are the least delay, 12 the longest.
	delay := []byte{0, playoutMost >> 8, playoutMost & 0xff}
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if err := h.SetExtension(id, delay); err != nil {
			return 0, err
		}
		return w.Write(h, payload, a)
	})
}

// extensionID returns the id of a header extension of a stream, 0 if its receiver does not
// know it.
func extensionID(info *interceptor.StreamInfo, uri string) uint8 {
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == uri {
			return uint8(extension.ID)
		}
	}
	return 0
}
