package comfyui_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/comfyui"
	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/testkit/alloctest"

	"github.com/coder/websocket"
)

var calls = []string{
	"GET /prompt", "GET /object_info", "POST /upload/image", "GET /ws", "POST /prompt", "GET /queue",
	"GET /history", "GET /view", "POST /history",
}

func briefEngine(t *testing.T, s http.Handler) *comfyui.Engine {
	t.Helper()
	configured := config(t, serve(t, s))
	configured.PollEvery, configured.Silence, configured.Starting = 10*time.Millisecond, shortWait, shortWait
	return newEngine(t, configured)
}

func still(t *testing.T) func() engine.Spec {
	t.Helper()
	spec := newSpec(t, catalog.Image)
	return func() engine.Spec {
		one := spec
		one.Folder = t.TempDir()
		one.Output = one.Folder + "/output.png"
		return one
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var led atomic.Int64
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	spec := still(t)
	for _, call := range calls {
		s := fakeServer(t)
		s.Break = on(call, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		})
		// Ignore the error, because whether the run succeeds depends on which call is redirected.
		_, _ = briefEngine(t, s).Run(t.Context(), spec(), ignore)
		if led.Load() > 0 {
			t.Errorf("%s was redirected to another host", call)
		}
	}
}

// After a protocol switch, the call does not wait for the connection to close.
func TestProtocolSwitchesAreIgnored(t *testing.T) {
	spec := still(t)
	for _, call := range calls {
		s := fakeServer(t)
		s.Break = on(call, func(w http.ResponseWriter, _ *http.Request) {
			connection, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, buffered) // until the caller disconnects
		})
		_, _ = briefEngine(t, s).Run(t.Context(), spec(), ignore) // a waiting run ends at the test's time limit
	}
}

// A slow response does not count as a sign of life. A result that is not media is rejected without
// reading it to the end.
func TestEndlessResponsesAreCutOff(t *testing.T) {
	for _, call := range []string{"POST /upload/image", "POST /prompt", "GET /view"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := fakeServer(t)
			s.Break = on(call, func(w http.ResponseWriter, r *http.Request) {
				for space := bytes.Repeat([]byte(" "), 1<<10); r.Context().Err() == nil; {
					if _, err := w.Write(space); err != nil {
						return
					}
					_ = http.NewResponseController(w).Flush() // if this fails, so does the next write
					time.Sleep(10 * time.Millisecond)
				}
			})
			var failure *engine.Error
			if _, err := briefEngine(t, s).Run(t.Context(), newSpec(t, catalog.Image), ignore); !errors.As(err, &failure) || !failure.Retryable {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestResponsesWithSmallElementsUseLittleMemory(t *testing.T) {
	const most = 8<<20 - 100
	many := func(piece string) string { return strings.Repeat(piece, most/len(piece)) }
	// full returns a response with the largest accepted number of values and the largest accepted size.
	full := func(piece string, each int) string {
		text := strings.Repeat(piece, 99_900/each)
		return text + strings.Repeat(" ", most-len(text))
	}
	for name, c := range map[string]struct {
		call   string
		status int
		answer string
	}{
		"queue":                {"GET /queue", 200, `{"queue_running":[],"queue_pending":[[` + strings.Repeat("0,", 2<<20) + `0]]}`},
		"history":              {"GET /history", 200, `{"x":{"status":{"messages":[` + many("[],") + `[]]}}}`},
		"longest history":      {"GET /history", 200, `{"x":{"status":{"messages":[` + full("[],", 2) + `[]]}}}`},
		"outputs":              {"GET /history", 200, `{"x":{"outputs":{"4":{"images":[` + many("{},") + `{}]}}}}`},
		"runs":                 {"GET /history", 200, `{"x":{}` + many(`,"x":{}`) + `}`},
		"classes":              {"GET /object_info", 200, `{"EmptyImage":{"input":{"required":{"a":[[` + many("0,") + `0]]}}}}`},
		"longest classes":      {"GET /object_info", 200, `{"EmptyImage":{"output":[` + full("0,", 1) + `0]}}`},
		"stored":               {"POST /prompt", 200, `{"node_errors":[` + many("0,") + `0]}`},
		"refusal":              {"POST /prompt", 400, `{"node_errors":{"1":{"errors":[` + strings.Repeat("{},", 300<<10) + `{}]}}}`},
		"names in a rejection": {"POST /prompt", 400, `{"node_errors":{"1":{}` + strings.Repeat(`,"1":{}`, 140<<10) + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeServer(t)
			var sent int
			s.Break = on(c.call, func(w http.ResponseWriter, r *http.Request) {
				sent += len(c.answer)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			})
			configured, spec := config(t, serve(t, s)), newSpec(t, catalog.TextToVideo)
			configured.Starting = shortWait
			e := newEngine(t, configured)
			took := alloctest.Of(func() { _, _ = e.Run(t.Context(), spec, ignore) })
			if sent == 0 || took > 20*sent+2<<20 {
				t.Errorf("responses of %d bytes used %d bytes of memory", sent, took)
			}
		})
	}
}

func TestLongQueueEndsTheRun(t *testing.T) {
	s := fakeServer(t)
	s.Break = on("GET /queue", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"queue_running":[`+strings.Repeat("0,", 10_000)+`0]}`)
	})
	_, err := briefEngine(t, s).Run(t.Context(), still(t)(), ignore)
	if err == nil || !strings.Contains(err.Error(), "more than 10000 runs") {
		t.Errorf("ended with %v", err)
	}
}

type frame struct {
	kind    websocket.MessageType
	content []byte
}

func text(format string, values ...any) frame {
	return frame{websocket.MessageText, fmt.Appendf(nil, format, values...)}
}

func pictured(content []byte) frame {
	return frame{websocket.MessageBinary, append([]byte{0, 0, 0, 1, 0, 0, 0, 1}, content...)}
}

// claiming returns a JPEG whose header claims the given size.
func claiming(t *testing.T, width, height uint16) []byte {
	t.Helper()
	content := preview(t)
	at := bytes.Index(content, []byte{0xff, 0xc0}) // the frame header: length, precision, height, width
	binary.BigEndian.PutUint16(content[at+5:], height)
	binary.BigEndian.PutUint16(content[at+7:], width)
	return content
}

// The run ends, invalid previews are not shown, and progress stays between 0 and 1.
func TestRunSurvivesHostileMessages(t *testing.T) {
	var large bytes.Buffer
	if err := jpeg.Encode(&large, image.NewGray(image.Rect(0, 0, 513, 4)), nil); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 200<<10)
	for name, frames := range map[string]func(id string) []frame{
		"binary messages with wrong headers": func(string) []frame {
			return []frame{
				{websocket.MessageBinary, nil}, {websocket.MessageBinary, []byte{0, 0, 0}},
				{websocket.MessageBinary, []byte{0, 0, 0, 1, 0, 0, 0, 1}},
				{websocket.MessageBinary, append([]byte{0, 0, 0, 9, 0, 0, 0, 1}, preview(t)...)},
				{websocket.MessageBinary, append([]byte{0, 0, 0, 1, 255, 255, 255, 255}, preview(t)...)},
				{websocket.MessageText, []byte{0, 0, 0, 1, 0, 0, 0, 1}},
			}
		},
		"invalid previews": func(string) []frame {
			return []frame{
				pictured([]byte("<html>")), pictured([]byte{0xff, 0xd8, 0xff}), pictured(append(preview(t), zeros...)),
				pictured(large.Bytes()), pictured(claiming(t, 65535, 65535)), pictured(claiming(t, 0, 0)),
			}
		},
		"invalid messages": func(string) []frame {
			return []frame{
				text(""), text("null"), text("[]"), text("%s", strings.Repeat("[", 1<<20)), text(`{"type":7}`),
				text(`{"type":"executing"}`), text(`{"type":"progress","data":[]}`),
			}
		},
		"messages of other runs": func(string) []frame {
			return []frame{
				text(`{"type":"executing","data":{"node":null,"prompt_id":"another"}}`),
				text(`{"type":"execution_error","data":{"prompt_id":"another"}}`),
				text(`{"type":"progress","data":{"node":"2","value":1,"max":1,"prompt_id":"another"}}`),
			}
		},
		"progress out of range": func(id string) (sent []frame) {
			for _, values := range []string{
				`"value":1e300,"max":1e300`, `"value":-1e300,"max":1`, `"value":1e300,"max":1`, `"value":1,"max":0`, `"value":1,"max":-1`,
			} {
				sent = append(sent, text(`{"type":"progress","data":{"node":"2",%s,"prompt_id":%q}}`, values, id))
			}
			for i := range 100 {
				sent = append(sent, text(`{"type":"executing","data":{"node":"x%d","prompt_id":%q}}`, i, id))
			}
			return append(sent, text(`{"type":"execution_cached","data":{"nodes":[1,{},"a"],"timestamp":-1e99,"prompt_id":%q}}`, id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeServer(t)
			s.Hold = make(chan struct{})
			last := preview(t)
			s.Break = on("GET /ws", sends(append([]frame{text("{}")}, slices.Concat(
				[]frame{}, frames("%id"), []frame{pictured(last)})...), nil))
			configured := config(t, serve(t, s))
			configured.PollEvery = 10 * time.Millisecond
			spec := newSpec(t, catalog.TextToVideo)
			spec.PreviewEvery = 1
			reached := 0.0
			var read sync.Once
			_, err := newEngine(t, configured).Run(t.Context(), spec, func(p engine.Progress) {
				if p.Fraction < reached || p.Fraction > 1 {
					t.Errorf("progress %g after %g", p.Fraction, reached)
				}
				reached = p.Fraction
				switch {
				case p.Preview == nil:
				case bytes.Equal(p.Preview, last):
					read.Do(func() { close(s.Hold) }) // all messages have been read
				default:
					t.Errorf("a preview of %d bytes is shown", len(p.Preview))
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// sends serves a WebSocket that sends the frames, with %id replaced by the caller's id. It then calls the function
// after, if set, and closes the connection.
func sends(frames []frame, after func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = socket.CloseNow() }()
		for _, f := range frames {
			content := bytes.ReplaceAll(f.content, []byte("%id"), []byte(r.URL.Query().Get("clientId")))
			if socket.Write(r.Context(), f.kind, content) != nil {
				break
			}
		}
		if after == nil {
			_, _, _ = socket.Read(r.Context()) // until the caller disconnects
			return
		}
		after()
	}
}

func TestRunSurvivesRepeatedWebSocketLoss(t *testing.T) {
	for name, frames := range map[string][]frame{
		"it closes immediately": {text("{}")}, "it sends a huge message": {text("{}"), text("%s", strings.Repeat(" ", 9<<20))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeServer(t)
			s.Hold = make(chan struct{})
			var lost atomic.Int64
			s.Break = on("GET /ws", sends(frames, func() {
				if lost.Add(1) == 2 {
					close(s.Hold)
				}
			}))
			configured := config(t, serve(t, s))
			configured.PollEvery = 10 * time.Millisecond
			if _, err := newEngine(t, configured).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server might repeat the end of a run forever.
func TestRepeatedEndMessagesDoNotBlockRun(t *testing.T) {
	s := fakeServer(t)
	s.Break = on("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = socket.CloseNow() }()
		end := text(`{"type":"execution_success","data":{"prompt_id":%q}}`, r.URL.Query().Get("clientId"))
		for socket.Write(r.Context(), end.kind, end.content) == nil {
			time.Sleep(time.Millisecond)
		}
	})
	if _, err := newEngine(t, config(t, serve(t, s))).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
		t.Error(err)
	}
}

func TestRunSurvivesFlappingServer(t *testing.T) {
	s := fakeServer(t)
	var asked atomic.Int64
	s.Break = on("GET /queue", func(w http.ResponseWriter, _ *http.Request) {
		switch n := asked.Add(1); {
		case n > 6:
			s.Wait() // otherwise the run would seem lost
			says(200, `{"queue_running":null}`)(w, nil)
		case n%2 == 0:
			crashes(w, nil)
		default:
			says(503, "")(w, nil)
		}
	})
	configured := config(t, serve(t, s))
	configured.PollEvery = 10 * time.Millisecond
	if _, err := newEngine(t, configured).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil || asked.Load() <= 6 {
		t.Errorf("error %v after %d polls", err, asked.Load())
	}
}

// A run never gets another run's id, because it would then get that run's result.
func TestDuplicateRunIDIsRejected(t *testing.T) {
	s := fakeServer(t)
	s.Hold = make(chan struct{})
	var mu sync.Mutex
	var taken string
	s.Break = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path != "POST /prompt" {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if taken != "" {
			says(200, fmt.Sprintf(`{"prompt_id":%q}`, taken))(w, r)
			return true
		}
		var sent struct {
			ID string `json:"prompt_id"`
		}
		if err := json.Unmarshal(comfyuitest.Peek(r), &sent); err != nil {
			t.Error(err)
		}
		taken = sent.ID
		return false
	}
	e := newEngine(t, config(t, serve(t, s)))
	first, started := make(chan error, 1), make(chan struct{})
	var once sync.Once
	go func() {
		_, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), func(p engine.Progress) {
			if p.Stage == "generate" {
				once.Do(func() { close(started) })
			}
		})
		first <- err
	}()
	<-started
	var failure *engine.Error
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); !errors.As(err, &failure) ||
		failure.Message != "The engine returned an invalid response." {
		t.Errorf("the second run: %v", err)
	}
	close(s.Hold)
	if err := <-first; err != nil {
		t.Errorf("the first run: %v", err)
	}
	if slices.Contains(s.Calls(), "POST /interrupt") {
		t.Error("the first run was interrupted")
	}
}

func TestResultNamesDoNotAffectLocalPaths(t *testing.T) {
	edit := still(t)
	for _, name := range []string{"../../x.png", "/etc/passwd", "a\x00b\n"} {
		s := fakeServer(t)
		named, err := json.Marshal([]any{map[string]string{"filename": name, "subfolder": name, "type": name}})
		if err != nil {
			t.Fatal(err)
		}
		s.Break = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case on("GET /history", record(`"outputs":{"5":{"images":`+string(named)+`}}`))(w, r):
			case r.URL.Path == "/view":
				if got := r.URL.Query(); got.Get("filename") != name || got.Get("subfolder") != name || got.Get("type") != name {
					t.Errorf("requested %v", got)
				}
				_, _ = w.Write(s.Image(1))
			default:
				return false
			}
			return true
		}
		configured, spec := config(t, serve(t, s)), edit()
		configured.PollEvery = 10 * time.Millisecond
		if _, err := newEngine(t, configured).Run(t.Context(), spec, ignore); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(spec.Output); err != nil {
			t.Error(err)
		}
	}
}

func TestServerReportsAreLimited(t *testing.T) {
	s := fakeServer(t)
	endless := strings.Repeat("x", 1<<20)
	s.Classes["SaveVideo"] = []byte(`{"input":{"required":{"` + endless + `":["INT",{}]}},"output":[]}`)
	for _, found := range newEngine(t, config(t, serve(t, s))).Inspect(context.WithoutCancel(t.Context())) {
		if reported := fmt.Sprint(found.Lacks); found.Err != nil || len(found.Lacks) == 0 || len(reported) > 10_000 {
			t.Errorf("error %v, reported %d bytes", found.Err, len(reported))
		}
	}
}
