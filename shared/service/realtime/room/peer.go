package room

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/webrtc/v4"
)

const (
	// disconnectedTime is how long a peer may be silent before it counts as disconnected. It may
	// then reconnect within failedTime.
	disconnectedTime, failedTime = 5 * time.Second, 20 * time.Second
	aliveTime                    = 2 * time.Second
	// gatherTime limits how long to wait for the server's addresses. A closed peer never gets them.
	gatherTime = 10 * time.Second
	// closeTime limits how long to wait for the library to close a connection. It closes most of them in milliseconds.
	closeTime = 2 * time.Second
)

// Payload types in the server's offers. The server's answers use the client's payload types.
const payloadVP8, payloadRTX, payloadOpus = 96, 97, 111

type peer struct {
	*webrtc.PeerConnection
	bandwidth *bandwidth
	bounds    *intake
	// connected is true once the media transport is up. early counts the descriptions before that, because the library
	// keeps them. described is the time of the first description in Unix nanoseconds, or 0.
	connected atomic.Bool
	early     atomic.Int32
	described atomic.Int64
}

// Close fails after closeTime, so that a deadlock in the library does not stop the server from exiting.
func (p *peer) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- p.PeerConnection.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTime):
		return errors.New("room: the WebRTC library does not close the connection")
	}
}

// maxEarlyDescriptions limits a client's descriptions before it is connected. Clients send one or two.
const maxEarlyDescriptions = 5

// mayDescribe reports whether the client may send another description.
func (p *peer) mayDescribe() bool {
	p.described.CompareAndSwap(0, time.Now().UnixNano())
	return p.connected.Load() || p.early.Add(1) <= maxEarlyDescriptions
}

// isLate reports whether the client sent its first description long ago but has not connected.
func (p *peer) isLate() bool {
	described := p.described.Load()
	return described != 0 && !p.connected.Load() && time.Since(time.Unix(0, described)) > answerTime
}

// describeClient applies a client's description and remembers the client's credentials. A client may not have more
// than maxSections sections in total, because the library keeps a transceiver for each as long as the connection
// exists.
func (p *peer) describeClient(kind webrtc.SDPType, d description) error {
	if !p.bounds.claim(d) {
		return errOffer
	}
	client := iceUserOf(d.text)
	p.bounds.client.Store(&client)
	if err := p.SetRemoteDescription(webrtc.SessionDescription{Type: kind, SDP: d.text}); err != nil {
		return err
	}
	if len(p.GetTransceivers()) > maxSections {
		return errOffer
	}
	return nil
}

// newPeer returns a peer that uses the color space c. It calls the function overflow if the client exceeds the
// limits.
func (p *Ports) newPeer(c *color, overflow func()) (*peer, error) {
	media := &webrtc.MediaEngine{}
	registry := &interceptor.Registry{}
	limit, err := newBandwidth(p.logs)
	if err != nil {
		return nil, err
	}
	bounds := newIntake(overflow)
	if err := errors.Join(registerCodecs(media), p.registerInterceptors(registry, bounds, limit, &colored{color: c})); err != nil {
		return nil, err
	}
	settings, err := p.settings(bounds)
	if err != nil {
		return nil, err
	}
	api := webrtc.NewAPI(
		webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry),
	)
	connection, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	return &peer{PeerConnection: connection, bandwidth: limit, bounds: bounds}, nil
}

// settings configures how peers connect. The server is ICE-lite (RFC 8445, section 2.5). It sends nothing to an
// address before it has received a packet from that address, and little before the address has answered a request.
func (p *Ports) settings(bounds *intake) (s webrtc.SettingEngine, err error) {
	s.LoggerFactory = p.logs
	s.BufferFactory = bounds.buffer
	s.SetRemoteIPFilter(bounds.call)
	s.SetLite(true)
	s.SetICEUDPMux(quietMux{p.udp, bounds})
	s.SetICETCPMux(quietTCP{p.tcp, bounds, p.listener})
	s.SetNetworkTypes([]webrtc.NetworkType{
		webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6,
	})
	s.SetIncludeLoopbackCandidate(true)
	s.SetIPFilter(p.at)
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	s.SetICETimeouts(disconnectedTime, failedTime, aliveTime)
	if len(p.public) == 0 {
		return s, nil
	}
	external := make([]string, len(p.public))
	for i, address := range p.public {
		external[i] = address.String()
	}
	err = s.SetICEAddressRewriteRules(webrtc.ICEAddressRewriteRule{
		External: external, AsCandidateType: webrtc.ICECandidateTypeHost, Mode: webrtc.ICEAddressRewriteReplace,
	})
	return s, err
}

func registerCodecs(m *webrtc.MediaEngine) error {
	video := func(mime string, payload webrtc.PayloadType, parameters string, feedback ...webrtc.RTCPFeedback) error {
		return m.RegisterCodec(webrtc.RTPCodecParameters{PayloadType: payload, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: mime, ClockRate: videoClock, SDPFmtpLine: parameters, RTCPFeedback: feedback,
		}}, webrtc.RTPCodecTypeVideo)
	}
	audio := webrtc.RTPCodecParameters{PayloadType: payloadOpus, RTPCodecCapability: webrtc.RTPCodecCapability{
		MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
	}}
	err := errors.Join(
		video(webrtc.MimeTypeVP8, payloadVP8, "",
			webrtc.RTCPFeedback{Type: "ccm", Parameter: "fir"}, webrtc.RTCPFeedback{Type: "nack"},
			webrtc.RTCPFeedback{Type: "nack", Parameter: "pli"}, webrtc.RTCPFeedback{Type: "transport-cc"}),
		video(webrtc.MimeTypeRTX, payloadRTX, "apt=96"),
		m.RegisterCodec(audio, webrtc.RTPCodecTypeAudio),
	)
	for _, uri := range extensions {
		extension := webrtc.RTPHeaderExtensionCapability{URI: uri}
		err = errors.Join(err, m.RegisterHeaderExtension(extension, webrtc.RTPCodecTypeVideo))
	}
	return err
}

// registerInterceptors registers the interceptors. The last one is the first to handle sent
// packets, and the first one is the first to handle received packets.
func (p *Ports) registerInterceptors(
	registry *interceptor.Registry, bounds *intake, limit *bandwidth, colors *colored,
) error {
	numbers, err1 := twcc.NewHeaderExtensionInterceptor()
	feedback, err2 := twcc.NewSenderInterceptor(twcc.WithLoggerFactory(p.logs))
	again, err3 := nack.NewResponderInterceptor(nack.WithResponderLoggerFactory(p.logs), nack.ResponderSize(1024))
	received, err4 := report.NewReceiverInterceptor(report.WithReceiverLoggerFactory(p.logs))
	sent, err5 := report.NewSenderInterceptor(report.WithSenderLoggerFactory(p.logs))
	for _, one := range []interceptor.Factory{bounds, limit, numbers, &playout{}, colors, feedback, again, received, sent, &fresh{}} {
		registry.Add(one)
	}
	return errors.Join(err1, err2, err3, err4, err5)
}

// answer answers an offer that readOffer returned. Once the offer has been applied, it calls the function before. It
// then creates the answer.
func (p *peer) answer(offer description, before func() error) (string, error) {
	if err := p.describeClient(webrtc.SDPTypeOffer, offer); err != nil {
		return "", err
	}
	if err := before(); err != nil {
		return "", err
	}
	answer, err := p.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	text, err := p.describe(answer)
	if err != nil {
		return "", err
	}
	return closeEmpty(text)
}

// offer returns an offer with the server's addresses. If restart is set, the offer restarts ICE.
func (p *peer) offer(restart bool) (string, error) {
	offer, err := p.CreateOffer(&webrtc.OfferOptions{ICERestart: restart})
	if err != nil {
		return "", err
	}
	return p.describe(offer)
}

// describe sets the local description, and returns it with the server's addresses.
func (p *peer) describe(local webrtc.SessionDescription) (string, error) {
	gathered := webrtc.GatheringCompletePromise(p.PeerConnection)
	if err := p.SetLocalDescription(local); err != nil {
		return "", err
	}
	select {
	case <-gathered:
	case <-time.After(gatherTime):
	}
	return p.LocalDescription().SDP, nil
}
