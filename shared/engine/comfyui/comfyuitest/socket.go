package comfyuitest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	client := r.URL.Query().Get("clientId")
	s.mu.Lock()
	if s.sockets == nil {
		s.sockets = map[string]*websocket.Conn{}
	}
	s.sockets[client] = socket
	s.mu.Unlock()
	s.send(client, "status", map[string]any{"status": s.info(), "sid": client})
	for {
		if _, _, err := socket.Read(r.Context()); err != nil {
			_ = socket.CloseNow()
			return
		}
	}
}

func (s *Server) send(client, kind string, data any) {
	text, err := json.Marshal(map[string]any{"type": kind, "data": data})
	if err != nil {
		panic(err)
	}
	s.write(client, websocket.MessageText, text)
}

func (s *Server) write(client string, kind websocket.MessageType, content []byte) {
	s.mu.Lock()
	socket := s.sockets[client]
	s.mu.Unlock()
	if socket == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), socketTime)
	defer cancel()
	_ = socket.Write(ctx, kind, content) // this fails if the listener has disconnected
}

const socketTime = time.Minute
