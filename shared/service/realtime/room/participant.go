package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"

	"cutroom/shared/service/realtime/livekit"
)

const (
	resumeTime = 20 * time.Second
	sayTime    = 5 * time.Second
	// leaveTime limits how long a client may take to read the leave message.
	leaveTime = 2 * time.Second
	maxTracks = 32
)

// participant is a client in a room. It has at most one signaling connection.
type participant struct {
	room *Room
	// sid cannot be guessed. identity comes from the token.
	sid, identity string
	publishes     bool
	version       livekit.Version
	offers        *rate.Limiter
	talking       sync.Mutex

	mu sync.Mutex
	// socket is nil while the signaling connection is lost.
	socket *socket
	// away is the timer that removes a participant that does not reconnect.
	away *time.Timer
	// The client sends the offers for the peer own, and the server sends the offers for the peer other. In version 1
	// they are the same connection.
	own, other *peer
	// hasVideo and hasSound mean that the server's tracks have been added to a connection.
	hasVideo, hasSound bool
	// due means that the server must send another offer once the client has answered the last one.
	due     bool
	offered uint32
	tracks  int
	left    bool
}

// newParticipant returns a participant that has not entered the room yet.
func newParticipant(r *Room, g livekit.Grant, version livekit.Version) (*participant, error) {
	p := &participant{
		room: r, sid: "PA_" + r.server.config.NewID(), identity: g.Identity, publishes: g.Publish, version: version,
		offers: rate.NewLimiter(0.5, 20),
	}
	var err error
	if p.own, err = p.newPeer(); err != nil {
		return nil, err
	}
	if p.other = p.own; version == livekit.Version0 {
		if p.other, err = p.newPeer(); err != nil {
			_ = p.own.Close()
			return nil, err
		}
	}
	return p, nil
}

// errTooMuch ends a participant that opens more streams than real clients do.
var errTooMuch = errors.New("room: the client opened too many streams")

func (p *participant) newPeer() (*peer, error) {
	one, err := p.room.server.config.Ports.newPeer(&p.room.color, func() { p.fails(errTooMuch) })
	if err != nil {
		return nil, err
	}
	if !p.publishes {
		one.bounds.media.SetLimit(unwantedRate)
		one.bounds.media.SetBurst(unwantedRate)
	}
	one.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			one.connected.Store(true)
			one.bounds.connected.CompareAndSwap(nil, new(time.Now()))
			p.room.keyAsked.Store(true)
		}
	})
	var tracks sync.Map
	one.OnTrack(func(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
		if _, again := tracks.LoadOrStore(track, true); again {
			return // the client sends the track with another SSRC, and its reader continues
		}
		switch {
		case !p.publishes:
		case track.Kind() == webrtc.RTPCodecTypeVideo:
			p.room.receive(one, track, extensionOf(receiver, colorURI))
			return
		default:
			p.room.hears()
			p.room.sound.receive(track)
			return
		}
		drop(track)
	})
	return one, nil
}

func drop(track *webrtc.TrackRemote) {
	content := make([]byte, maxPacket)
	for {
		if _, _, err := track.Read(content); err != nil {
			return
		}
	}
}

// bitrate returns the estimated bandwidth available for video. active reports whether the participant is connected.
func (p *participant) bitrate() (bitrate int, active bool) {
	return p.other.bandwidth.bitrate(), p.other.ConnectionState() == webrtc.PeerConnectionStateConnected
}

// attach replaces the participant's socket. It returns false if the participant has left.
func (p *participant) attach(socket *socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return false
	}
	if p.socket != nil {
		go p.socket.CloseNow()
	}
	if p.away != nil {
		p.away.Stop()
		p.away = nil
	}
	p.socket = socket
	return true
}

// detach records that the socket was lost. The participant is removed unless it reconnects.
func (p *participant) detach(socket *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != socket || p.left {
		return
	}
	p.socket = nil
	p.away = time.AfterFunc(resumeTime, func() {
		p.end(livekit.ReasonStateMismatch, livekit.ActionDisconnect)
	})
}

// end sends the leave message and closes the participant's connections.
func (p *participant) end(why livekit.DisconnectReason, action livekit.LeaveAction) {
	p.mu.Lock()
	if p.left {
		p.mu.Unlock()
		return
	}
	p.left = true
	socket := p.socket
	if p.away != nil {
		p.away.Stop()
	}
	p.mu.Unlock()
	// Exit the room first, so that the client can rejoin.
	p.room.exit(p)
	if socket != nil {
		defer socket.cut().Stop()
		p.write(socket, leave(why, action))
	}
	if err := errors.Join(p.own.Close(), p.other.Close()); err != nil {
		p.room.server.config.Logger.Error("cannot close a WebRTC connection", "error", err)
	}
	if socket != nil {
		socket.close(websocket.StatusNormalClosure, "")
	}
}

func leave(why livekit.DisconnectReason, action livekit.LeaveAction) *livekit.SignalResponse {
	return &livekit.SignalResponse{Leave: &livekit.LeaveRequest{
		Reason: why, Action: action, CanReconnect: action != livekit.ActionDisconnect,
	}}
}

func (p *participant) say(message *livekit.SignalResponse) {
	p.mu.Lock()
	socket, left := p.socket, p.left
	p.mu.Unlock()
	if socket != nil && !left {
		p.write(socket, message)
	}
}

func (p *participant) write(socket *socket, message *livekit.SignalResponse) {
	p.talking.Lock()
	defer p.talking.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sayTime)
	defer cancel()
	_ = socket.Write(ctx, websocket.MessageBinary, livekit.Marshal(message))
}

// offerMedia sends an offer with the server's tracks, unless the client sends the offers.
func (p *participant) offerMedia(restart bool) error {
	if p.version != livekit.Version0 {
		return nil
	}
	p.mu.Lock()
	offer, err := p.nextOffer(restart)
	p.mu.Unlock()
	if offer != nil {
		p.say(&livekit.SignalResponse{Offer: offer})
	}
	return err
}

// nextOffer returns an offer with the server's tracks, or nil while the client has not answered the
// last one. The participant must be locked.
func (p *participant) nextOffer(restart bool) (*livekit.SessionDescription, error) {
	if p.other.SignalingState() == webrtc.SignalingStateHaveLocalOffer {
		if !restart {
			p.due = true
			return nil, nil
		}
		// Roll back the last offer, because the answer was lost with the signaling connection.
		back := webrtc.SessionDescription{Type: webrtc.SDPTypeRollback}
		if err := p.other.SetLocalDescription(back); err != nil {
			return nil, err
		}
	}
	p.due = false
	if err := p.addTracks(); err != nil {
		return nil, err
	}
	text, err := p.other.offer(restart)
	if err != nil {
		return nil, err
	}
	p.offered++
	return &livekit.SessionDescription{Type: "offer", Sdp: text, Id: p.offered, MidToTrackId: p.trackIDs()}, nil
}

// addTracks adds the server's new tracks to their connection. The participant must be locked.
func (p *participant) addTracks() error {
	if !p.hasVideo {
		sender, err := p.other.AddTrack(p.room.video)
		if err != nil {
			return err
		}
		p.hasVideo = true
		p.room.spawn(func() { p.readReports(sender) })
	}
	if !p.hasSound && p.room.hasSound() {
		sender, err := p.other.AddTrack(p.room.audio)
		if err != nil {
			return err
		}
		p.hasSound = true
		p.room.spawn(func() { p.readReports(sender) })
	}
	return nil
}

// readReports reads the client's reports about a track until the connection ends.
func (p *participant) readReports(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				p.room.keyAsked.Store(true)
			}
		}
	}
}

// trackIDs maps each of the server's tracks to its media section (MID). The participant must be locked.
func (p *participant) trackIDs() (ids []*livekit.MidTrack) {
	for _, one := range p.other.GetTransceivers() {
		if sender := one.Sender(); sender != nil && sender.Track() != nil && one.Mid() != "" {
			ids = append(ids, &livekit.MidTrack{Mid: one.Mid(), TrackID: sender.Track().ID()})
		}
	}
	return ids
}

// addSound tells the client to receive the server's sound, which has just started.
func (p *participant) addSound() {
	if p.version == livekit.Version0 {
		p.fails(p.offerMedia(false))
		return
	}
	p.mu.Lock()
	pending := p.hasVideo && !p.hasSound
	p.mu.Unlock()
	if pending {
		// The client responds with another offer that has a section for the sound.
		p.say(&livekit.SignalResponse{
			MediaSectionsRequirement: &livekit.MediaSectionsRequirement{NumAudios: 1},
		})
	}
}

// fails handles the result of a library call. If err is not nil, fails removes the participant. The client may join
// again.
func (p *participant) fails(err error) {
	if err == nil {
		return
	}
	p.room.server.config.Logger.Debug("cannot serve a participant", "session", p.room.config.Session, "error", err)
	action := livekit.ActionDisconnect
	if p.own.connected.Load() {
		action = livekit.ActionReconnect // for example after it has replaced its tracks too often
	}
	go p.end(livekit.ReasonJoinFailure, action)
}
