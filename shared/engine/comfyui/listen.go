package comfyui

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxMessage limits a WebSocket message, including previews, in bytes.
	maxMessage  = 8 << 20
	redialEvery = time.Second
)

// listener is the WebSocket of a run. It reconnects when the connection is lost.
type listener struct {
	client    string
	events    chan event
	connected atomic.Bool
	stop      context.CancelFunc
	done      sync.WaitGroup
	first     chan struct{}
}

// listen returns after the first connection attempt, so that it receives all messages of a run
// sent afterwards. The caller must close the listener.
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

// once reads messages. It ignores errors, because the history shows how a run ends.
func (l *listener) once(ctx context.Context, s *server, first bool) {
	dialing, cancel := context.WithTimeout(ctx, lookTime)
	connection, response, err := websocket.Dial(dialing, s.base+"/ws?clientId="+l.client, &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: s.header(),
	})
	if response != nil && response.Body != nil {
		defer response.Body.Close()
	}
	if err == nil {
		// Messages before the greeting, which a server sends to a new listener, are lost.
		connection.SetReadLimit(maxMessage)
		_, _, err = connection.Read(dialing)
	}
	cancel()
	l.connected.Store(err == nil)
	if first {
		close(l.first)
	}
	if connection != nil {
		defer func() { _ = connection.CloseNow() }() // errors are ignored
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
