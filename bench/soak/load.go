package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cutroom/shared/testkit/servertest"
)

type inputs struct {
	video, picture []byte
}

func newInputs(ctx context.Context, folder string) (inputs, error) {
	path := filepath.Join(folder, "input.mp4")
	made := exec.CommandContext(ctx, "ffmpeg", "-v", "error", "-f", "lavfi", "-i",
		"testsrc=size=160x90:rate=10:duration=1",
		"-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", path)
	if said, err := made.CombinedOutput(); err != nil {
		return inputs{}, fmt.Errorf("make a video: %w\n%s", err, said)
	}
	video, err := os.ReadFile(path)
	if err != nil {
		return inputs{}, err
	}
	canvas := image.NewRGBA(image.Rect(0, 0, 160, 96))
	for y := range 96 {
		for x := range 160 {
			canvas.Set(x, y, color.RGBA{uint8(x), uint8(2 * y), uint8(x + y), 255})
		}
	}
	var picture bytes.Buffer
	err = jpeg.Encode(&picture, canvas, nil)
	return inputs{video, picture.Bytes()}, err
}

type load struct {
	server *servertest.Server
	inputs inputs
	ledger *ledger
	reads  *readTimes
	// files is the number of file records that exist before the load starts.
	files int

	mu sync.Mutex
	// next is the cursor of the next page of these files, or "" for the first page.
	next string
}

type actor func(l *load, ctx context.Context, random *rand.Rand)

// actors run concurrently. pause is an actor's maximum pause between two turns.
var actors = []struct {
	act   actor
	pause time.Duration
}{
	{(*load).editVideo, 4 * time.Second},
	{(*load).editPicture, time.Second},
	{(*load).editPicture, time.Second},
	{(*load).upload, 300 * time.Millisecond},
	{(*load).upload, 300 * time.Millisecond},
	{(*load).chat, 200 * time.Millisecond},
	{(*load).chat, 200 * time.Millisecond},
	{(*load).session, time.Second},
	{(*load).session, time.Second},
	{(*load).batch, 2 * time.Second},
	{(*load).read, 50 * time.Millisecond},
	{(*load).read, 50 * time.Millisecond},
	{(*load).harm, 200 * time.Millisecond},
	{(*load).harm, 200 * time.Millisecond},
}

// run lets all actors act for a while, and waits until their last turns have ended.
func (l *load) run(ctx context.Context, length time.Duration, seed uint64) {
	ends := time.Now().Add(length)
	var running sync.WaitGroup
	for i, a := range actors {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil && time.Now().Before(ends) {
				turn, cancel := context.WithTimeout(ctx, 2*time.Minute)
				a.act(l, turn, random)
				cancel()
				time.Sleep(time.Duration(random.Int64N(int64(a.pause))))
			}
		})
	}
	running.Wait()
}

var prompts = []string{"a watercolor painting", "film noir", "winter", "pixel art", "a pencil sketch"}

// editVideo submits a job and follows its events until the job ends. Sometimes it disconnects earlier.
func (l *load) editVideo(ctx context.Context, random *rand.Rand) {
	l.edit(ctx, random, "gen-2.5", servertest.File("data", "a.mp4", l.inputs.video))
}

func (l *load) editPicture(ctx context.Context, random *rand.Rand) {
	l.edit(ctx, random, "gen-image-2", servertest.File("data", "a.jpg", l.inputs.picture))
}

func (l *load) edit(ctx context.Context, random *rand.Rand, model string, input servertest.Part) {
	client := l.server.Client()
	job, err := client.Submit(ctx, model, servertest.Form{input,
		servertest.Text("prompt", prompts[random.IntN(len(prompts))])})
	var rejection *servertest.StatusError
	switch {
	case errors.As(err, &rejection) && rejection.Status == http.StatusTooManyRequests:
		// A slow machine rejects jobs that it could not complete in time.
		l.ledger.did("jobs rejected because the queue was full")
		return
	case err != nil:
		l.ledger.wrong("a job was not accepted: %v", err)
		return
	}
	l.ledger.accepted(job.ID, false)
	l.ledger.did("jobs of " + model)
	if random.IntN(4) == 0 {
		left, leave := context.WithTimeout(ctx, time.Duration(random.IntN(300))*time.Millisecond)
		defer leave()
		ctx = left
		l.ledger.did("event streams that the client abandoned")
	}
	answer, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/events")
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil || answer.Status != 200:
		l.ledger.wrong("events: status %d, %v", answer.Status, err)
	case !bytes.Contains(answer.Body, []byte(`"completed"`)):
		l.ledger.wrong("the events end before the job does")
	default:
		l.ledger.did("streams of events that were followed")
	}
}

func (l *load) upload(ctx context.Context, random *rand.Rand) {
	client := l.server.Client()
	content := make([]byte, 1+random.IntN(512<<10))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	body, length, contentType := servertest.Form{servertest.File("file", "a.bin", content)}.Encode()
	answer, err := client.Call(ctx, "POST", "/v1/files", body, length, "Content-Type", contentType)
	if err != nil || answer.Status/100 != 2 {
		l.ledger.wrong("an upload: status %d, %v %s", answer.Status, err, answer.Body)
		return
	}
	id := idIn(answer.Body)
	l.ledger.did("files")
	if read, err := client.Get(ctx, "/v1/uploads/"+id); err != nil || !bytes.Equal(read.Body, content) {
		l.ledger.wrong("a file is not what was stored: status %d, %v", read.Status, err)
	}
	if random.IntN(10) > 0 {
		if gone, err := client.Call(ctx, "DELETE", "/v1/files/"+id, nil, 0); err != nil || gone.Status/100 != 2 {
			l.ledger.wrong("a deletion: status %d, %v", gone.Status, err)
		}
		return
	}
	l.ledger.stays(id, content)
}

func idIn(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"file_`)
	id, _, _ := strings.Cut(rest, `"`)
	return "file_" + id
}

// chat requests a completion, streamed or not. Sometimes it disconnects early.
func (l *load) chat(ctx context.Context, random *rand.Rand) {
	stream := random.IntN(2) == 0
	body := fmt.Sprintf(`{"model": "cutroom-echo", "stream": %t, "messages": [{"role": "user", "content": "%s"}]}`, stream,
		strings.Repeat("Hello! ", 1+random.IntN(200)))
	leaves := random.IntN(5) == 0
	if leaves {
		left, leave := context.WithTimeout(ctx, time.Duration(random.IntN(30))*time.Millisecond)
		defer leave()
		ctx = left
	}
	client := &servertest.Client{URL: l.server.InferenceURL()}
	answer, err := client.Call(ctx, "POST", "/v1/chat/completions", strings.NewReader(body), int64(len(body)),
		"Authorization", "Bearer "+servertest.Key)
	switch {
	case leaves && ctx.Err() != nil:
		l.ledger.did("completions that the client left")
	case err != nil || answer.Status != 200 || stream && !bytes.HasSuffix(answer.Body, []byte("data: [DONE]\n\n")):
		l.ledger.wrong("a completion: status %d, %v", answer.Status, err)
	default:
		l.ledger.did("completions")
	}
}
