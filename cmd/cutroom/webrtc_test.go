package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/servertest"
)

// The clients are LiveKit's own libraries for Python and for browsers.
func TestLiveVideoWorksWithLiveKitClients(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_RTC_ADDR=127.0.0.1:0")
	t.Run("python", func(t *testing.T) { testPythonRoom(t, server) })
	t.Run("browser", func(t *testing.T) { testBrowserRoom(t, server) })
}

func TestDisabledLiveVideoIsReported(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	server := start(t, t.TempDir(), "CUTROOM_RTC_ADDR=off")
	control := openControl(ctx, t, server, "gen-latest", servertest.Key)
	expect(t, ctx, control, `"session_started"`)
	say(ctx, t, control, `{"type":"livekit_join","passthrough":true}`)
	expect(t, ctx, control, `{"type":"error","error":"LiveKit transport not allowed on this server"}`)
	answer, err := http.Get(server.URL() + "/v1/rooms/room_1/rtc/validate")
	if err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("the request for a room returned %v, %v", answer, err)
	}
}

func say(ctx context.Context, t *testing.T, control *controlConn, text string) {
	t.Helper()
	if err := control.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

type pythonRoom struct {
	*testing.T
	lines   chan map[string]any
	reports []map[string]any
}

func joinByPython(ctx context.Context, t *testing.T, arguments ...string) *pythonRoom {
	t.Helper()
	python, err := filepath.Abs(filepath.Join("..", "..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, python, append([]string{filepath.Join("testdata", "livevideo", "room.py")},
		arguments...)...)
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r := &pythonRoom{T: t, lines: make(chan map[string]any, 1000)}
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				r.lines <- line
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	return r
}

func (r *pythonRoom) await(what string, condition func(line map[string]any) bool) map[string]any {
	r.Helper()
	for line := range r.lines {
		r.reports = append(r.reports, line)
		if condition(line) {
			return line
		}
	}
	r.Fatalf("the client ended before %s; its last report is %v", what, r.reports[max(0, len(r.reports)-12):])
	return nil
}

// chroma returns how colorful the reported picture is, or -1 if the line does not report a picture.
func chroma(line map[string]any) float64 {
	means, ok := line["means"].([]any)
	if !ok {
		return -1
	}
	return max(means[1].(float64)-128, 128-means[1].(float64), means[2].(float64)-128, 128-means[2].(float64))
}

func isRed(line map[string]any) bool   { return chroma(line) > 40 }
func isFaded(line map[string]any) bool { return chroma(line) >= 0 && chroma(line) < 8 }

// testPythonRoom edits a red camera picture while another client watches.
func testPythonRoom(t *testing.T, server *servertest.Server) {
	ctx := steps(t)
	control := openControl(ctx, t, server, "gen-latest", servertest.Key)
	expect(t, ctx, control, `"session_started"`)
	say(ctx, t, control, `{"type":"livekit_join"}`)
	// The acknowledgment does not wait for media.
	say(ctx, t, control, `{"type":"set_image","image_data":null,"prompt":null}`)
	var info struct {
		URL   string `json:"livekit_url"`
		Token string `json:"token"`
		Room  string `json:"room_name"`
	}
	if err := json.Unmarshal(expect(t, ctx, control, `"livekit_room_info"`), &info); err != nil {
		t.Fatal(err)
	}
	expect(t, ctx, control, `{"type":"set_image_ack","success":true,`)
	client := joinByPython(ctx, t, info.URL, info.Token)
	red, heard := false, false
	client.await("it saw its camera and heard itself", func(line map[string]any) bool {
		red, heard = red || isRed(line), heard || line["heard"] == true
		return red && heard
	})
	expect(t, ctx, control, `"generation_started"`)
	say(ctx, t, control, `{"type":"prompt","prompt":"film noir"}`)
	expect(t, ctx, control, `{"type":"prompt_ack","prompt":"film noir","success":true,`)
	client.await("it saw itself without color", isFaded)

	watched := post(t, server.Client(), "/watch-stream/"+info.Room, "application/json", nil)
	viewer := joinByPython(ctx, t, watched["livekit_url"].(string), watched["token"].(string), "watch")
	viewer.await("it saw the other", isFaded)

	if err := control.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	for _, one := range []*pythonRoom{client, viewer} {
		one.await("it left on request", func(line map[string]any) bool { return line["left"] != nil })
	}
	eventually(t, "the slot is free", func() bool {
		answer, err := server.Client().Get(ctx, "/v1/realtime/quota")
		return err == nil && strings.Contains(string(answer.Body), `"active":0`)
	})
}

// testBrowserRoom edits a canvas, loses its signaling connection, and watches its own room.
func testBrowserRoom(t *testing.T, server *servertest.Server) {
	library, err := os.ReadFile(filepath.Join("..", "..", ".tools", "livevideo", "node_modules", "livekit-client", "dist",
		"livekit-client.umd.js"))
	if err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	site := http.NewServeMux()
	site.HandleFunc("/livekit-client.umd.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(library)
	})
	site.Handle("/", http.FileServer(http.Dir(filepath.Join("testdata", "livevideo"))))
	pages := httptest.NewServer(site)
	defer pages.Close()

	page := openTab(t, "--autoplay-policy=no-user-gesture-required")
	page.open(pages.URL + "/page.html")
	name := eval[string](page, fmt.Sprintf(`join(%q, "model=gen-latest&api_key=%s", {passthrough: true})`,
		socketURL(server), servertest.Key))
	page.await("the camera comes back", `color() === "red"`)
	page.do(`control.send(JSON.stringify({type: "prompt", prompt: "film noir"}))`)
	page.await("the prompt shows", `color() === "gray"`)
	page.await("the server says so", `seen.messages.some(m => m.type === "generation_started") &&
		seen.messages.some(m => m.type === "prompt_ack" && m.success)`)

	page.do(`room.simulateScenario("signal-reconnect"); undefined`)
	page.await("it resumes", `seen.states.at(-1) === "connected" && seen.states.length > 2`)
	page.do(`control.send(JSON.stringify({type: "prompt", prompt: ""}))`)
	page.await("the camera is edited on", `color() === "red"`)

	if sent := eval[map[string]float64](page, "layers()"); sent["h"] == 0 || sent["q"] > sent["h"]/2 {
		t.Errorf("of a camera in two sizes the frames %v were sent, want only the larger", sent)
	}
	page.do("turn(360, 640)")
	page.await("pictures are upright as the camera is", "edited.videoWidth === 360 && edited.videoHeight === 640")
	page.do("turn(320, 180)")
	page.await("pictures are wide again", "edited.videoWidth === 640 && edited.videoHeight === 360")
	killHelpers(t, server.PID())
	page.do(`control.send(JSON.stringify({type: "prompt", prompt: "film noir"}))`)
	page.await("another helper goes on", `color() === "gray"`)
	page.do(`control.send(JSON.stringify({type: "prompt", prompt: ""}))`)
	page.await("the camera comes back", `color() === "red"`)

	rejected := eval[map[string]any](page, fmt.Sprintf(`watch(%q, %q, "ck_wrong_key_1")`, server.URL(), name))
	if rejected["status"] != 401.0 {
		t.Errorf("a viewer without a key: %v", rejected)
	}
	if watched := eval[map[string]any](page, fmt.Sprintf(`watch(%q, %q, %q)`, server.URL(), name,
		servertest.Key)); watched["status"] != 200.0 {
		t.Fatalf("a viewer: %v", watched)
	}
	page.await("the viewer sees it", `color() === "red"`)
	page.do(`seen.left = null; control.close()`)
	page.await("everyone left on request", `seen.left !== null && room.state === "disconnected" &&
		viewer.state === "disconnected"`)

	joins := func(server *servertest.Server) {
		t.Helper()
		page.do(`edited.srcObject = null; seen.closed = 0`)
		eval[string](page, fmt.Sprintf(`join(%q, "model=gen-latest&api_key=%s", {passthrough: true})`,
			socketURL(server), servertest.Key))
		page.await("the camera comes back", `color() === "red"`)
	}
	joins(server)
	server.Kill()
	page.await("the page hears of it", `seen.closed !== 0`)
	page.do("room.disconnect(); undefined")
	joins(start(t, t.TempDir(), "CUTROOM_RTC_ADDR=127.0.0.1:0"))
}

func killHelpers(t *testing.T, server int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
	if err != nil {
		t.Fatal(err)
	}
	// Find all helpers before killing any, because the server replaces a killed one immediately.
	var helpers []int
	for _, task := range tasks {
		pids, _ := os.ReadFile(task) // the thread may have ended
		for _, text := range strings.Fields(string(pids)) {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			helpers = append(helpers, pid)
		}
	}
	killed := 0
	for _, pid := range helpers {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Error("the server has no helper")
	}
}
