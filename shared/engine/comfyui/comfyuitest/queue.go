package comfyuitest

import (
	"encoding/json"
	"net/http"
	"slices"
)

func (s *Server) info() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	remaining := len(s.pending)
	if s.running != nil {
		remaining++
	}
	return map[string]any{"exec_info": map[string]any{"queue_remaining": remaining}}
}

func (j *job) item() []any {
	return []any{j.number, j.id, j.raw, map[string]any{"client_id": j.client}, outputs(j.graph)}
}

func (s *Server) queue() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	running, pending := []any{}, []any{}
	if s.running != nil {
		running = append(running, s.running.item())
	}
	for _, j := range s.pending {
		pending = append(pending, j.item())
	}
	return map[string]any{"queue_running": running, "queue_pending": pending}
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Delete []string `json:"delete"`
		ID     string   `json:"prompt_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/queue":
		s.pending = slices.DeleteFunc(s.pending, func(j *job) bool { return slices.Contains(asked.Delete, j.id) })
	case "/history":
		for _, id := range asked.Delete {
			delete(s.history, id)
		}
	case "/interrupt":
		if s.running != nil && (asked.ID == "" || asked.ID == s.running.id) {
			s.running.stop()
		}
	}
	w.WriteHeader(http.StatusOK)
}
