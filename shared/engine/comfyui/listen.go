package comfyui

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxMessage limits the size of a WebSocket message, including previews, in bytes.
	maxMessage  = 8 << 20
	redialEvery = time.Second
)

// listener receives a run's WebSocket messages. It reconnects when the connection is lost.
type listener struct {
	client    string
	events    chan event
	connected atomic.Bool
	stop      context.CancelFunc
	done      sync.WaitGroup
	first     chan struct{}
}

// listen returns after the first attempt to connect, so that the listener receives all messages of a run that is sent
// afterwards. The caller must close the listener.
func (r *run) listen(ctx context.Context) *listener {
	ctx, stop := context.WithCancel(ctx)
	l := &listener{client: r.id, events: make(chan event), stop: stop, first: make(chan struct{})}
	l.done.Go(func() {
		for attempt := 0; ctx.Err() == nil; attempt++ {
			l.once(ctx, r.server, attempt == 0)
			select {
			case <-time.After(redialEvery):
			case <-ctx.Done():
			}
		}
	})
	<-l.first
	return l
}

func (l *listener) close() {
	l.stop()
	l.done.Wait()
}

// once reads messages from one connection. It ignores errors, because the history shows how a run ends.
func (l *listener) once(ctx context.Context, s *server, first bool) {
	dialing, cancel := context.WithTimeout(ctx, lookTime)
	connection, response, err := websocket.Dial(dialing, s.base+"/ws?clientId="+l.client, &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: s.header(),
	})
	if response != nil && response.Body != nil {
		defer response.Body.Close()
	}
	if err == nil {
		// A server greets each new listener. Messages sent before the greeting are lost, so wait for it.
		connection.SetReadLimit(maxMessage)
		_, _, err = connection.Read(dialing)
	}
	cancel()
	l.connected.Store(err == nil)
	if first {
		close(l.first)
	}
	if connection != nil {
		defer func() { _ = connection.CloseNow() }() // errors do not matter here
	}
	if err != nil {
		return
	}
	defer l.connected.Store(false)
	for {
		kind, content, err := connection.Read(ctx)
		if err != nil {
			return
		}
		parse := parseEvent
		if kind == websocket.MessageBinary {
			parse = parsePreview
		}
		e, known := parse(content)
		if !known {
			continue
		}
		select {
		case l.events <- e:
		case <-ctx.Done():
			return
		}
	}
}
