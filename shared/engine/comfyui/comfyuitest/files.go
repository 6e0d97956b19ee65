package comfyuitest

import (
	"io"
	"net/http"
	"path"
)

func (s *Server) takeUpload(w http.ResponseWriter, r *http.Request) {
	file, head, err := r.FormFile("image")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uploads == nil {
		s.uploads = map[string][]byte{}
	}
	s.uploads[path.Join(r.FormValue("subfolder"), head.Filename)+" ["+r.FormValue("type")+"]"] = content
	s.answer(w, map[string]string{
		"name": head.Filename, "subfolder": r.FormValue("subfolder"), "type": r.FormValue("type"),
	})
}

func (s *Server) view(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	content, known := s.saved[path.Join(query.Get("type"), query.Get("subfolder"), query.Get("filename"))]
	s.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(content) // this fails if the caller has disconnected
}
