package engineservertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/livewire"
)

type Live struct {
	Engine engine.LiveEngine
	Models []*catalog.Model
	// Most limits concurrent sessions. 0 means no limit.
	Most int

	mu   sync.Mutex
	open int
}

func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		reported := livewire.Catalogue{Version: livewire.Version, Models: map[string]livewire.Model{}, Sessions: l.Most}
		for _, m := range l.Models {
			reported.Models[m.ID] = livewire.Model{Ready: true}
		}
		reported.Open = l.Open()
		_ = json.NewEncoder(w).Encode(reported) // this fails if the caller has disconnected
		return
	}
	// Without full duplex, the response would be held back until the client's body ends.
	_ = http.NewResponseController(w).EnableFullDuplex()
	// The rest of the client's body must not be read as another request.
	w.Header().Set("Connection", "close")
	from := livewire.NewReader(r.Body)
	var begin livewire.Begin
	_, payload, err := from.Next(nil)
	if err != nil || json.Unmarshal(payload, &begin) != nil || begin.Version != livewire.Version {
		refuse(w, http.StatusUnprocessableEntity, "The engine does not understand the session.")
		return
	}
	var model *catalog.Model
	for _, m := range l.Models {
		if m.ID == begin.Model {
			model = m
		}
	}
	switch {
	case model == nil:
		refuse(w, http.StatusUnprocessableEntity, "The engine does not serve the model.")
		return
	case !l.enter():
		refuse(w, http.StatusServiceUnavailable, "The engine has as many sessions as it takes.")
		return
	}
	defer l.leave()
	editor, err := l.Engine.Open(r.Context(), model)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "The engine failed.")
		return
	}
	s := &liveSession{w: w, editor: editor}
	s.serve(r.Context(), from)
}

func (l *Live) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func (l *Live) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Most > 0 && l.open >= l.Most {
		return false
	}
	l.open++
	return true
}

func (l *Live) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(livewire.Line{Error: &livewire.Failure{ // this fails if the caller has disconnected
		Code: job.EngineError, Message: message, Retryable: status == http.StatusServiceUnavailable,
	}})
}

type liveSession struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	editor engine.LiveEditor
}

// serve edits frames until the client disconnects. If several frames are waiting, it edits only the newest. It
// applies changes concurrently.
func (s *liveSession) serve(ctx context.Context, from *livewire.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	pictures := make(chan []byte, 1)
	var editing sync.WaitGroup
	editing.Go(func() {
		for payload := range pictures {
			s.edit(ctx, payload)
		}
	})
	defer func() {
		cancel()
		close(pictures)
		editing.Wait()
		s.editor.Close()
	}()
	s.tell(livewire.Line{Ready: &livewire.Ready{Engine: "stand-in"}})
	for {
		kind, payload, err := from.Next(nil)
		if err != nil {
			return
		}
		switch kind {
		case livewire.Picture:
			select {
			case <-pictures:
			default:
			}
			pictures <- payload
		case livewire.Image:
			number, reference, err := ParseImage(payload)
			if err != nil {
				return
			}
			reported, err := s.editor.SetImage(ctx, reference)
			s.set(number, reported, err)
		case livewire.Text:
			var wish livewire.Wish
			if json.Unmarshal(payload, &wish) != nil {
				return
			}
			reported, err := s.editor.SetPrompt(ctx, wish.Prompt)
			s.set(wish.Number, reported, err)
		}
	}
}

func (s *liveSession) edit(ctx context.Context, payload []byte) {
	number, picture, err := livewire.ParsePicture(payload)
	if err != nil {
		return
	}
	edited, err := s.editor.Edit(ctx, picture)
	if err != nil {
		s.tell(livewire.Line{Refused: &livewire.Refused{Number: number, Error: failureOf(err)}})
		return
	}
	s.send(livewire.AppendPicture(nil, number, edited))
}

func (s *liveSession) set(number uint32, reported engine.Outcome, err error) {
	set := &livewire.Set{Number: number, Engine: reported.Engine, Understood: reported.Understood, Notice: reported.Notice}
	if err != nil {
		failure := failureOf(err)
		set = &livewire.Set{Number: number, Error: &failure}
	}
	s.tell(livewire.Line{Set: set})
}

func failureOf(err error) livewire.Failure {
	var wrong *fault.Error
	if errors.As(err, &wrong) && wrong.Code == fault.Invalid {
		return livewire.Failure{Code: job.InvalidInput, Message: wrong.Message}
	}
	return livewire.Failure{Code: job.EngineError, Message: "The engine failed."}
}

func (s *liveSession) tell(line livewire.Line) {
	message, err := livewire.AppendText(nil, line)
	if err != nil {
		panic(err) // lines are short in tests
	}
	s.send(message)
}

func (s *liveSession) send(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Both writes fail if the caller has disconnected. In that case the session ends.
	_, _ = s.w.Write(message)
	_ = http.NewResponseController(s.w).Flush()
}
