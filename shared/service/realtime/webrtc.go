package realtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine"
	"cutroom/shared/platform/vp8"
	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/service/realtime/room"
)

type WebRTC struct {
	Rooms  *room.Server
	Codecs *vp8.Library
	// MaxRooms limits the open rooms, because each takes memory for pictures and for a codec's process; 0 means no
	// limit. An account may have half of them.
	MaxRooms int
}

// live is the media state of a session that has joined a room.
type live struct {
	room  *room.Room
	leave func() // ends the count of the room
	codec *vp8.Codec
	work  sync.WaitGroup
	// complaints limits how often errors about invalid frames are sent.
	complaints rate.Sometimes
	started    bool
	// at is the position in the encoded stream. last is the timestamp of its last frame.
	at   time.Duration
	last uint32
	// owesKey is true from the request for a key frame until one is encoded.
	owesKey bool
}

// baseOf returns the server's WebSocket address as seen by the client.
func baseOf(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "wss://" + r.Host
	}
	return "ws://" + r.Host
}

// join opens a room for the session and sends its address to the client.
func (c *connection) join(message clientMessage) {
	switch {
	case c.server.config.WebRTC == nil:
		c.say(errorMessage{"error", noLiveKit.message})
		c.end(endedByLiveKit)
		return
	case c.media() == nil && !c.mayOpenRoom():
		c.say(errorMessage{"error", "Too many rooms were opened. Try again in a few seconds."})
		return
	}
	// A client whose token has expired repeats the message.
	l := c.media()
	if l == nil {
		var err error
		if l, err = c.openLive(message.Capabilities.FrameTiming); err != nil {
			if errors.Is(err, errRooms) {
				c.say(errorMessage{"error", "The server has no memory for another room. Try again later."})
				return
			}
			if c.life.Err() == nil {
				c.server.config.Logger.Error("cannot open a room", "session", c.session.ID(), "error", err)
			}
			c.end(endedByFailure)
			return
		}
	}
	token, err := c.server.config.WebRTC.Rooms.Token(l.room, true)
	if err != nil {
		c.server.config.Logger.Error("cannot create a token", "session", c.session.ID(), "error", err)
		c.end(endedByFailure)
		return
	}
	name := l.room.Name()
	c.say(roomInfoMessage{"livekit_room_info", c.admission.base + room.Path + name, token, name, c.session.ID()})
}

// Within roomTime, an account may open roomBurst rooms, plus one for each of its sessions, because starting a codec takes
// milliseconds. Its rooms together allow joinBurst joins of clients that publish, plus sessionJoins for each session, and
// as many of viewers.
const (
	roomBurst, roomTime     = 20, 5 * time.Second
	joinBurst, sessionJoins = 40, 10
)

func (c *connection) mayOpenRoom() bool {
	return c.mayStart("rooms/", sessionsOf(c.admission.who.Tier)+roomBurst)
}

// mayJoin counts the account's own clients and viewers separately, so that viewers cannot keep the clients out.
func (c *connection) mayJoin(publishes bool) bool {
	kind := "views/"
	if publishes {
		kind = "joins/"
	}
	return c.mayStart(kind, sessionJoins*sessionsOf(c.admission.who.Tier)+joinBurst)
}

// mayStart returns true for at most the given number of calls by an account within roomTime.
func (c *connection) mayStart(kind string, most int) bool {
	leave, ok := c.server.crowd.Enter(ratelimit.OpenLimit{Name: kind + c.account(), Most: most})
	if ok {
		time.AfterFunc(roomTime, leave)
	}
	return ok
}

var errRooms = errors.New("too many rooms are open")

// openLive opens a room. Errors: errRooms; errors of the codec and the room.
func (c *connection) openLive(timing bool) (opened *live, err error) {
	transport := c.server.config.WebRTC
	leave, ok := c.server.crowd.Enter(
		ratelimit.OpenLimit{Name: "media", Most: transport.MaxRooms},
		ratelimit.OpenLimit{Name: "media/" + c.account(), Most: (transport.MaxRooms + 1) / 2},
	)
	if !ok {
		return nil, errRooms
	}
	defer func() {
		if opened == nil {
			leave()
		}
	}()
	codec, err := transport.Codecs.Open(c.life)
	if err != nil {
		return nil, err
	}
	var owner string
	if c.server.config.Sessions.HasPeers() {
		owner = c.session.Epoch()
	}
	r, err := transport.Rooms.Open(room.Config{
		Owner: owner, Account: c.account(), Session: c.session.ID(), FrameTiming: timing, Heard: c.heard,
		MayJoin: c.mayJoin,
	})
	if err != nil {
		codec.Close()
		return nil, err
	}
	l := &live{room: r, leave: leave, codec: codec, complaints: rate.Sometimes{Interval: time.Second}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		codec.Close()
		r.Close(livekit.ReasonRoomDeleted)
		return nil, c.life.Err()
	}
	c.live = l
	l.work.Go(c.contained("decode", func() { c.decodeVideo(l) }))
	return l, nil
}

// media returns the session's media, or nil without a room.
func (c *connection) media() *live {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// leaveRoom closes the session's room, if any. Call it after c.life has ended.
func (c *connection) leaveRoom(why *ending) {
	l := c.media()
	if l == nil {
		return
	}
	reason := livekit.ReasonRoomDeleted
	if why == endedByStop {
		reason = livekit.ReasonServerShutdown
	}
	l.room.Close(reason)
}

func (c *connection) closeLive() {
	if l := c.media(); l != nil {
		l.work.Wait()
		l.codec.Close()
		l.leave()
	}
}

type videoPicture struct {
	*engine.Picture
	frame room.Frame
}

// decodeVideo decodes every frame, because later frames depend on it, up to a limit. Only the newest frame is edited.
func (c *connection) decodeVideo(l *live) {
	pace := newVideoPace()
	for frame := range l.room.Frames() {
		if !pace.admits(frame.Data, time.Now()) {
			l.room.AskKey()
			continue
		}
		picture := c.spares.get()
		shown, err := l.codec.Decode(c.life, frame.Data, &picture.YCbCr)
		pace.took(l.codec.Took(), time.Now())
		switch {
		case c.life.Err() != nil:
			return
		case vp8.NeedsKeyFrame(err):
			if errors.Is(err, vp8.ErrLost) {
				c.server.config.Logger.Warn("a codec process exited; restarting it", "session", c.session.ID())
			}
			l.room.AskKey()
		case err != nil:
			c.server.config.Logger.Error("cannot decode a frame", "session", c.session.ID(), "error", err)
			c.end(endedByFailure)
			return
		case shown:
			frame.Data = nil
			c.video.put(videoPicture{picture, frame})
			continue
		}
		c.spares.put(picture)
	}
}

// editPicture edits the waiting picture, if any, and ends the turn. If send is not nil, it sends the result.
func (c *connection) editPicture() (send func(), err error) {
	defer c.endTurn()
	picture, there := c.video.take()
	if !there || !c.serving() {
		return nil, nil
	}
	defer c.spares.put(picture.Picture)
	if !c.allowPlan(picture.Picture) {
		return nil, nil
	}
	l := c.media()
	ctx, cancel := context.WithTimeout(c.life, editTime)
	defer cancel()
	edited, err := c.editor.Edit(ctx, picture.Picture)
	switch {
	case err != nil:
		return nil, err
	case !edited.Narrow:
		return nil, errors.New("realtime: the engine changed the color range of a picture")
	}
	how := l.encoding(picture.frame)
	encoded, err := l.codec.Encode(ctx, &edited.YCbCr, how)
	if errors.Is(err, vp8.ErrLost) {
		c.server.config.Logger.Warn("a codec process exited; restarting it", "session", c.session.ID())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	l.owesKey = how.Key && !encoded.Key
	if len(encoded.Data) == 0 {
		return nil, nil
	}
	return func() { c.sendVideo(l, encoded.Data, picture.frame) }, nil
}

func (l *live) encoding(of room.Frame) vp8.Encoding {
	passed := time.Duration(int32(of.Timestamp-l.last)) * time.Second / videoClock
	if l.last == 0 || passed <= 0 {
		passed = time.Millisecond
	}
	l.last = of.Timestamp
	l.at += passed
	return vp8.Encoding{At: l.at, Bitrate: l.room.Bitrate() / 1000, Key: l.room.KeyWanted() || l.owesKey}
}

const videoClock = 90_000

func (c *connection) sendVideo(l *live, data []byte, of room.Frame) {
	l.room.Send(data, of)
	if !l.started {
		l.started = true
		c.say(generationMessage{"generation_started"})
	}
}

// spares holds pictures for reuse. One is being decoded, one is waiting, and one is being edited.
type spares chan *engine.Picture

func (s spares) get() *engine.Picture {
	select {
	case picture := <-s:
		return picture
	default:
		return &engine.Picture{Narrow: true}
	}
}

func (s spares) put(picture *engine.Picture) {
	select {
	case s <- picture:
	default:
	}
}
