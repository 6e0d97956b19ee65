// Package comfyuitest is a ComfyUI server for tests. It has the calls that package
// comfyui makes, and answers them as the real program does: a test compares both with
// answers of the real one that were recorded. It runs no node; what nodes save was
// made before, and follows from the seed.
package comfyuitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Server is such a server. The zero value of an option is that of the real program.
type Server struct {
	// Classes is what GET /object_info answers, by class.
	Classes map[string]json.RawMessage
	// Image and Video make what nodes save, from the seed of the workflow.
	Image, Video func(seed int64) []byte
	// Hold, when not nil, lets a run go on at its second node once it is closed.
	Hold chan struct{}
	// Break, when not nil, is called with each request before it is answered, and
	// reports whether it answered it.
	Break func(w http.ResponseWriter, r *http.Request) bool
	// Memory is what GET /system_stats tells of its device, free and in all; 0 is a lot.
	Free, Total uint64
	// Preview, when not nil, is sent as the picture of each node that runs.
	Preview []byte

	mu      sync.Mutex
	uploads map[string][]byte
	saved   map[string][]byte
	running *job
	history map[string]any
	sockets map[string]*websocket.Conn
	runs    sync.WaitGroup
	calls   []string
	number  int
	turn    sync.Mutex
	pending []*job
}

// job is a workflow that was sent.
type job struct {
	id, client string
	number     int
	graph      map[string]node
	raw        json.RawMessage
	interrupt  chan struct{}
	cut        bool
}

type node struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
}

// Calls returns the calls so far, each as its method and path.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Restart makes the server forget everything, as a restart does.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.uploads, s.pending = nil, nil, nil
	if s.running != nil {
		s.running.stop()
		s.running = nil
	}
	for _, socket := range s.sockets {
		_ = socket.CloseNow()
	}
}

// Wait waits until nothing runs any more.
func (s *Server) Wait() { s.runs.Wait() }

func (j *job) stop() {
	if !j.cut {
		j.cut = true
		close(j.interrupt)
	}
}

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.Break != nil && s.Break(w, r) {
		return
	}
	class, isClass := strings.CutPrefix(r.URL.Path, "/object_info/")
	run, isRun := strings.CutPrefix(r.URL.Path, "/history/")
	switch call := r.Method + " " + r.URL.Path; {
	case call == "GET /ws":
		s.serveSocket(w, r)
	case call == "GET /prompt":
		s.answer(w, s.info())
	case call == "POST /prompt":
		s.takePrompt(w, r)
	case call == "POST /upload/image":
		s.takeUpload(w, r)
	case call == "GET /queue":
		s.answer(w, s.queue())
	case call == "POST /queue", call == "POST /history", call == "POST /interrupt":
		s.control(w, r)
	case call == "GET /view":
		s.view(w, r)
	case call == "GET /system_stats":
		s.answer(w, s.stats())
	case isClass:
		told := map[string]json.RawMessage{}
		if info, known := s.Classes[class]; known {
			told[class] = info
		}
		s.answer(w, told)
	case isRun:
		s.mu.Lock()
		told := map[string]any{}
		if record, known := s.history[run]; known {
			told[run] = record
		}
		s.mu.Unlock()
		s.answer(w, told)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(value) // it fails when the caller has gone
}

func (s *Server) info() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	remaining := len(s.pending)
	if s.running != nil {
		remaining++
	}
	return map[string]any{"exec_info": map[string]any{"queue_remaining": remaining}}
}

func (s *Server) stats() map[string]any {
	total, free := s.Total, s.Free
	if total == 0 {
		total, free = 24<<30, 20<<30
	}
	return map[string]any{
		"system": map[string]any{"os": "posix", "comfyui_version": "0.3.64"},
		"devices": []any{map[string]any{
			"name": "cpu", "type": "cpu", "index": nil, "vram_total": total, "vram_free": free,
			"torch_vram_total": 0, "torch_vram_free": 0,
		}},
	}
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

// control serves the calls that delete and interrupt.
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
	_, _ = w.Write(content) // it fails when the caller has gone
}

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
	_ = socket.Write(ctx, kind, content) // it fails when the listener has gone
}

// socketTime bounds a message to a listener.
const socketTime = time.Minute

func (s *Server) takePrompt(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Prompt json.RawMessage `json:"prompt"`
		Client string          `json:"client_id"`
		ID     string          `json:"prompt_id"`
	}
	j := &job{interrupt: make(chan struct{})}
	if json.NewDecoder(r.Body).Decode(&sent) != nil || json.Unmarshal(sent.Prompt, &j.graph) != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	j.id, j.client, j.raw = sent.ID, sent.Client, sent.Prompt
	if refusal := s.validate(j.graph); refusal != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(refusal)
		return
	}
	s.mu.Lock()
	j.number = s.number
	s.number++
	s.pending = append(s.pending, j)
	s.mu.Unlock()
	s.runs.Add(1) // Wait waits for whatever is answered
	s.answer(w, map[string]any{"prompt_id": j.id, "number": j.number, "node_errors": map[string]any{}})
	go func() {
		defer s.runs.Done()
		s.work(j)
	}()
}

// inputs returns the required inputs of a class.
func (s *Server) inputs(class string) []string {
	var told struct {
		Input struct{ Required map[string]any }
	}
	_ = json.Unmarshal(s.Classes[class], &told)
	return slices.Sorted(maps.Keys(told.Input.Required))
}

// validate returns why a workflow is refused, nil if it is not.
func (s *Server) validate(graph map[string]node) any {
	problems := map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		n := graph[id]
		if _, known := s.Classes[n.Class]; !known {
			return map[string]any{"error": map[string]any{
				"type":    "invalid_prompt",
				"message": fmt.Sprintf("Cannot execute because node %s does not exist.", n.Class),
				"details": fmt.Sprintf("Node ID '#%s'", id), "extra_info": map[string]any{},
			}, "node_errors": map[string]any{}}
		}
		wrong := func(kind, message, details, input string) {
			problems[id] = map[string]any{
				"errors": []any{map[string]any{
					"type": kind, "message": message, "details": details, "extra_info": map[string]any{"input_name": input},
				}},
				"dependent_outputs": outputs(graph), "class_type": n.Class,
			}
		}
		for _, input := range s.inputs(n.Class) {
			value, given := n.Inputs[input]
			if !given {
				wrong("required_input_missing", "Required input is missing", input, input)
				continue
			}
			s.mu.Lock()
			_, uploaded := s.uploads[fmt.Sprint(value)]
			s.mu.Unlock()
			if strings.HasPrefix(n.Class, "Load") && !uploaded {
				wrong("custom_validation_failed", "Custom validation failed for node",
					fmt.Sprintf("%s - Invalid file: %v", input, value), input)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return map[string]any{"error": map[string]any{
		"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation", "details": "",
		"extra_info": map[string]any{},
	}, "node_errors": problems}
}

// outputs returns the nodes that save.
func outputs(graph map[string]node) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		if class := graph[id].Class; strings.HasPrefix(class, "Save") || strings.HasPrefix(class, "Preview") {
			ids = append(ids, id)
		}
	}
	return ids
}

// work runs a job after those before it.
func (s *Server) work(j *job) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	if !slices.Contains(s.pending, j) {
		s.mu.Unlock()
		return
	}
	s.pending = slices.DeleteFunc(s.pending, func(one *job) bool { return one == j })
	s.running = j
	s.mu.Unlock()
	files, err := s.execute(j)
	kept := []any{}
	note := func(kind string, data map[string]any) {
		data["prompt_id"], data["timestamp"] = j.id, time.Now().UnixMilli()
		kept = append(kept, []any{kind, data})
		s.send(j.client, kind, data)
	}
	status := map[string]any{"status_str": "success", "completed": true}
	kept = append(kept, []any{"execution_start", map[string]any{"prompt_id": j.id, "timestamp": 0}},
		[]any{"execution_cached", map[string]any{"nodes": []string{}, "prompt_id": j.id, "timestamp": 0}})
	switch {
	case err == errInterrupted:
		status = map[string]any{"status_str": "error", "completed": false}
		note("execution_interrupted", map[string]any{"node_id": "2", "node_type": "", "executed": []string{}})
	case err != nil:
		status = map[string]any{"status_str": "error", "completed": false}
		note("execution_error", map[string]any{
			"node_id": "2", "node_type": j.graph["2"].Class, "executed": []string{"1"}, "exception_message": err.Error(),
			"exception_type": "RuntimeError", "traceback": []string{}, "current_inputs": map[string]any{},
			"current_outputs": []string{},
		})
	default:
		note("execution_success", map[string]any{})
	}
	status["messages"] = kept
	s.mu.Lock()
	if s.running == j {
		s.running = nil
		if s.history == nil {
			s.history = map[string]any{}
		}
		s.history[j.id] = map[string]any{"prompt": j.item(), "outputs": files, "status": status, "meta": map[string]any{}}
	}
	s.mu.Unlock()
	s.send(j.client, "status", map[string]any{"status": s.info()})
	s.send(j.client, "executing", map[string]any{"node": nil, "prompt_id": j.id})
}

type stopped struct{}

func (stopped) Error() string { return "interrupted" }

var errInterrupted error = stopped{}

// execute tells of each node, and returns what those put out that save.
func (s *Server) execute(j *job) (files map[string]any, err error) {
	files = map[string]any{}
	s.send(j.client, "execution_start", map[string]any{"prompt_id": j.id, "timestamp": time.Now().UnixMilli()})
	s.send(j.client, "execution_cached", map[string]any{
		"nodes": []string{}, "prompt_id": j.id, "timestamp": time.Now().UnixMilli(),
	})
	needed := map[string]bool{}
	for _, id := range outputs(j.graph) {
		need(j.graph, id, needed)
	}
	for n, id := range slices.Sorted(maps.Keys(needed)) {
		if n == 1 && s.Hold != nil {
			select {
			case <-s.Hold:
			case <-j.interrupt:
				return files, errInterrupted
			}
		}
		s.send(j.client, "executing", map[string]any{"node": id, "display_node": id, "prompt_id": j.id})
		s.send(j.client, "progress", map[string]any{"value": 1, "max": 1, "prompt_id": j.id, "node": id})
		if s.Preview != nil {
			s.write(j.client, websocket.MessageBinary, append([]byte{0, 0, 0, 1, 0, 0, 0, 1}, s.Preview...))
		}
		if file, put := s.save(j, id); put {
			output := map[string]any{"images": []any{file}}
			if j.graph[id].Class == "SaveVideo" {
				output["animated"] = []bool{true}
			}
			files[id] = output
			s.send(j.client, "executed", map[string]any{
				"node": id, "display_node": id, "output": output, "prompt_id": j.id,
			})
		}
	}
	return files, nil
}

// need adds a node and those that it is linked to.
func need(graph map[string]node, id string, needed map[string]bool) {
	needed[id] = true
	for _, value := range graph[id].Inputs {
		if link, _ := value.([]any); len(link) == 2 {
			if from, linked := link[0].(string); linked {
				need(graph, from, needed)
			}
		}
	}
}

// save saves what a node puts out, if it saves.
func (s *Server) save(j *job, id string) (file map[string]string, put bool) {
	make, extension, kind := s.Image, ".png", "temp"
	switch j.graph[id].Class {
	case "PreviewImage":
	case "SaveVideo":
		make, extension, kind = s.Video, ".mp4", "output"
	default:
		return nil, false
	}
	var seed int64
	for _, n := range j.graph {
		if value, given := n.Inputs["seed"]; given {
			seed, _ = strconv.ParseInt(fmt.Sprintf("%.0f", value), 10, 64)
		}
	}
	prefix, _ := j.graph[id].Inputs["filename_prefix"].(string)
	folder, name := path.Split(prefix)
	file = map[string]string{
		"filename": fmt.Sprintf("%s_%05d_%s", name, j.number, extension), "subfolder": strings.Trim(folder, "/"), "type": kind,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved == nil {
		s.saved = map[string][]byte{}
	}
	s.saved[path.Join(kind, file["subfolder"], file["filename"])] = make(seed)
	return file, true
}

// Peek returns the body of a request, which can be read again.
func Peek(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body) // what is cut off is cut off again
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
