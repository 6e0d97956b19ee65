package comfyui_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"

	"github.com/coder/websocket"
)

// recordedFile contains responses of ComfyUI. classesFile contains its descriptions of node classes.
var (
	recordedFile = filepath.Join("testdata", "recorded.json")
	classesFile  = filepath.Join("testdata", "classes.json")
)

func TestFakeServerRespondsAsRecorded(t *testing.T) {
	server := httptest.NewServer(fakeServer(t))
	defer server.Close()
	var recorded map[string]any
	content, err := os.ReadFile(recordedFile)
	if err == nil {
		err = json.Unmarshal(content, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range scenario(t, server.URL) {
		for _, wrong := range differs(got, recorded[name], name) {
			t.Error(wrong)
		}
	}
}

// differs returns the fields of a response that the recorded response lacks or contains with another type. The fake
// server omits unused fields.
func differs(got, recorded any, at string) (wrong []string) {
	switch got := got.(type) {
	case map[string]any:
		other, same := recorded.(map[string]any)
		if !same {
			return []string{fmt.Sprintf("%s is an object, but was recorded as %T", at, recorded)}
		}
		for key, value := range got {
			if was, known := other[key]; !known {
				wrong = append(wrong, fmt.Sprintf("%s.%s was not recorded", at, key))
			} else {
				wrong = append(wrong, differs(value, was, at+"."+key)...)
			}
		}
	case []any:
		other, same := recorded.([]any)
		if !same {
			return []string{fmt.Sprintf("%s is a list, but was recorded as %T", at, recorded)}
		}
		if strings.HasSuffix(at, ".sequence") && fmt.Sprint(got) != fmt.Sprint(other) {
			return []string{fmt.Sprintf("%s is %v, but was recorded as %v", at, got, other)}
		}
		for i := range got[:min(len(got), len(other))] {
			wrong = append(wrong, differs(got[i], other[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
	default:
		if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", recorded) {
			wrong = append(wrong, fmt.Sprintf("%s is %v, but was recorded as %v", at, got, recorded))
		}
	}
	return wrong
}

// scenario makes the calls that the engine makes, and returns the responses with ids, times and paths replaced.
func scenario(t *testing.T, base string) map[string]any {
	s := &session{T: t, base: base, responses: map[string]any{}}
	// Use new names in each run, because ComfyUI caches equal inputs.
	still, other, moving := "data-"+rand.Text()+".png", "data-"+rand.Text()+".png", "data-"+rand.Text()+".mp4"
	s.get("idle", "/prompt")
	s.get("no run", "/history/absent")
	s.get("no class", "/object_info/NoSuchClass")
	s.get("empty queue", "/queue")
	s.upload("upload", still, mediatest.Image{Name: "a.png", Width: 32, Height: 32}.Make(t))
	s.upload("upload of a reference", other, mediatest.Image{Name: "b.png", Width: 24, Height: 32}.Make(t))
	s.upload("upload of a clip", moving, mediatest.Video{Width: 32, Height: 32, Seconds: 0.3, Silent: true}.Make(t))
	image := s.workflow("image.json", map[string]any{
		"1.image": "cutroom/" + still + " [temp]", "2.image": "cutroom/" + other + " [temp]", "4.seed": 7,
	})
	s.run("image", image)
	clip := s.workflow("clip.json", map[string]any{
		"1.file": "cutroom/" + moving + " [temp]", "3.image": "cutroom/" + other + " [temp]", "5.seed": 7, "8.filename_prefix": "cutroom/x",
	})
	s.run("clip", clip)
	s.submit("invalid", s.workflow("image.json", nil))
	image["9"] = map[string]any{"class_type": "NoSuchClass", "inputs": map[string]any{}}
	s.submit("unknown class", image)
	return s.responses
}

type session struct {
	*testing.T
	base      string
	responses map[string]any
}

func (s *session) keep(name string, body []byte) any {
	s.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		s.Fatalf("%s: %v in %.300s", name, err, body)
	}
	s.responses[name] = value
	return value
}

func (s *session) call(method, path string, body io.Reader, contentType string) []byte {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.base+path, body)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return content
}

func (s *session) get(name, path string) any {
	s.Helper()
	return s.keep(name, s.call(http.MethodGet, path, nil, ""))
}

func (s *session) upload(name, as, path string) {
	s.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field, value := range map[string]string{"type": "temp", "subfolder": "cutroom", "overwrite": "true"} {
		if err := form.WriteField(field, value); err != nil {
			s.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("image", as)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.keep(name, s.call(http.MethodPost, "/upload/image", &body, form.FormDataContentType()))
}

func (s *session) workflow(name string, values map[string]any) map[string]any {
	s.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	var graph map[string]any
	if err == nil {
		err = json.Unmarshal(content, &graph)
	}
	if err != nil {
		s.Fatal(err)
	}
	for place, value := range values {
		id, input, _ := strings.Cut(place, ".")
		graph[id].(map[string]any)["inputs"].(map[string]any)[input] = value
	}
	return graph
}

const runID = "00000000-0000-4000-8000-000000000000"

func (s *session) submit(name string, graph map[string]any) {
	s.Helper()
	body, err := json.Marshal(map[string]any{"prompt": graph, "client_id": "recorder", "prompt_id": runID})
	if err != nil {
		s.Fatal(err)
	}
	s.keep(name, s.call(http.MethodPost, "/prompt", bytes.NewReader(body), "application/json"))
}

func (s *session) run(name string, graph map[string]any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Minute)
	defer cancel()
	socket, response, err := websocket.Dial(ctx, s.base+"/ws?clientId=recorder", nil)
	if err != nil {
		s.Fatal(err)
	}
	if response.Body != nil {
		defer response.Body.Close()
	}
	defer func() { _ = socket.CloseNow() }()
	socket.SetReadLimit(8 << 20)
	// ComfyUI sends a greeting after it has registered a listener.
	if _, _, err := socket.Read(ctx); err != nil {
		s.Fatal(err)
	}
	s.submit(name+": sent", graph)
	var sequence []any
	messages := map[string]any{}
	for {
		_, content, err := socket.Read(ctx)
		if err != nil {
			s.Fatal(err)
		}
		var message struct {
			Type string
			Data map[string]any
		}
		if err := json.Unmarshal(content, &message); err != nil {
			s.Fatal(err)
		}
		delete(message.Data, "timestamp")
		if !slices.Contains([]string{"progress_state", "progress", "status"}, message.Type) {
			sequence = append(sequence, message.Type)
			messages[message.Type] = message.Data
		}
		if message.Type == "executing" && message.Data["node"] == nil {
			break
		}
	}
	s.responses[name+": messages"] = messages
	// The number of executed nodes depends on ComfyUI's cache.
	sequence = slices.Compact(sequence)
	s.responses[name+": order"] = map[string]any{"sequence": sequence}
	record := s.get(name+": record", "/history/"+runID).(map[string]any)[runID].(map[string]any)
	delete(record, "prompt")
	delete(record, "meta")
}
