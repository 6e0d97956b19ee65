package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/platform/panics"
)

// maxKept limits the messages that are kept for a waiting client, and maxKeptBytes limits their total size. Clients
// usually send fewer, but may wait for hours.
const (
	maxKept      = 16
	maxKeptBytes = maxKept * smallText
)

var (
	tooManyMessages = rejected(endedByFlood.code, endedByFlood.close)
	messageStalled  = rejected(endedByStall.code, endedByStall.close)
	messageTooLarge = rejected(endedBySize.code, endedBySize.close)
	// errLeft means that the client has left and cannot receive a rejection.
	errLeft = errors.New("the client has left")
)

// lobby is a client without a session that waits in its account's queue (docs/contract/realtime.md#the-queue) or
// may ask to wait. It keeps the client's messages, except for frames, which would be outdated.
type lobby struct {
	server    *Server
	socket    *socket
	admission admission
	pace      pace
	// life ends when the wait does. Its cause is a rejection or errLeft.
	life context.Context
	stop context.CancelCauseFunc
	// wire is the context of reads and writes. The session that follows uses it too.
	wire context.Context
	cut  context.CancelFunc
	// One goroutine sends to the channel messages, first for the lobby and then for the session.
	messages chan received
	// dropped is closed when messages are no longer handled.
	dropped   chan struct{}
	first     chan bool
	listening sync.WaitGroup
	kept      []received
	keptBytes int
}

func (s *Server) newLobby(ctx context.Context, accepted *socket, admitted admission) *lobby {
	l := &lobby{
		server: s, socket: accepted, admission: admitted, pace: newPace(), messages: make(chan received),
		dropped: make(chan struct{}), first: make(chan bool, 1),
	}
	l.wire, l.cut = context.WithCancel(ctx)
	l.life, l.stop = context.WithCancelCause(l.wire)
	l.socket.reading.Go(l.contained("read", l.read))
	l.listening.Go(l.contained("listen", l.listen))
	l.socket.reading.Go(func() {
		l.socket.pings(l.life, l.wire, func() bool {
			l.stop(errLeft)
			return true
		})
	})
	return l
}

// contained wraps a function so that a panic caused by a client's data ends only the wait.
func (l *lobby) contained(name string, work func()) func() {
	return func() {
		log := l.server.config.Logger.With("account", l.admission.who.Account())
		if !panics.Run(log, "lobby: "+name, work) {
			l.stop(failedToOpen)
		}
	}
}

func (l *lobby) read() {
	defer close(l.messages)
	box := inbox{socket: l.socket, wire: l.wire, texts: l.server.texts, account: l.admission.who.Account()}
	for {
		message := box.next(nil)
		select {
		case l.messages <- message:
		case <-l.dropped:
			message.release()
		case <-l.wire.Done():
			message.release()
			return
		}
		if message.over() {
			return
		}
	}
}

func (l *lobby) listen() {
	for asked := false; ; {
		select {
		case <-l.life.Done():
			return
		case message, open := <-l.messages:
			if !open || !l.keep(message) {
				return
			}
			if !asked {
				asked = true
				l.first <- message.asksToWait()
			}
		}
	}
}

func (l *lobby) keep(message received) bool {
	switch {
	case errors.Is(message.err, errTexts):
		l.say(errorMessage{"error", "The server is busy. Try again."})
	case message.err != nil:
		l.kept = append(l.kept, message)
		switch {
		case errors.Is(message.err, websocket.ErrMessageTooBig):
			l.stop(messageTooLarge)
		case errors.Is(message.err, os.ErrDeadlineExceeded):
			l.stop(messageStalled)
		default:
			l.stop(errLeft)
		}
		return false
	case message.kind == websocket.MessageBinary:
		message.release()
	case !l.pace.messages.Allow():
		message.release()
		l.stop(tooManyMessages)
		return false
	case len(l.kept) >= maxKept || l.keptBytes+len(message.content) > maxKeptBytes:
		message.release()
		l.say(errorMessage{"error", "The session has not started. Wait for session_started."})
	case !l.count(&message):
		message.release()
		l.say(errorMessage{"error", "The server is busy. Try again."})
	default:
		l.kept = append(l.kept, message)
		l.keptBytes += len(message.content)
	}
	return true
}

// count moves a message from the limit on messages that are handled soon to the limit on kept ones, which may wait for
// hours. It returns false if this limit is reached.
func (l *lobby) count(message *received) bool {
	kept, account, bytes := l.server.kept, l.admission.who.Account(), int64(len(message.content))
	if !kept.take(account, bytes) {
		return false
	}
	message.release()
	message.release = sync.OnceFunc(func() { kept.release(account, bytes) })
	return true
}

// asksToWait reports whether a client's first message asks to wait: a livekit_join whose queue is not false.
func (m received) asksToWait() bool {
	var message clientMessage
	if m.kind != websocket.MessageText || m.err != nil || json.Unmarshal(m.content, &message) != nil {
		return false
	}
	return message.Type == "livekit_join" && string(message.Queue) != "false"
}

func (l *lobby) say(message any) {
	if l.socket.send(l.wire, message) != nil {
		l.stop(errLeft)
	}
}

// joins waits for the client's first message, and reports whether it asks to wait.
func (l *lobby) joins() bool {
	timer := time.NewTimer(l.server.config.Times.Join)
	defer timer.Stop()
	select {
	case waits := <-l.first:
		return waits
	case <-l.life.Done():
	case <-timer.C:
	}
	return false
}

func (l *lobby) wait() (*session.Session, error) {
	s, who := l.server, l.admission.who
	if !s.addGuest(l) {
		return nil, serverStopping
	}
	defer s.removeGuest(l)
	began := time.Now()
	log := s.config.Logger.With("account", who.Account(), "key", who.Key.ID, "model", l.admission.model.ID)
	log.Info("client is waiting for a session")
	limits := session.Limits{Sessions: who.Tier.RealtimeSessions, Queue: who.Tier.RealtimeQueue, Client: who.Key.ID}
	if who.Token != nil {
		limits.Client = who.Token.Hash.String()[:16]
	}
	opened, err := s.config.Sessions.Wait(l.life, who.Account(), limits, func(place session.Place) {
		l.say(positionMessage{"queue_position", place.Position, place.Size})
	})
	err = l.explain(err)
	outcome := "session"
	if err != nil {
		outcome = err.Error()
	}
	log.Info("wait ended", "outcome", outcome, "seconds", int64(time.Since(began)/time.Second))
	return opened, err
}

// explain converts the error that ended the wait to an error for the client.
func (l *lobby) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case l.life.Err() != nil:
		return context.Cause(l.life)
	case fault.Is(err, fault.Limited):
		return limitReached
	case !fault.Is(err, fault.Unavailable):
		l.server.config.Logger.Error("cannot queue a client", "account", l.admission.who.Account(), "error", err)
	}
	return cannotOpen
}

// end ends the wait. Afterward, only the method next reads messages.
func (l *lobby) end() {
	l.stop(errLeft)
	l.listening.Wait()
}

// drop ends a lobby whose session did not start or has ended, and discards the kept messages.
func (l *lobby) drop() {
	l.end()
	close(l.dropped)
	for _, message := range l.kept {
		message.release()
	}
	l.kept = nil
}

// next returns the client's next message, starting with the kept ones. Call it only after end.
func (l *lobby) next() received {
	if len(l.kept) > 0 {
		message := l.kept[0]
		l.kept = l.kept[1:]
		return message
	}
	message, open := <-l.messages
	if !open {
		return received{err: errLeft, release: func() {}}
	}
	return message
}

func (l *lobby) key() credential.Hash { return l.admission.who.Key.Hash }
func (l *lobby) revoke()              { l.stop(invalidKey) }
func (l *lobby) leaves()              { l.stop(serverStopping) }
func (l *lobby) hangUp()              { l.cut() }
