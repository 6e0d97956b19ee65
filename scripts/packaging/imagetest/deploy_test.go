//go:build docker

package imagetest_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// beyondGateway exceeds API Gateway's limit of 10 MB.
const beyondGateway = 12 << 20

// The file is too large for API Gateway, so it is uploaded to the media service's container.
func TestMediaAcceptsLargeUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.media(t)
	// A clip's type is detected from its first bytes, so bytes after its last box do not matter.
	file := append(clip(t), bytes.Repeat([]byte{0, 0, 0, 8, 'f', 'r', 'e', 'e'}, beyondGateway/8)...)
	sum := md5.Sum(file)
	body, length, contentType := servertest.Form{servertest.File("file", "large.mp4", file)}.Encode()
	answer, err := client.Call(t.Context(), http.MethodPost, "/v1/files", body, length, "Content-Type", contentType)
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		ID   string `json:"id"`
		MD5  string `json:"md5"`
		Size int64  `json:"size_bytes"`
	}
	if err := json.Unmarshal(answer.Body, &stored); err != nil || answer.Status != http.StatusOK ||
		stored.Size != int64(len(file)) || stored.MD5 != hex.EncodeToString(sum[:]) {
		t.Fatalf("%d %s, %v", answer.Status, answer.Body, err)
	}
	content, err := client.Get(t.Context(), "/v1/uploads/"+stored.ID)
	if err != nil || !bytes.Equal(content.Body, file) {
		t.Errorf("the content has %d bytes, want %d, %v", len(content.Body), len(file), err)
	}
	verified, err := client.Get(t.Context(), "/v1/uploads/"+stored.ID+"/credentials")
	if err != nil || verified.Status != http.StatusOK {
		t.Errorf("the image does not verify files: %d %s, %v", verified.Status, verified.Body, err)
	}
}

// A job completes even if its worker is stopped or killed.
func TestWorkerContainersSurviveKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.media(t)
	jobs := dynamo.NewRuns(dynamo.NewClient(w.cloud.Config()), w.tables["jobs"])

	leaving := w.start(t, "worker")
	leaving.ready(8080)
	id := submit(t, client, "an oil painting")
	processing(t, client, id)
	if code := leaving.stop(time.Minute); code != 0 {
		t.Errorf("after a stop signal the worker exited with %d", code)
	}
	if runs := runsOf(t, jobs, id); runs != 0 {
		t.Errorf("the returned job has %d runs", runs)
	}

	dying := w.start(t, "worker")
	processing(t, client, id)
	eventually(t, "the run has started", func() bool { return runsOf(t, jobs, id) == 1 })
	dying.kill()
	next := w.start(t, "worker")
	completed(t, client, id)
	if runs := runsOf(t, jobs, id); runs != 2 {
		t.Errorf("after a worker was killed the job has %d runs, want 2", runs)
	}
	next.seenHealthy()
}

func runsOf(t *testing.T, runs *dynamo.Runs, id string) int {
	t.Helper()
	got, err := runs.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got.Runs
}

// The container edits a session's frames, and also has the libraries for live video. On a stop
// signal it notifies its clients and exits cleanly.
func TestRealtimeContainerEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.start(t, "realtime", "CUTROOM_RTC_ADDR=:8082", "CUTROOM_RTC_PUBLIC=203.0.113.7")
	url := c.ready(8080)
	ctx := await.TestContext(t)
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http")+"/v1/stream?model=gen-2.5&api_key="+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	var frame bytes.Buffer
	if err := jpeg.Encode(&frame, image.NewGray(image.Rect(0, 0, 64, 32)), nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(ctx, websocket.MessageBinary, frame.Bytes()); err != nil {
		t.Fatal(err)
	}
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.MessageBinary {
			if got, err := jpeg.Decode(bytes.NewReader(message)); err != nil || got.Bounds().Dx() == 0 {
				t.Errorf("the frame is not a picture: %v", err)
			}
			break
		}
	}
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"livekit_join"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("no room: %v", err)
		}
		if bytes.Contains(message, []byte(`"livekit_room_info"`)) {
			break
		}
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				ended <- err
				return
			}
		}
	}()
	if code := c.stop(time.Minute); code != 0 {
		t.Errorf("after a stop signal it exited with %d", code)
	}
	if err := await.Receive(t, "ended", ended); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the session ended with %v", err)
	}
}
