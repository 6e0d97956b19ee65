package engineserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/testkit/await"
)

const shortSilence = 200 * time.Millisecond

type ending int

const (
	closes ending = iota // ends the response correctly
	crashes
	hangs
)

// scripted returns the URL of a server that responds to every run with the status and text.
func scripted(t *testing.T, status int, text string, then ending) string {
	t.Helper()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		switch then {
		case crashes:
			panic(http.ErrAbortHandler)
		case hangs:
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	return server.URL
}

func newEngine(t *testing.T, url string, silence time.Duration) *engineserver.Engine {
	t.Helper()
	e, err := engineserver.New(engineserver.Config{URL: url, Silence: silence, Starting: await.Max})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newSpec(t *testing.T) engine.Spec {
	folder := t.TempDir()
	return engine.Spec{
		Job: "job_1", Model: "gen-2.5", Kind: catalog.Edit, Prompt: "winter", Seed: 7,
		Size: catalog.Size{Width: 1280, Height: 720}, FPS: 20, Duration: 1500 * time.Millisecond,
		Folder: folder, Output: filepath.Join(folder, "output.mp4"),
	}
}

const video = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42 and so on"

var wrote = fmt.Sprintf(`{"result": {"bytes": %d}}`+"\n", len(video))

func TestResponsesDetermineOutcome(t *testing.T) {
	const message = "The engine returned an invalid response."
	for _, c := range []struct {
		name      string
		status    int
		answer    string
		then      ending
		code      job.Code
		message   string
		retryable bool
	}{
		{"a result", 200, wrote, closes, "", "", false},
		{
			"a result after progress and empty lines", 200, `{"progress":0.5,"stage":"denoise"}` + "\n\r\n\n" + wrote, closes,
			"", "", false,
		},
		{"a result with fields of a later version", 200, `{"eta":3}` + "\n" + wrote, closes, "", "", false},
		{"a result followed by silence", 200, wrote, hangs, "", "", false},

		{"a rejected input", 200, `{"error":{"code":"invalid_input","message":"The video cannot be decoded."}}` + "\n", closes,
			job.InvalidInput, "The video cannot be decoded.", false},
		{"a temporary failure", 200, `{"error":{"code":"engine_error","message":"The device is lost.","retryable":true}}` +
			"\n", closes,
			job.EngineError, "The device is lost.", true},
		{"a permanent failure", 200,
			`{"error":{"code":"engine_error","message":"The video is too large.","retryable":false}}` + "\n", closes,
			job.EngineError, "The video is too large.", false},
		{"a code that engines may not send", 200, `{"error":{"code":"cancelled","message":"No.","retryable":false}}` + "\n",
			closes,
			job.EngineError, "No.", false},
		{"an error without a message", 200, `{"error":{}}` + "\n", closes, job.EngineError, "The engine failed.", false},
		{
			"an error in several lines", 200, `{"error":{"code":"engine_error","message":"One\n\ttwo\u0000."}}` + "\n", closes,
			job.EngineError, "One two .", false,
		},
		{"an endless message", 200, `{"error":{"code":"engine_error","message":"` + strings.Repeat("é", 5000) + `"}}` + "\n",
			closes,
			job.EngineError, strings.Repeat("é", 300) + "…", false},

		{"a crash before any output", 200, "", crashes, job.EngineError, "The engine stopped during the edit.", true},
		{
			"a crash during the run", 200, `{"progress":0.5}` + "\n", crashes, job.EngineError,
			"The engine stopped during the edit.", true,
		},
		{
			"a crash in a line", 200, strings.TrimSuffix(wrote, "\n"), crashes, job.EngineError,
			"The engine stopped during the edit.", true,
		},
		{
			"an end without a result", 200, `{"progress":0.5}` + "\n", closes, job.EngineError,
			"The engine stopped during the edit.", true,
		},
		{"silence", 200, "", hangs, job.EngineError, "The engine stopped responding.", true},
		{
			"silence after progress", 200, `{"progress":0.5}` + "\n", hangs, job.EngineError, "The engine stopped responding.",
			true,
		},

		{"no JSON", 200, "Traceback (most recent call last):\n", closes, job.EngineError, message, true},
		{"bytes", 200, "\x00\xff\xfe\n", closes, job.EngineError, message, true},
		{"a list", 200, "[1]\n", closes, job.EngineError, message, true},
		{"progress in words", 200, `{"progress":"half"}` + "\n", closes, job.EngineError, message, true},
		{"an endless line", 200, `{"stage":"` + strings.Repeat("x", 1<<20), hangs, job.EngineError, message, true},

		{"a rejection in the protocol's format", 422,
			`{"error":{"code":"invalid_input","message":"The path is outside.","retryable":false}}`, closes,
			job.InvalidInput, "The path is outside.", false},
		{"too many runs", 503, `{"error":{"code":"engine_error","message":"The engine is busy.","retryable":true}}`, closes,
			job.EngineError, "The engine is busy.", true},
		{"another server", 404, "<html>not here</html>", closes, job.EngineError, "The engine rejected the edit.", false},
		{"a gateway", 302, "", closes, job.EngineError, "The engine rejected the edit.", false},
		{"a broken server", 500, "oops", closes, job.EngineError, "The engine rejected the edit.", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			silence := await.Max
			if strings.HasPrefix(c.name, "silence") {
				silence = shortSilence
			}
			spec := newSpec(t)
			if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := newEngine(
				t, scripted(t, c.status, c.answer, c.then), silence,
			).Run(t.Context(), spec, func(engine.Progress) {})
			if c.code == "" {
				if err != nil {
					t.Errorf("error %v", err)
				}
				return
			}
			var failure *engine.Error
			if !errors.As(err, &failure) || failure.Code != c.code || failure.Message != c.message ||
				failure.Retryable != c.retryable {
				t.Errorf("error %#v (%v), want %s %q, retryable %t", failure, err, c.code, c.message, c.retryable)
			}
		})
	}
}

// The response is rejected without waiting for its connection to close.
func TestProtocolSwitchIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, buffered) // until the caller disconnects
	}))
	defer server.Close()
	_, err := newEngine(t, server.URL, await.Max).Run(t.Context(), newSpec(t), func(engine.Progress) {})
	var failure *engine.Error
	if !errors.As(err, &failure) || failure.Message != "The engine rejected the edit." || failure.Retryable {
		t.Errorf("error %v", err)
	}
}

func TestResultMustMatchReport(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.mp4")
	if err := os.WriteFile(elsewhere, []byte(video), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	for _, c := range []struct {
		name   string
		kind   catalog.Kind
		answer string
		make   func(path string) error
		ok     bool
	}{
		{"a video", catalog.Edit, wrote, write(video), true},
		{
			"an image", catalog.Image, `{"result":{"bytes":33}}` + "\n",
			write("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"), true,
		},
		{"nothing", catalog.Edit, wrote, func(string) error { return nil }, false},
		{"an empty file", catalog.Edit, `{"result":{}}` + "\n", write(""), false},
		{"a truncated file", catalog.Edit, `{"result":{"bytes":1000}}` + "\n", write(video), false},
		{
			"a link to a file elsewhere", catalog.Edit, wrote, func(path string) error { return os.Symlink(elsewhere, path) },
			false,
		},
		{"a folder", catalog.Edit, wrote, func(path string) error { return os.Mkdir(path, 0o700) }, false},
		{"a text", catalog.Edit, `{"result":{"bytes":5}}` + "\n", write("oops\n"), false},
		{"a video instead of an image", catalog.Image, wrote, write(video), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := newSpec(t)
			spec.Kind = c.kind
			if err := c.make(spec.Output); err != nil {
				t.Fatal(err)
			}
			_, err := newEngine(t, scripted(t, 200, c.answer, closes), await.Max).Run(t.Context(), spec, func(engine.Progress) {})
			var failure *engine.Error
			if c.ok && err != nil || !c.ok &&
				(!errors.As(err, &failure) || !failure.Retryable || failure.Message != "The engine returned no result.") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestReportIsLimited(t *testing.T) {
	for reported, want := range map[string]engine.Outcome{
		``: {Engine: "engine server"},
		`,"engine":"tiny\n model","understood":["a hat","night"],"notice":"The hat is\tred."`: {
			Engine: "tiny model", Understood: []string{"a hat", "night"}, Notice: "The hat is red.",
		},
		`,"understood":[]`: {Engine: "engine server", Understood: []string{}},
		`,"notice":"` + strings.Repeat("ä", 400) + `"`: {
			Engine: "engine server", Notice: strings.Repeat("ä", 300) + "…",
		},
	} {
		answer := fmt.Sprintf(`{"result":{"bytes":%d%s}}`+"\n", len(video), reported)
		spec := newSpec(t)
		if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := newEngine(t, scripted(t, 200, answer, closes), await.Max).Run(t.Context(), spec, func(engine.Progress) {})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.60s reports %+v, %v; want %+v", reported, got, err, want)
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	answer := `{"progress":0,"stage":"load"}
{"progress":0.25,"stage":"denoise"}
{"stage":"denoise"}
{"progress":0.5,"stage":"denoise","preview":"/9j/"}
{"progress":7,"stage":"encode"}
{"progress":-1}
` + wrote
	spec := newSpec(t)
	if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
		t.Fatal(err)
	}
	var reported []engine.Progress
	_, err := newEngine(t, scripted(t, 200, answer, closes), await.Max).Run(
		t.Context(), spec, func(p engine.Progress) { reported = append(reported, p) },
	)
	want := []engine.Progress{
		{Stage: "load"}, {Fraction: 0.25, Stage: "denoise"},
		{Fraction: 0.5, Stage: "denoise", Preview: []byte("\xff\xd8\xff")}, {Fraction: 1, Stage: "encode"}, {},
	}
	if err != nil || fmt.Sprint(reported) != fmt.Sprint(want) {
		t.Errorf("reported %v, %v; want %v", reported, err, want)
	}
}

func TestRequestContainsSpec(t *testing.T) {
	bodies := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		_, _ = io.WriteString(w, `{"error":{"code":"engine_error","message":"Enough."}}`+"\n")
	}))
	defer server.Close()
	spec := newSpec(t)
	spec.Folder, spec.Output = "/scratch", "/scratch/output.mp4"
	spec.Options = map[string]any{"self_anchor": true}
	spec.Remaining, spec.PreviewEvery = 597*time.Second, 2*time.Second
	spec.Data = &engine.Input{Path: "/in/data", MIME: "video/webm"}
	_, _ = newEngine(t, server.URL+"/", await.Max).Run(t.Context(), spec, func(engine.Progress) {})
	const want = `POST /v1/runs application/json {"job":"job_1","model":"gen-2.5","kind":"edit","prompt":"winter",` +
		`"seed":7,"options":{"self_anchor":true},` +
		`"data":{"path":"/in/data","mime":"video/webm"},` +
		`"reference":null,` +
		`"width":1280,"height":720,"fps":20,"duration":1.5,"remaining":597,"preview_every":2,` +
		`"folder":"/scratch","output":"/scratch/output.mp4"}`
	if got := <-bodies; got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

func TestCancellationClosesConnection(t *testing.T) {
	running, left := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"progress":0.1}`+"\n")
		_ = http.NewResponseController(w).Flush()
		close(running)
		<-r.Context().Done()
		close(left)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := newEngine(t, server.URL, await.Max).Run(ctx, newSpec(t), func(engine.Progress) {})
		done <- err
	}()
	<-running
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	<-left
}

// A server may take longer to start than it may be silent during a run.
func TestRunWaitsForLateServer(t *testing.T) {
	spec := newSpec(t)
	if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const silence = 4 * time.Second
		starts := time.Now().Add(2 * silence)
		dial := func(_ context.Context, network, _ string) (net.Conn, error) {
			if time.Now().Before(starts) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			here, there := net.Pipe()
			go answerOnce(there)
			return here, nil
		}
		e, err := engineserver.New(engineserver.Config{
			URL: "http://engine", Silence: silence, Starting: 3 * silence, Dial: dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
			t.Errorf("error %v", err)
		}
		if time.Now().Before(starts) {
			t.Error("the run ended before the server started")
		}
	})
}

func answerOnce(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+wrote)
}

// A run may take longer than a server may be silent, as long as lines keep arriving.
func TestQuietRunContinuesWhileLinesArrive(t *testing.T) {
	const quiet = 20 * time.Minute
	for name, lives := range map[string]bool{"a server that is alive": true, "a server that hangs": false} {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(t)
			if err := os.WriteFile(spec.Output, []byte(video), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				dial := func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go answerQuietly(there, quiet, lives)
					return here, nil
				}
				e, err := engineserver.New(engineserver.Config{URL: "http://engine", Dial: dial})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				_, err = e.Run(t.Context(), spec, func(engine.Progress) {})
				took := time.Since(begun)
				var failure *engine.Error
				switch {
				case lives && (err != nil || took < quiet):
					t.Errorf("it ended after %v with %v", took, err)
				case !lives && (!errors.As(err, &failure) || !failure.Retryable || took > quiet+5*time.Minute):
					t.Errorf("it ended after %v with %v", took, err)
				}
			})
		})
	}
}

// answerQuietly sends a line every ten seconds. If lives is true, it sends a result at the end.
func answerQuietly(conn net.Conn, quiet time.Duration, lives bool) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
	for until := time.Now().Add(quiet); time.Now().Before(until); time.Sleep(10 * time.Second) {
		_, _ = io.WriteString(conn, `{"progress":0.4,"stage":"denoise"}`+"\n")
	}
	if lives {
		_, _ = io.WriteString(conn, wrote)
		return
	}
	_, _ = conn.Read(make([]byte, 1)) // until the caller disconnects
}

func TestHealthReportsUnhealthyServers(t *testing.T) {
	if err := newEngine(t, scripted(t, 503, "", closes), await.Max).Health(t.Context()); err == nil {
		t.Error("a server that reports that it is unhealthy is healthy")
	}
}

func TestLongHeaderIsRejected(t *testing.T) {
	for length, accepted := range map[int]bool{32 << 10: true, 128 << 10: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
				t.Errorf("the request accepts %s", encoding)
			}
			w.Header().Set("X-Padding", strings.Repeat("a", length))
		}))
		defer server.Close()
		if err := newEngine(t, server.URL, await.Max).Health(t.Context()); (err == nil) != accepted {
			t.Errorf("a header of %d bytes: %v", length, err)
		}
	}
}

func TestInvalidURLsAreRejected(t *testing.T) {
	for _, wrong := range []string{
		"", "preview", "127.0.0.1:8090", "https://127.0.0.1:8090", "ftp://a", "http://", "http://user:password@a",
		"http://a?b", ":",
	} {
		if _, err := engineserver.New(engineserver.Config{URL: wrong}); err == nil {
			t.Errorf("%q is accepted as the URL of a server", wrong)
		}
	}
}
