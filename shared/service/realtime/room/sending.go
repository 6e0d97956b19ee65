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
	// The minimum, initial and maximum bitrates of a peer's video, in bit/s.
	minBitrate, firstBitrate, maxBitrate = 150_000, 1_500_000, 2_500_000
	// minEstimate is the lowest bandwidth estimate. With less traffic, the estimator would have nothing to measure.
	minEstimate = 100_000
)

// bandwidth estimates a peer's bandwidth and paces its video. Audio is not paced, because late
// audio would be useless.
type bandwidth struct {
	interceptor.Interceptor
	estimator cc.BandwidthEstimator
}

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

func (b *bandwidth) NewInterceptor(string) (interceptor.Interceptor, error) { return b, nil }

func (b *bandwidth) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	if !strings.HasPrefix(info.MimeType, "video/") {
		return w
	}
	return b.Interceptor.BindLocalStream(info, w)
}

// BindRTCPReader removes the padding from the last chunk of a report that has lost packets. The
// library would count the padding as lost packets and keep reducing the bitrate.
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

func (b *bandwidth) bitrate() int {
	// The remaining tenth is for retransmissions and other packets.
	return max(minBitrate, min(b.estimator.GetTargetBitrate()*9/10, maxBitrate))
}

// playoutURI is the header extension with which a sender requests a playout delay.
const playoutURI = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"

// playoutMost is the maximum delay to request, in units of 10 ms. By default, browsers use a longer delay.
const playoutMost = 10

type playout struct{ interceptor.NoOp }

func (p *playout) NewInterceptor(string) (interceptor.Interceptor, error) { return p, nil }

func (*playout) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	id := extensionID(info, playoutURI)
	if id == 0 {
		return w
	}
	// The extension has 12 bits each for the minimum and the maximum delay.
	delay := []byte{0, playoutMost >> 8, playoutMost & 0xff}
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if err := h.SetExtension(id, delay); err != nil {
			return 0, err
		}
		return w.Write(h, payload, a)
	})
}

// fresh gives each participant its own packet headers without extensions. The library passes one header to all
// participants, and each of them numbers extensions differently.
type fresh struct{ interceptor.NoOp }

func (f *fresh) NewInterceptor(string) (interceptor.Interceptor, error) { return f, nil }

func (*fresh) BindLocalStream(_ *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		own := *h
		own.Extension, own.Extensions = false, nil
		return w.Write(&own, payload, a)
	})
}

func extensionID(info *interceptor.StreamInfo, uri string) uint8 {
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == uri {
			return uint8(extension.ID)
		}
	}
	return 0
}
