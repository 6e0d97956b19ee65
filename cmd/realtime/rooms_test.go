package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

type python struct{ lines chan map[string]any }

func enter(t *testing.T, arguments ...string) *python {
	t.Helper()
	root := filepath.Join("..", "..")
	program, err := filepath.Abs(filepath.Join(root, ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "cmd", "cutroom", "testdata", "livevideo", "room.py")
	command := exec.CommandContext(t.Context(), program, append([]string{script}, arguments...)...)
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &python{make(chan map[string]any, 1000)}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	return p
}

func (p *python) awaitReport(t *testing.T, what string) {
	t.Helper()
	for line := range p.lines {
		if line[what] != nil {
			return
		}
	}
	t.Fatalf("the client ended without reporting %q", what)
}

// at returns a room's URL at this instance.
func (i *instance) at(t *testing.T, address string) string {
	t.Helper()
	read, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	read.Host = i.address
	return read.String()
}

type roomInfo struct {
	Type  string `json:"type"`
	URL   string `json:"livekit_url"`
	Token string `json:"token"`
	Room  string `json:"room_name"`
}

func (i *instance) join(t *testing.T) (info roomInfo) {
	t.Helper()
	ctx := await.TestContext(t)
	control, err := dial(ctx, i, "")
	if err == nil {
		err = control.Write(ctx, websocket.MessageText, []byte(`{"type":"livekit_join"}`))
	}
	for err == nil && info.Type != "livekit_room_info" {
		var content []byte
		if _, content, err = control.Read(ctx); err == nil {
			err = json.Unmarshal(content, &info)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	newClient(control) // the client reads from now on
	t.Cleanup(func() { control.CloseNow() })
	return info
}

func ask(t *testing.T, method, address string) (int, string) {
	t.Helper()
	ctx := await.TestContext(t)
	request, err := http.NewRequestWithContext(ctx, method, strings.Replace(address, "ws://", "http://", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// A load balancer may send a room's connections to any instance, which forwards them to the room's
// own instance as long as that exists.
func TestEveryInstanceForwardsToARoom(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	f.settings = append(f.settings, "CUTROOM_RTC_ADDR=127.0.0.1:0", "CUTROOM_PEER_ADDR=127.0.0.1:0")
	owner, second, third := f.start(), f.start(), f.start()
	info := owner.join(t)

	client := enter(t, second.at(t, info.URL), info.Token)
	client.awaitReport(t, "published")
	client.awaitReport(t, "means") // the client receives its own camera's video
	status, body := ask(t, http.MethodPost, "http://"+third.address+"/watch-stream/"+info.Room)
	var watching roomInfo
	if err := json.Unmarshal([]byte(body), &watching); err != nil || status != http.StatusOK {
		t.Fatalf("a viewer got %d %s", status, body)
	}
	if !strings.HasPrefix(watching.URL, "ws://"+third.address+"/") {
		t.Errorf("the viewer is sent to %s, and asked %s", watching.URL, third.address)
	}
	viewer := enter(t, watching.URL, watching.Token, "watch")
	viewer.awaitReport(t, "means")

	// Unauthorized requests get the error of the room's instance, and unknown paths get 404.
	if status, body := ask(t, http.MethodGet, second.at(t, info.URL)+"/rtc/v1/validate?access_token=x"); status != 401 ||
		body != "The token is not valid." {
		t.Errorf("a wrong token got %d %s", status, body)
	}
	for _, name := range []string{info.Room + "x", "room_nobody_x", "room_x", "room__"} {
		if status, _ := ask(t, http.MethodPost, "http://"+second.address+"/watch-stream/"+name); status != 404 {
			t.Errorf("the room %s got %d", name, status)
		}
	}

	// An instance that stops closes the connections that it forwards, but the room continues.
	third.signal(t, os.Interrupt)
	await.Receive(t, "third.ended", third.ended)
	client.awaitReport(t, "means")
	owner.kill()
	// Check this immediately, because the lease may have expired by the time the client gives up.
	if status, body := ask(t, http.MethodGet,
		second.at(t, info.URL)+"/rtc/v1/validate?access_token="+info.Token); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "The room is currently unreachable. Try again.") {
		t.Errorf("the room of a stopped instance got %d %s", status, body)
	}
	client.awaitReport(t, "left")
	// Until the lease expires, the room might still exist at another instance.
	eventually(t, "the room is gone", func() bool {
		status, _ := ask(t, http.MethodPost, "http://"+second.address+"/watch-stream/"+info.Room)
		return status == http.StatusNotFound
	})
}

// A request is forwarded only once, and only to a valid address.
func TestInvalidInstanceRecordsAreNotFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.settings = append(f.settings, "CUTROOM_RTC_ADDR=127.0.0.1:0", "CUTROOM_PEER_ADDR=127.0.0.1:0")
	i := f.start()
	var passed atomic.Int64
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		if r.Host != i.address || r.Header.Get("x-api-key") != key {
			t.Errorf("the forwarded request is for %q, with the key %q", r.Host, r.Header.Get("x-api-key"))
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(peer.Close)
	gone, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		epoch, address string
		want           int
	}{
		{"other", strings.TrimPrefix(peer.URL, "http://"), http.StatusTeapot},
		{"loop", i.address, http.StatusNotFound},
		{"gone", gone, http.StatusServiceUnavailable},
		{"name", "localhost:" + strings.TrimPrefix(peer.URL, "http://127.0.0.1:"), http.StatusServiceUnavailable},
		{"url", peer.URL, http.StatusServiceUnavailable},
		{"alone", "", http.StatusNotFound},
	} {
		if err := f.sessions.Begin(t.Context(), c.epoch, c.address); err != nil {
			t.Fatal(err)
		}
		address := "http://" + i.address + "/watch-stream/room_" + c.epoch + "_1"
		if status, body := ask(t, http.MethodPost, address); status != c.want {
			t.Errorf("%s, at %q: %d %s, want %d", c.epoch, c.address, status, body, c.want)
		}
	}
	if n := passed.Load(); n != 1 {
		t.Errorf("%d requests reached the other instance, want 1", n)
	}
}
