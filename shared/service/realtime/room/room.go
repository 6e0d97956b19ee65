package room

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"

	"cutroom/shared/service/realtime/livekit"
)

const (
	maxFrames = 32
	// maxViewers limits a session's viewers, not including its client.
	maxViewers = 20
	// packetSize is the maximum size in bytes of a packet with its headers. It is small enough that
	// no network fragments the packet.
	packetSize = 1180
	// cameraStream names the stream that contains both video and sound, so that browsers synchronize them.
	cameraStream = "camera"
)

type Config struct {
	// Owner becomes part of the room's name, so that other servers can find its instance. It
	// consists of letters and digits, or is empty.
	Owner string
	// Account owns the session. Only its keys and tokens may watch the session.
	Account string
	Session string
	// FrameTiming means that the client appends timestamps to its frames and expects them back.
	FrameTiming bool
	Heard       func()
	// MayJoin limits the joins of all rooms of the account.
	MayJoin func(publishes bool) bool
}

// Frame is a VP8 frame from the client.
type Frame struct {
	Data []byte
	// Trailer is the data that the client appended to the frame. It is also appended to the edited frame.
	Trailer []byte
	Key     bool
	// Timestamp is the capture time, in units of 1/90000 s.
	Timestamp uint32
	// Arrived is the arrival time of the frame's last packet.
	Arrived time.Time
}

// Room carries the media of one session. Close ends it.
type Room struct {
	config    Config
	server    *Server
	name      string
	sid, host string
	// publisher is the identity of the session's own client.
	publisher    string
	began        time.Time
	video, audio *webrtc.TrackLocalStaticRTP
	packets      rtp.Packetizer
	frames       chan Frame
	keyAsked     atomic.Bool
	sound        *sound
	color        color
	work         sync.WaitGroup
	// joins limits the rate of new participants, because answering an offer takes milliseconds.
	// attempts limits each identity, so that one token does not keep the others out.
	joins    *rate.Limiter
	attempts map[string]*rate.Limiter

	mu           sync.Mutex
	participants map[string]*participant // keyed by identity
	// source receives the camera's video. It is nil without a camera.
	source *receiver
	// placed means that the timeline in times already includes the current source.
	placed bool
	times  timeline
	// keyReported is when KeyWanted last returned true.
	keyReported   time.Time
	width, height uint32
	heard, closed bool
}

func newRoom(s *Server, name string, c Config) (r *Room, err error) {
	r = &Room{
		joins: rate.NewLimiter(2, 2*maxViewers), attempts: map[string]*rate.Limiter{}, config: c, server: s, name: name,
		sid: "RM_" + s.config.NewID(), host: "PA_" + s.config.NewID(), publisher: "client-" + s.config.NewID(), began: s.config.Now(),
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

// Name returns the room's name, which cannot be guessed.
func (r *Room) Name() string { return r.name }

func (r *Room) Account() string { return r.config.Account }
func (r *Room) Session() string { return r.config.Session }

// Frames returns the client's frames. The channel is closed when the room is.
func (r *Room) Frames() <-chan Frame { return r.frames }

// AskKey requests a key frame. Frames before it are dropped.
func (r *Room) AskKey() {
	r.mu.Lock()
	source := r.source
	r.mu.Unlock()
	if source != nil {
		source.wantKey()
	}
}

// KeyWanted reports whether the next frame sent must be a key frame, because a participant joined or lost a
// frame. It returns true at most once per keyEvery, because key frames degrade the other participants' video.
func (r *Room) KeyWanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.keyReported) < keyEvery || !r.keyAsked.Swap(false) {
		return false
	}
	r.keyReported = time.Now()
	return true
}

// Bitrate returns the bitrate in bit/s at which to encode video: the bitrate of the client's
// network, or the lowest of the viewers' networks if the client has left.
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

// Send sends an encoded frame to all participants, with the original frame's timestamp and trailer.
func (r *Room) Send(data []byte, of Frame) {
	if len(of.Trailer) > 0 {
		data = append(data[:len(data):len(data)], of.Trailer...)
	}
	for _, packet := range r.packets.Packetize(data, 0) {
		packet.Timestamp = of.Timestamp
		// The write fails for participants that are leaving.
		_ = r.video.WriteRTP(packet)
	}
	r.sound.follow(time.Since(of.Arrived))
}

// take passes a camera frame to the session. It returns false if the buffer is full.
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

// receive reads a camera, which replaces the previous one. color is the id of the color space extension.
func (r *Room) receive(p *peer, track *webrtc.TrackRemote, color uint8) {
	camera := newReceiver(r, p, track, color)
	r.mu.Lock()
	if r.source != nil {
		close(r.source.replaced)
	}
	r.source, r.placed = camera, false
	r.mu.Unlock()
	camera.run()
}

// hears records that the client sends sound, and announces the sound to participants the first time.
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
		r.spawn(func() { // a slow participant must not delay the others
			one.say(update)
			one.addSound()
		})
	}
}

func (r *Room) hasSound() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// everyone returns all participants. The room must be locked.
func (r *Room) everyone() []*participant {
	all := make([]*participant, 0, len(r.participants))
	for _, one := range r.participants {
		all = append(all, one)
	}
	return all
}

// spawn starts work that must end with the room's connections. It does nothing if the room is closed.
func (r *Room) spawn(work func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.work.Go(work)
	}
}

// Close sends a leave message to all participants and ends their connections.
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

// enter admits a participant, which replaces any participant with the same identity. It returns false if the room is
// closed or full.
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

// maxAttempts limits the identities whose attempts are remembered.
const maxAttempts = 1000

// admits reports whether a token whose attempt mayTry allowed may join or resume now. The rate limit for viewers does
// not apply to the session's own client or to a participant that resumes, and mayTry has applied it to new viewers.
func (r *Room) admits(grant livekit.Grant, join livekit.Join) bool {
	return grant.Publish || !r.has(grant.Identity) || r.find(grant.Identity, join.Resume) != nil || r.joins.Allow()
}

// mayTry limits the attempts to join before anything of a join is read. There are limits for each identity; for all
// viewers who are not in the room, because everyone who may watch can get any number of identities; and for all rooms
// of the account, because it can open any number of rooms.
func (r *Room) mayTry(grant livekit.Grant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.attempts[grant.Identity]
	if own == nil {
		if len(r.attempts) >= maxAttempts {
			clear(r.attempts)
		}
		own = rate.NewLimiter(0.5, 10)
		r.attempts[grant.Identity] = own
	}
	return own.Allow() && (grant.Publish || r.participants[grant.Identity] != nil || r.joins.Allow()) &&
		r.config.MayJoin(grant.Publish)
}

func (r *Room) has(identity string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.participants[identity] != nil
}

func (r *Room) find(identity, sid string) *participant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.participants[identity]; p != nil && p.sid == sid {
		return p
	}
	return nil
}

func (r *Room) exit(p *participant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.participants[p.identity] == p {
		delete(r.participants, p.identity)
	}
}

func (r *Room) announce(width, height uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.width, r.height = width, height
}

// hostName is the prefix of the server's identity. Clients look for it.
const hostName = "inference-server-"

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
