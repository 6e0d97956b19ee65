package room

import (
	"context"
	"time"

	"github.com/coder/websocket"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"

	"cutroom/shared/service/realtime/livekit"
)

const (
	// maxSignal is the maximum size of a client's message, in bytes. The message may contain a session description.
	maxSignal = 256 << 10
	// Clients ping every pingInterval and wait pingTimeout for the reply. silence is the time without a message after
	// which a client is disconnected.
	pingInterval, pingTimeout, silence = 5 * time.Second, 15 * time.Second, 45 * time.Second
	// answerTime limits the negotiation of the first connection.
	answerTime = 30 * time.Second
)

// The version and protocol number of the LiveKit server that this server emulates.
const likeVersion, likeProtocol = "1.13.0", 16

func costOf(message []byte) int { return 1 + len(message)>>10 }

// welcome sends the description of the room and starts the negotiation.
func (p *participant) welcome(join *livekit.JoinRequest) {
	p.say(&livekit.SignalResponse{Join: p.joined()})
	for _, track := range join.AddTrackRequests {
		p.addTrack(track)
	}
	p.fails(p.offerMedia(false))
	if offer := join.PublisherOffer; offer != nil && offer.Sdp != "" {
		p.answerOffer(offer)
	}
}

func (p *participant) joined() *livekit.JoinResponse {
	r := p.room
	return &livekit.JoinResponse{
		Room: &livekit.Room{Sid: r.sid, Name: r.name, CreationTime: r.began.Unix(), NumParticipants: 2},
		Participant: &livekit.ParticipantInfo{
			Sid: p.sid, Identity: p.identity, State: livekit.StateJoined,
			JoinedAt: r.server.config.Now().Unix(), Version: 1, IsPublisher: p.publishes,
			Permission: &livekit.ParticipantPermission{CanSubscribe: true, CanPublish: p.publishes, CanPublishData: p.publishes},
		},
		OtherParticipants: []*livekit.ParticipantInfo{r.hostInfo()},
		ServerVersion:     likeVersion, ServerInfo: serverInfo(), IceServers: r.relays(),
		SubscriberPrimary: p.version == livekit.Version0,
		PingTimeout:       int32(pingTimeout / time.Second), PingInterval: int32(pingInterval / time.Second),
		// Clients use the first video codec in this list and ignore their own preference.
		EnabledPublishCodecs: []*livekit.Codec{
			{Mime: webrtc.MimeTypeVP8}, {Mime: webrtc.MimeTypeOpus}, {Mime: webrtc.MimeTypeRTX},
		},
	}
}

func serverInfo() *livekit.ServerInfo {
	return &livekit.ServerInfo{Version: likeVersion, Protocol: likeProtocol}
}

func (p *participant) resumed(join *livekit.JoinRequest) {
	p.say(&livekit.SignalResponse{
		Reconnect: &livekit.ReconnectResponse{ServerInfo: serverInfo(), IceServers: p.room.relays()},
	})
	p.fails(p.offerMedia(true))
	if offer := join.PublisherOffer; offer != nil && offer.Sdp != "" {
		p.answerOffer(offer)
	}
}

// listen handles a client's messages until the socket is closed. left reports whether the client has left the room.
func (p *participant) listen(socket *socket) (left bool) {
	// A joining client sends a few dozen messages, including two of 20 kB.
	signals, began := rate.NewLimiter(50, 300), time.Now()
	for {
		content, err := read(socket.Conn)
		if err != nil {
			return false
		}
		var message livekit.SignalRequest
		switch {
		case !signals.AllowN(time.Now(), costOf(content)),
			time.Since(began) > answerTime && !p.own.connected.Load() && !p.other.connected.Load(),
			p.own.isLate(), p.other.isLate():
			p.end(livekit.ReasonParticipantRemoved, livekit.ActionDisconnect)
			return false
		case livekit.Unmarshal(content, &message) != nil:
			// Newer clients may send unknown messages, but never malformed ones.
			continue
		}
		if message.Leave != nil {
			return true
		}
		p.handle(&message)
	}
}

// read reads a message. It fails after a long silence.
func read(socket *websocket.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	_, content, err := socket.Read(ctx)
	return content, err
}

func (p *participant) handle(message *livekit.SignalRequest) {
	switch {
	case message.Offer != nil:
		p.answerOffer(message.Offer)
	case message.Answer != nil:
		p.takeAnswer(message.Answer)
	case message.AddTrack != nil:
		p.addTrack(message.AddTrack)
	case message.Ping != nil:
		now := time.Now().UnixMilli()
		p.say(&livekit.SignalResponse{Pong: &now})
	case message.PingReq != nil:
		p.say(&livekit.SignalResponse{PongResp: &livekit.Pong{
			LastPingTimestamp: message.PingReq.Timestamp, Timestamp: time.Now().UnixMilli(),
		}})
	}
}

// takeTurn waits for the room's other session descriptions. If that takes too long, it does not wait any longer.
func (p *participant) takeTurn() (release func()) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	turns, name := p.room.server.descriptions, p.room.Name()
	if !turns.Take(ctx, name) {
		return func() {}
	}
	return func() { turns.Release(name) }
}

func (p *participant) answerOffer(offer *livekit.SessionDescription) {
	if !p.own.mayDescribe() || !p.offers.Allow() {
		p.fails(errOffer)
		return
	}
	answer, ids, err := p.applyOffer(offer.Sdp)
	if err != nil {
		p.fails(err)
		return
	}
	p.say(&livekit.SignalResponse{Answer: &livekit.SessionDescription{
		Type: "answer", Sdp: answer, Id: offer.Id, MidToTrackId: ids,
	}})
}

func (p *participant) applyOffer(offer string) (answer string, ids []*livekit.MidTrack, err error) {
	release := p.takeTurn()
	defer release()
	read, err := readOffer(offer)
	if err != nil {
		return "", nil, err
	}
	if p.publishes && read.sound {
		p.room.hears()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, err = p.own.answer(read, func() error {
		if p.version == livekit.Version0 {
			return nil
		}
		return p.addTracks()
	})
	if err == nil {
		ids = p.trackIDs()
	}
	return answer, ids, err
}

func (p *participant) takeAnswer(answer *livekit.SessionDescription) {
	if p.version != livekit.Version0 || !p.other.mayDescribe() || !p.offers.Allow() {
		return
	}
	release := p.takeTurn()
	read, err := readOffer(answer.Sdp)
	if err == nil {
		err = p.other.describeClient(webrtc.SDPTypeAnswer, read)
	}
	release()
	if err != nil {
		p.fails(err)
		return
	}
	p.mu.Lock()
	due := p.due
	p.mu.Unlock()
	if due {
		p.fails(p.offerMedia(false))
	}
}

// addTrack acknowledges a track that the client is about to publish.
func (p *participant) addTrack(asked *livekit.AddTrackRequest) {
	p.mu.Lock()
	p.tracks++
	allowed := p.publishes && p.tracks <= maxTracks
	p.mu.Unlock()
	if !allowed {
		return
	}
	track := &livekit.TrackInfo{
		Sid: "TR_" + p.room.server.config.NewID(), Type: asked.Type, Name: asked.Name, Muted: asked.Muted,
		Width: asked.Width, Height: asked.Height, Source: asked.Source, Layers: asked.Layers,
		MimeType: webrtc.MimeTypeOpus, Stream: asked.Stream, PacketTrailerFeatures: asked.PacketTrailerFeatures,
	}
	if asked.Type == livekit.TrackVideo {
		p.room.announce(asked.Width, asked.Height)
		track.MimeType = webrtc.MimeTypeVP8
		track.Codecs = []*livekit.SimulcastCodecInfo{
			{MimeType: webrtc.MimeTypeVP8, Cid: asked.Cid, Layers: asked.Layers},
		}
	}
	p.say(&livekit.SignalResponse{
		TrackPublished: &livekit.TrackPublishedResponse{Cid: asked.Cid, Track: track},
	})
}
