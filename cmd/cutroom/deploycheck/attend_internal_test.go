package deploycheck

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/patience"
)

// liveServer serves a session whose room does something with the session before it sends its
// client away.
func liveServer(t *testing.T, inRoom func(session *websocket.Conn, r *http.Request)) *visit {
	t.Helper()
	sessions, mux := make(chan *websocket.Conn, 1), http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at := "ws" + strings.TrimPrefix(server.URL, "http")
	mux.HandleFunc("/session", func(w http.ResponseWriter, r *http.Request) {
		session, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer session.CloseNow()
		_ = session.Write(r.Context(), websocket.MessageText, []byte(`{"type":"session_started"}`))
		_, _, _ = session.Read(r.Context()) // that it wants a room
		room, _ := json.Marshal(message{Type: "livekit_room_info", URL: at})
		_ = session.Write(r.Context(), websocket.MessageText, room)
		sessions <- session
		for { // which hears the answers to pings
			if _, _, err := session.Read(r.Context()); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/rtc", func(w http.ResponseWriter, r *http.Request) {
		room, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer room.CloseNow()
		inRoom(<-sessions, r)
		leave := livekit.Marshal(
			&livekit.SignalResponse{Leave: &livekit.LeaveRequest{}})
		_ = room.Write(r.Context(), websocket.MessageBinary, leave)
		_, _, _ = room.Read(r.Context()) // until the client closes
	})
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Catalog: known, Now: time.Now, Deploy: Deploy{RealtimeURL: at + "/session"}}
	return &visit{http: server.Client(), Config: config}
}

// A session is read while its room is tried: the server pings it meanwhile.
func TestASessionIsReadWhileItsRoomIsTried(t *testing.T) {
	answered := false
	v := liveServer(t, func(session *websocket.Conn, r *http.Request) {
		// A message and a ping, as the server sends both at any time.
		_ = session.Write(r.Context(), websocket.MessageText, []byte(`{"type":"session_tick"}`))
		answered = session.Ping(r.Context()) == nil
	})
	_, err := checkLive(t.Context(), v)
	if err == nil || !strings.Contains(err.Error(), "sends everybody away") {
		t.Errorf("the check says %v, want what the room says", err)
	}
	if !answered {
		t.Error("the session's ping was not answered")
	}
}

// A session that ends meanwhile is named as what is wrong.
func TestASessionThatEndsWhileItsRoomIsTried(t *testing.T) {
	v := liveServer(t, func(session *websocket.Conn, r *http.Request) {
		_ = session.Close(websocket.StatusGoingAway, "The server is stopping.")
		<-r.Context().Done() // until the client has left the room
	})
	_, err := checkLive(t.Context(), v)
	if err == nil || !strings.Contains(err.Error(), "the session has ended") ||
		!strings.Contains(err.Error(), "The server is stopping.") {
		t.Errorf("the check says %v, want the end of the session", err)
	}
}

// A session that is being read is closed as any other.
func TestASessionThatIsReadCloses(t *testing.T) {
	closed := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer session.CloseNow()
		_, _, err = session.Read(r.Context())
		closed <- err
	}))
	defer server.Close()
	socket, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, leave := attend(t.Context(), socket)
	defer leave()
	if err := socket.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Errorf("to close it: %v", err)
	}
	if err := patience.Receive(t, "closed", closed); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the server sees %v", err)
	}
}
