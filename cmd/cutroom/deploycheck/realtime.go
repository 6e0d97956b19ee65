package deploycheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coder/websocket"
)

// checkRealtime opens a session and changes its prompt.
func checkRealtime(ctx context.Context, v *visit) (string, error) {
	began := v.Now()
	socket, model, err := v.openSession(ctx)
	if err != nil {
		return "", err
	}
	defer socket.CloseNow()
	started := v.Now().Sub(began)
	if err := socket.Write(ctx, websocket.MessageText, []byte(`{"type":"prompt","prompt":"a test card"}`)); err != nil {
		return "", fmt.Errorf("send a prompt: %w", err)
	}
	ack, err := expect(ctx, socket, "prompt_ack")
	if err != nil {
		return "", err
	}
	if !ack.Success {
		return "", fmt.Errorf("a prompt was refused: %s", ack.Error)
	}
	return fmt.Sprintf("%s: started after %s", model, round(started)), socket.Close(websocket.StatusNormalClosure, "")
}

// openSession opens a session with the first model of the catalog that has any. The caller
// closes it.
//
// Errors: skipped where there are no sessions.
func (v *visit) openSession(ctx context.Context) (socket *websocket.Conn, model string, err error) {
	if v.RealtimeURL == "" {
		return nil, "", skip("the deploy has no realtime sessions (-c realtime=true)")
	}
	for _, m := range v.Catalog.Models() {
		if m.Realtime {
			model = m.ID
			break
		}
	}
	if model == "" {
		return nil, "", skip("the catalog has no model with realtime sessions")
	}
	socket, response, err := websocket.Dial(ctx, v.RealtimeURL+"?model="+url.QueryEscape(model),
		&websocket.DialOptions{HTTPClient: v.http, HTTPHeader: http.Header{"X-Api-Key": {v.own.key}}})
	if err != nil {
		return nil, "", fmt.Errorf("open a session: %w", err)
	}
	if response != nil && response.Body != nil {
		defer response.Body.Close()
	}
	if _, err := expect(ctx, socket, "session_started"); err != nil {
		socket.CloseNow()
		return nil, "", err
	}
	return socket, model, nil
}

// message is a text message of a session.
type message struct {
	Type    string
	Success bool
	Error   string
	// URL and Token are those of a room.
	URL   string `json:"livekit_url"`
	Token string `json:"token"`
}

// expect reads messages until the one that is wanted.
func expect(ctx context.Context, socket *websocket.Conn, kind string) (message, error) {
	for {
		_, text, err := socket.Read(ctx)
		if err != nil {
			return message{}, fmt.Errorf("wait for %s: %w", kind, err)
		}
		var got message
		if err := json.Unmarshal(text, &got); err != nil {
			continue // a frame
		}
		if got.Type == "error" {
			return got, errors.New("the session says: " + got.Error)
		}
		if got.Type == kind {
			return got, nil
		}
	}
}

// attend reads what a session says and leaves it, so that the session's pings are answered
// while other things are done; the server drops a client that answers none. The returned
// context ends with the session, whose end is its cause. Nobody else reads the session until
// leave has closed it, and leave waits for the reading to end.
func attend(ctx context.Context, socket *websocket.Conn) (within context.Context, leave func()) {
	within, end := context.WithCancelCause(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			if _, _, err := socket.Read(ctx); err != nil {
				end(fmt.Errorf("the session has ended: %w", err))
				return
			}
		}
	}()
	return within, func() {
		socket.CloseNow()
		<-read
	}
}
