package comfyuitest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

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
