package comfyuitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

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
	s.runs.Add(1) // Wait also waits for runs of accepted prompts
	s.answer(w, map[string]any{"prompt_id": j.id, "number": j.number, "node_errors": map[string]any{}})
	go func() {
		defer s.runs.Done()
		s.work(j)
	}()
}

func (s *Server) inputs(class string) []string {
	var reported struct {
		Input struct{ Required map[string]any }
	}
	_ = json.Unmarshal(s.Classes[class], &reported)
	return slices.Sorted(maps.Keys(reported.Input.Required))
}

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

// outputs returns the ids of the nodes that save files.
func outputs(graph map[string]node) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		if class := graph[id].Class; strings.HasPrefix(class, "Save") || strings.HasPrefix(class, "Preview") {
			ids = append(ids, id)
		}
	}
	return ids
}
