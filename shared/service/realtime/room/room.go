package room

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
)

const (
	// maxFrames is how many frames wait for the session. They have to be decoded one after
	// the other, which takes less time than they are shown for.
	maxFrames = 32
	// maxViewers is how many watch a session at once, beside its client.
	maxViewers = 20
	// packetSize is the size of a packet with its headers, in bytes: what passes every
	// network whole.
	packetSize = 1180
	// cameraStream names the stream that picture and sound belong to, so that browsers keep
	// them together.
	cameraStream = "camera"
)

// Config is what a room is for.
type Config struct {
	// Owner becomes a part of the room's name, so that other servers know whose it is. It is
	// of letters and digits; it may be empty.
	Owner string
	// Account is whose session it is; only its keys and tokens may watch.
	Account string
	// Session is the session's id.
	Session string
	// FrameTiming is true if the client appends times to its frames and wants them back.
	FrameTiming bool
	// Heard is called for each packet of the client's media.
	Heard func()
}

// Frame is a frame of VP8 as the client sent it.
type Frame struct {
	Data []byte
	// Trailer is what the client appended to the frame, and wants appended to the edited
	// one.
	Trailer []byte
	// Key is true if the frame builds on no other.
	Key bool
	// Timestamp is when the picture was taken, in units of 1/90000 s.
	Timestamp uint32
	// Arrived is when the last of the frame's packets came.
	Arrived time.Time
}

// Room is the media of one session. Close ends it.
type Room struct {
	config Config
	server *Server
	name   string
	// sid is the room's, host that of the participant who is the server.
	sid, host    string
	began        time.Time
	video, audio *webrtc.TrackLocalStaticRTP
	packets      rtp.Packetizer
	frames       chan Frame
	// keyAsked is true while somebody needs a key frame.
	keyAsked atomic.Bool
	sound    *sound
	// color is that of the camera.
	color color
	// work counts the room's goroutines.
	work sync.WaitGroup

	mu           sync.Mutex
	participants map[string]*participant // by identity
	// source is what receives the camera, nil if there is none.
	source *receiver
	// placed is true once the source's first frame has its place in times.
	placed bool
	times  timeline
	// keyTold is when KeyWanted reported a need.
	keyTold time.Time
	// width and height are those of the camera as the client announced it.
	width, height uint32
	heard, closed bool
}

// newRoom returns a room of the name.
//
// Errors: those of the library.
func newRoom(s *Server, name string, c Config) (r *Room, err error) {
	r = &Room{
		config: c, server: s, name: name, sid: "RM_" + s.config.NewID(), host: "PA_" + s.config.NewID(), began: s.config.Now(),
		frames: make(chan Frame, maxFrames), participants: map[string]*participant{}, times: timeline{rate: videoClock},
		packets: rtp.NewPacketizer(packetSize, payloadVP8, 0, &payloader{}, rtp.NewRandomSequencer(), videoClock),
	}
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: videoClock}
	r.video, err = webrtc.NewTrackLocalStaticRTP(capability, "TR_"+s.config.NewID(), r.host+"|"+cameraStream)
	if err != nil {
		return nil, err
	}
	capability = webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2}
	r.audio, err = webrtc.NewTrackLocalStaticRTP(capability, "TR_"+s.config.NewID(), r.host+"|"+cameraStream)
	if err != nil {
		return nil, err
	}
	r.sound = newSound(r)
	r.work.Go(r.sound.play)
	return r, nil
}

// Name returns the room's name, which is unguessable.
func (r *Room) Name() string { return r.name }

// Account returns whose session it is.
func (r *Room) Account() string { return r.config.Account }

// Session returns the session's id.
func (r *Room) Session() string { return r.config.Session }

// Frames returns the frames that the client sends. The channel is closed with the room.
func (r *Room) Frames() <-chan Frame { return r.frames }

// AskKey asks the client for a key frame. Until one comes, frames are dropped.
func (r *Room) AskKey() {
	r.mu.Lock()
	source := r.source
	r.mu.Unlock()
	if source != nil {
		source.wantKey()
	}
}

// KeyWanted reports whether the next frame that is sent has to be a key frame, because
// somebody joined or lost one. It reports each need once, and none sooner than keyEvery
// after the last: key frames are large, and one who asks for them all the time would have
// everybody else see little but them.
func (r *Room) KeyWanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.keyTold) < keyEvery || !r.keyAsked.Swap(false) {
		return false
	}
	r.keyTold = time.Now()
	return true
}

// Bitrate returns how much the video may take that is sent, in bit/s: what the network of
// the session's client takes, and while there is none, the least of the viewers'.
func (r *Room) Bitrate() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	least := 0
	for _, one := range r.participants {
		bitrate, active := one.bitrate()
		if active && one.publishes {
			return bitrate
		}
		if active && (least == 0 || bitrate < least) {
			least = bitrate
		}
	}
	if least == 0 {
		return firstBitrate
	}
	return least
}

// Send sends an encoded frame to everyone in the room. The timestamp and the trailer are
// those of the frame that it was made of.
func (r *Room) Send(data []byte, of Frame) {
	if len(of.Trailer) > 0 {
		data = append(data[:len(data):len(data)], of.Trailer...)
	}
	for _, packet := range r.packets.Packetize(data, 0) {
		packet.Timestamp = of.Timestamp
		// It fails for those who leave just now.
		_ = r.video.WriteRTP(packet)
	}
	r.sound.follow(time.Since(of.Arrived))
}

// take takes a frame of the camera. It reports false if there is no room for it.
func (r *Room) take(from *receiver, frame Frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.source != from {
		return true
	}
	if !r.placed {
		r.times.turn(frame.Timestamp, 0, frame.Arrived)
		r.placed = true
	}
	frame.Timestamp, _ = r.times.place(frame.Timestamp, 0, frame.Arrived)
	select {
	case r.frames <- frame:
		return true
	default:
		return false
	}
}

// receive receives a camera, in place of the one before, until it ends. Its packets have
// their colours in the extension of that id.
func (r *Room) receive(p *peer, track *webrtc.TrackRemote, color uint8) {
	camera := newReceiver(r, p, track, color)
	r.mu.Lock()
	r.source, r.placed = camera, false
	r.mu.Unlock()
	camera.run()
}

// hears notes that the client sends sound, and tells everyone at the first time.
func (r *Room) hears() {
	r.mu.Lock()
	first := !r.heard && !r.closed
	r.heard = true
	everyone := r.everyone()
	r.mu.Unlock()
	if !first {
		return
	}
	update := &livekit.SignalResponse{
		Update: &livekit.ParticipantUpdate{Participants: []*livekit.ParticipantInfo{r.hostInfo()}},
	}
	for _, one := range everyone {
		one.say(update)
		one.addSound()
	}
}

// hasSound reports whether the client sends sound.
func (r *Room) hasSound() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// everyone returns the participants. The caller has locked the room.
func (r *Room) everyone() []*participant {
	all := make([]*participant, 0, len(r.participants))
	for _, one := range r.participants {
		all = append(all, one)
	}
	return all
}

// spawn does work that ends with the room's connections. A room that is closed does none.
func (r *Room) spawn(work func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.work.Go(work)
	}
}

// Close ends the room: everyone is told to leave, and their connections end.
func (r *Room) Close(why livekit.DisconnectReason) {
	r.server.remove(r)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	everyone := r.everyone()
	close(r.frames)
	r.mu.Unlock()
	var leaving sync.WaitGroup
	for _, one := range everyone {
		leaving.Go(func() { one.end(why, livekit.ActionDisconnect) })
	}
	leaving.Wait()
	r.sound.close()
	r.work.Wait()
}

// enter lets a participant in, in place of one of the same identity.
//
// It reports false if the room is closed or full.
func (r *Room) enter(p *participant) bool {
	r.mu.Lock()
	before := r.participants[p.identity]
	full := before == nil && !p.publishes && len(r.participants) > maxViewers
	if r.closed || full {
		r.mu.Unlock()
		return false
	}
	r.participants[p.identity] = p
	r.mu.Unlock()
	if before != nil {
		before.end(livekit.ReasonDuplicateIdentity, livekit.ActionDisconnect)
	}
	return true
}

// find returns the participant of the identity and the sid, nil if there is none.
func (r *Room) find(identity, sid string) *participant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.participants[identity]; p != nil && p.sid == sid {
		return p
	}
	return nil
}

// exit forgets a participant.
func (r *Room) exit(p *participant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.participants[p.identity] == p {
		delete(r.participants, p.identity)
	}
}

// announce notes the size of the client's camera.
func (r *Room) announce(width, height uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.width, r.height = width, height
}

// hostName begins the identity of the participant who is the server: clients look for it.
const hostName = "inference-server-"

// hostInfo describes the server as a participant.
func (r *Room) hostInfo() *livekit.ParticipantInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	camera := &livekit.TrackInfo{
		Sid: r.video.ID(), Type: livekit.TrackVideo, Name: "video", Source: livekit.SourceCamera,
		MimeType: webrtc.MimeTypeVP8, Stream: cameraStream, Width: max(r.width, 2), Height: max(r.height, 2),
		Codecs: []*livekit.SimulcastCodecInfo{{MimeType: webrtc.MimeTypeVP8}},
	}
	if r.config.FrameTiming {
		camera.PacketTrailerFeatures = []livekit.TrailerFeature{livekit.TrailerUserTimestamp}
	}
	info := &livekit.ParticipantInfo{
		Sid: r.host, Identity: hostName + r.host, State: livekit.StateActive, JoinedAt: r.began.Unix(),
		Version: 1, IsPublisher: true, Permission: &livekit.ParticipantPermission{CanPublish: true},
		Tracks: []*livekit.TrackInfo{camera},
	}
	if r.heard {
		info.Version = 2
		info.Tracks = append(info.Tracks, &livekit.TrackInfo{
			Sid: r.audio.ID(), Type: livekit.TrackAudio, Name: "audio", Source: livekit.SourceMicrophone,
			MimeType: webrtc.MimeTypeOpus, Stream: cameraStream,
			Codecs: []*livekit.SimulcastCodecInfo{{MimeType: webrtc.MimeTypeOpus}},
		})
	}
	return info
}
