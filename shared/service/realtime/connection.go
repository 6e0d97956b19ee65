package realtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

type ending struct {
	// Unless the client has left, reason is sent in generation_ended, and close is sent in the close frame.
	reason string
	code   websocket.StatusCode
	close  string
}

func (e *ending) Error() string { return e.reason }

var (
	endedByClient     = &ending{reason: "client"}
	endedByStop       = &ending{"server_stopping", serverStopping.code, serverStopping.reason}
	endedByLoss       = &ending{"session_lost", websocket.StatusInternalError, "The session was lost. Connect again."}
	endedByDuration   = &ending{"max_session_duration", websocket.StatusNormalClosure, "Maximum session duration reached."}
	endedByIdleness   = &ending{"idle", websocket.StatusNormalClosure, "The session was idle."}
	endedByStall      = &ending{"idle", websocket.StatusNormalClosure, "A message did not arrive in time."}
	endedByRevocation = &ending{"key_revoked", invalidKey.code, invalidKey.reason}
	endedByBudget     = &ending{"insufficient_quota", overBudget.code, overBudget.reason}
	endedByFlood      = &ending{"too_many_messages", websocket.StatusPolicyViolation, "Too many messages"}
	endedBySize       = &ending{"message_too_large", websocket.StatusMessageTooBig, "The message is too large."}
	endedByLiveKit    = &ending{"transport_not_allowed", noLiveKit.code, noLiveKit.reason}
	endedByFailure    = &ending{"internal_error", failedToOpen.code, failedToOpen.reason}
)

type connection struct {
	admission admission
	spending  *spending
	most      atomic.Int64
	server    *Server
	socket    *socket
	session   *session.Session
	editor    engine.LiveEditor
	// edits and changes are shared by all sessions. If frames are edited on other hardware, each session has its own.
	edits, changes *ratelimit.Turns
	// turn is edits or changes while the edit goroutine has a turn, otherwise nil.
	turn *ratelimit.Turns
	life context.Context
	stop context.CancelCauseFunc
	// wire is the context of reads and writes. It outlives the context life, so that the reason for the end can still
	// be sent.
	wire context.Context
	cut  context.CancelFunc

	began    time.Time
	frames   *newest[received]
	video    *newest[videoPicture]
	spares   spares
	controls chan clientMessage
	next     func() received
	pace     pace
	prompts  prompts
	edited   int64

	mu   sync.Mutex
	last time.Time // when the client last sent a message
	// live is nil unless the client has joined a room.
	live *live
}

func (c *connection) account() string { return c.admission.who.Account() }

func newConnection(
	ctx context.Context, s *Server, accepted *socket, reserved *spending, opened *session.Session,
	editor engine.LiveEditor, waited *lobby,
) *connection {
	admitted := reserved.admitted
	c := &connection{
		admission: admitted, spending: reserved, server: s, socket: accepted, session: opened, editor: editor,
		began: time.Now(), last: s.config.Now(), frames: newNewest(received.drop), spares: make(spares, 3),
		controls: make(chan clientMessage), pace: newPace(),
	}
	c.edits, c.changes = s.edits, s.changes
	if o, ok := editor.(engine.LiveOffloaded); ok && o.Offloaded() {
		c.edits, c.changes = ratelimit.NewTurns(1, 0), ratelimit.NewTurns(1, 0)
	}
	c.video = newNewest(func(picture videoPicture) { c.spares.put(picture.Picture) })
	if waited != nil {
		c.wire, c.cut, c.pace = waited.wire, waited.cut, waited.pace
		c.next = func() received {
			message := waited.next()
			c.heard()
			return message
		}
	} else {
		c.wire, c.cut = context.WithCancel(ctx)
		box := inbox{socket: accepted, wire: c.wire, texts: s.texts, account: admitted.who.Account()}
		c.next = func() received { return box.next(c.heard) }
	}
	c.life, c.stop = context.WithCancelCause(ctx)
	return c
}

func (c *connection) end(why *ending) { c.stop(why) }

// seconds returns the session's full seconds so far.
func (c *connection) seconds() int64 { return c.limited(time.Since(c.began)) }

// billed returns the session's seconds at its end, rounded up, so that sessions shorter than a second are not free.
func (c *connection) billed() int64 { return c.limited(time.Since(c.began) + time.Second - 1) }

func (c *connection) limited(length time.Duration) int64 {
	seconds := int64(length / time.Second)
	if most := c.most.Load(); most > 0 {
		return min(seconds, most)
	}
	return seconds
}

func (c *connection) serve() {
	s := c.server
	defer c.cut()
	if !s.addGuest(c) {
		c.end(endedByStop)
	}
	defer s.removeGuest(c)
	metered := s.meter.begin(c)
	defer func() { c.spending.end(c.wire, s.meter.end(c.wire, metered)) }()
	log := s.config.Logger.With(
		"session", c.session.ID(), "account", c.account(), "key", c.admission.who.Key.ID,
		"model", c.admission.model.ID,
	)
	log.Info("session started")

	var running sync.WaitGroup
	running.Go(c.contained("receive", c.receive))
	// Messages that the client sent earlier are handled only after this message is sent.
	if c.admission.joins || c.say(startedMessage{"session_started", c.session.ID()}) {
		running.Go(c.contained("control", c.control))
		running.Go(c.contained("edit", c.edit))
		running.Go(c.contained("ping", c.ping))
		running.Go(c.contained("spend", c.spend))
		c.contained("watch", c.watch)()
	}
	<-c.life.Done()
	why := endedByClient
	errors.As(context.Cause(c.life), &why)
	c.leaveRoom(why)
	c.leave(why)
	// Free the slot before waiting for the engine.
	c.session.Close(c.wire)
	running.Wait()
	c.frames.drop()
	c.closeLive()
	c.prompts.wait()
	log.Info(
		"session ended", "reason", why.reason, "seconds", c.billed(), "frames", c.edited, "dropped",
		c.frames.lost()+c.video.lost(),
	)
}

// contained wraps a function so that a panic caused by a client's data ends only the session.
func (c *connection) contained(name string, work func()) func() {
	return func() {
		log := c.server.config.Logger.With("session", c.session.ID(), "account", c.account())
		if !panics.Run(log, "session: "+name, work) {
			c.end(endedByFailure)
		}
	}
}

func (c *connection) leave(why *ending) {
	if why == endedByClient {
		_ = c.socket.CloseNow()
		return
	}
	if why != endedByLiveKit {
		ctx, cancel := context.WithTimeout(c.wire, c.server.config.Times.Close)
		defer cancel()
		if why == endedByFailure {
			_ = c.socket.send(ctx, errorMessage{"error", why.close}) // if this fails, the next write fails too
		}
		if err := c.socket.send(ctx, endedMessage{"generation_ended", c.billed(), why.reason}); err != nil {
			_ = c.socket.CloseNow()
			return
		}
	}
	c.socket.close(why.code, why.close)
}

// serving reports whether the session continues. It ends a session that was lost. Call it before each write.
func (c *connection) serving() bool {
	if !c.session.Alive() {
		c.end(endedByLoss)
	}
	return c.life.Err() == nil
}

// say sends a message and reports whether the session continues.
func (c *connection) say(message any) bool {
	return c.serving() && c.sent(c.socket.send(c.wire, message))
}

func (c *connection) write(kind websocket.MessageType, message []byte) bool {
	return c.serving() && c.sent(c.socket.write(c.wire, kind, message))
}

func (c *connection) sent(err error) bool {
	if err != nil {
		c.end(endedByClient)
	}
	return err == nil
}

// watch sends a tick every second, and ends the session when its time is up.
func (c *connection) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var over <-chan time.Time
	if longest := c.admission.who.Scope().MaxSession; longest > 0 {
		timer := time.NewTimer(longest - time.Since(c.began))
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-c.life.Done():
			return
		case <-c.session.Lost():
			c.end(endedByLoss)
		case <-over:
			c.end(endedByDuration)
		case <-tick.C:
			if c.idle() >= c.server.config.Times.Idle {
				c.end(endedByIdleness)
				return
			}
			c.say(tickMessage{"generation_tick", c.seconds()})
		}
	}
}

func (c *connection) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.server.config.Now()
}

func (c *connection) idle() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.config.Now().Sub(c.last)
}

// ping pings the client, so that a client that has disappeared does not keep its slot.
func (c *connection) ping() {
	c.socket.pings(c.life, c.wire, func() bool {
		// If this process was suspended, then it lost the session and the client is not to blame.
		if !c.serving() {
			return false
		}
		c.end(endedByClient)
		return true
	})
}

func (c *connection) key() credential.Hash { return c.admission.who.Key.Hash }
func (c *connection) revoke()              { c.end(endedByRevocation) }
func (c *connection) leaves()              { c.end(endedByStop) }
func (c *connection) hangUp()              { c.cut() }
