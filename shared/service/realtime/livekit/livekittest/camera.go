package livekittest

import (
	"context"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"

	"cutroom/shared/service/realtime/livekit"
)

const frameTime = 40 * time.Millisecond

// Publish sends sound, and the camera's frames at 25 per second.
func (c *Client) Publish() {
	c.Helper()
	camera, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: videoClock}, "camera", "mine")
	c.must(err)
	microphone, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2}, "microphone", "mine")
	c.must(err)
	for _, track := range []webrtc.TrackLocal{camera, microphone} {
		transceiver, err := c.Own.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionSendonly,
		})
		c.must(err)
		go c.readReports(transceiver.Sender())
	}
	c.Say(&livekit.SignalRequest{AddTrack: &livekit.AddTrackRequest{
		Cid: "camera", Type: livekit.TrackVideo, Width: 640, Height: 360,
	}})
	c.Negotiate(false)
	filming, stop := context.WithCancel(c.life)
	c.filming.Go(func() { c.film(filming, camera, microphone) })
	c.unpublish = func() {
		stop()
		c.filming.Wait()
	}
}

func (c *Client) Unpublish() {
	c.Helper()
	c.unpublish()
	for _, sender := range c.Own.GetSenders() {
		if sender.Track() != nil {
			c.must(c.Own.RemoveTrack(sender))
		}
	}
	c.Negotiate(false)
}

func (c *Client) readReports(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			if _, is := packet.(*rtcp.PictureLossIndication); is {
				c.key.Store(true)
			}
		}
	}
}

func (c *Client) film(ctx context.Context, camera, microphone *webrtc.TrackLocalStaticSample) {
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		frame := c.Camera(c.key.Swap(false))
		c.Sent.Add(1)
		_ = camera.WriteSample(media.Sample{Data: frame, Duration: frameTime})
		_ = microphone.WriteSample(media.Sample{Data: []byte("sound"), Duration: frameTime / 2})
	}
}
