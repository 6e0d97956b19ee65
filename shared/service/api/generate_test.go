package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

type script func(ctx context.Context, spec engine.Spec) error

func (s script) Run(
	ctx context.Context, spec engine.Spec, _ func(engine.Progress),
) (engine.Outcome, error) {
	return scripted(), s(ctx, spec)
}

func scripted() engine.Outcome {
	return engine.Outcome{Engine: "script", Understood: []string{"winter"}, Notice: "“Übermut” was not followed: 100 % true."}
}

// blind treats every file as an image or as a one-second video.
type blind struct{}

func (blind) ProbeVideo(context.Context, string, string) (media.Info, error) {
	return media.Info{Width: 40, Height: 30, Duration: time.Second}, nil
}

func (b blind) ReadVideo(ctx context.Context, folder, path, mime string) (engine.Input, error) {
	return b.ReadImage(ctx, folder, path, mime)
}

func (b blind) ReadImage(ctx context.Context, _, path, mime string) (engine.Input, error) {
	info, err := b.ProbeVideo(ctx, path, mime)
	return engine.Input{Path: path, MIME: mime, Info: info}, err
}

func (w *world) work(e engine.Engine, prober worker.Prober) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	worker := worker.New(worker.Config{
		Queue: w.queue, Runs: w.records, Blobs: w.blobs, Engine: e, Catalog: w.catalog, Folder: w.t.TempDir(),
		Slots: map[job.Lane]int{job.VideoLane: 1, job.ImageLane: 1}, Now: w.now, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Tools:  worker.Tools{Prober: prober},
		Pace: worker.Pace{
			Lease: time.Minute, ProgressEvery: 20 * time.Millisecond, CheckEvery: 20 * time.Millisecond,
		},
	})
	go func() {
		defer close(done)
		worker.Run(ctx)
	}()
	w.t.Cleanup(func() {
		stop()
		await.Receive(w.t, "done", done)
	})
}

func (w *world) generate(model, key string, parts ...part) answer {
	w.t.Helper()
	body, contentType := multiform(parts...)
	return w.request(http.MethodPost, "/v1/generate/"+model, key, strings.NewReader(body), "Content-Type: "+contentType)
}

func TestImagesBecomeUprightPNGs(t *testing.T) {
	w := newWorld(t, setup{})
	tools, err := ffmpeg.Find(t.Context(), w.catalog.Limits)
	if err != nil {
		t.Fatal(err)
	}
	w.work(preview.New(tools), tools)
	const halves = "drawbox=h=ih/2:color=white:t=fill"
	type side string
	const top, bottom, right side = "top", "bottom", "right"
	for _, c := range []struct {
		says   string
		image  mediatest.Image
		size   string
		bright side
	}{
		{"PNG of 16 bits", mediatest.Image{Name: "a.png", PixelFormat: "rgb48be"}, "1252x704", top},
		{"JPEG on its side", mediatest.Image{Name: "a.jpg", Orientation: 6}, "704x1252", right},
		{"GIF", mediatest.Image{Name: "a.gif"}, "1252x704", top},
	} {
		t.Run(c.says, func(t *testing.T) {
			c.image.Source = "color=black"
			c.image.Filter = strings.TrimSuffix(halves+","+c.image.Filter, ",")
			a := w.generate("gen-image-latest", studio, upload("data", content(t, c.image.Make(t))), text("prompt", "warm"),
				text("seed", "1"))
			if a.status != 200 || a.header.Get("Content-Type") != "image/png" ||
				a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
				t.Fatalf("%d %.200s %v", a.status, a.body, a.header)
			}
			picture, err := png.Decode(strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			box := picture.Bounds()
			if size := fmt.Sprintf("%dx%d", box.Dx(), box.Dy()); size != c.size {
				t.Errorf("the size is %s, want %s", size, c.size)
			}
			left, above, middle, centre := box.Dx()/4, box.Dy()/4, box.Dx()/2, box.Dy()/2
			for side, at := range map[side]image.Point{
				top: {middle, above}, bottom: {middle, box.Dy() - above}, right: {box.Dx() - left, centre}, "left": {left, centre},
			} {
				opposite := image.Pt(box.Dx()-at.X, box.Dy()-at.Y)
				if brighter := luminance(picture, at) > luminance(picture, opposite)+100; brighter != (side == c.bright) {
					t.Errorf("%s: luminance %d, opposite %d; the bright side must be %s", side, luminance(picture, at),
						luminance(picture, opposite), c.bright)
				}
			}
		})
	}
}

func luminance(picture image.Image, at image.Point) int {
	r, g, b, _ := picture.At(at.X, at.Y).RGBA()
	return int(299*r+587*g+114*b) / 1000 >> 8
}

func TestImageEditIsJob(t *testing.T) {
	w := newWorld(t, setup{})
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		return os.WriteFile(spec.Output, []byte("an edit of "+spec.Prompt), 0o600)
	}), blind{})
	a := w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"), text("seed", "7"))
	id := a.header.Get("X-Job-Id")
	if a.status != 200 || a.body != "an edit of x" || a.header.Get("Content-Type") != "image/png" ||
		a.header.Get("Content-Disposition") != `inline; filename="upload-x.png"` ||
		a.header.Get("ETag") == "" || a.header.Get("Deprecation") != "" || a.header.Get("Link") != "" {
		t.Fatalf("%d %s %v", a.status, a.body, a.header)
	}
	for name, want := range map[string]string{
		"X-Changed": "true", "X-Engine": "script", "X-Understood": "winter",
		"X-Notice": "%E2%80%9C%C3%9Cbermut%E2%80%9D was not followed: 100 %25 true.",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	shown := w.get("/v1/jobs/"+id, studio).body
	if !strings.Contains(shown, `"engine":"script","understood":["winter"],"notice":"“Übermut” was not`) {
		t.Errorf("the job is shown as %s", shown)
	}
	j := w.record(id)
	if j.Status != job.Completed || j.Account != "studio" || j.Model != "gen-image-2" || j.Lane != job.ImageLane ||
		j.Seed != 7 {
		t.Errorf("the record is %+v", j)
	}
	again := w.get("/v1/jobs/"+id+"/content", studio)
	if again.body != a.body || again.header.Get("ETag") != a.header.Get("ETag") {
		t.Errorf("the content is %s %v", again.body, again.header)
	}
}

func TestSynchronousCallReportsFailure(t *testing.T) {
	w := newWorld(t, setup{})
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		switch spec.Prompt {
		case "broken":
			return engine.InvalidInput(nil, "The image cannot be decoded.")
		case "engine":
			return &engine.Error{Code: job.EngineError, Message: "The engine ran out of memory.", Err: errors.New("secret")}
		}
		return os.WriteFile(spec.Output, []byte("x"), 0o600)
	}), blind{})
	data, reference := upload("data", picture(t)), upload("reference_image", picture(t))
	for _, c := range []struct {
		says   string
		parts  []part
		status int
		body   string
	}{
		{"an image that cannot be decoded", []part{data, text("prompt", "broken")}, 422,
			`{"detail":[{"loc":["body","data"],"msg":"Value error, The image cannot be decoded.","type":"value_error",` +
				`"input":null,"ctx":{}}]}`},
		{"one of two", []part{data, reference, text("prompt", "broken")}, 422,
			`{"detail":[{"loc":["body"],"msg":"Value error, The image cannot be decoded.","type":"value_error","input":null,` +
				`"ctx":{}}]}`},
		{"the engine fails", []part{data, text("prompt", "engine")}, 502, `{"detail":"The engine ran out of memory."}`},
		{"the form is wrong", []part{data}, 422,
			`{"detail":[{"loc":["body","prompt"],"msg":"Field required","type":"missing","input":null,"ctx":{}}]}`},
	} {
		if a := w.generate("gen-image-2", studio, c.parts...); a.status != c.status || a.body != c.body {
			t.Errorf("%s: %d %s", c.says, a.status, a.body)
		}
	}
	for name, detail := range map[string]string{
		"gen-2.5":         "The model gen-2.5 is not served here. Submit a job to /v1/jobs/gen-2.5.",
		"gen-latest":      "The model gen-2.5 is not served here. Submit a job to /v1/jobs/gen-latest.",
		"gen-vton-latest": "The model gen-vton-3.6 is not served here. Submit a job to /v1/jobs/gen-vton-latest.",
		"gen-restyle-2":   "The model gen-restyle-2 is not served here. Submit a job to /v1/jobs/gen-restyle-2.",
		"gen-9":           `The model "gen-9" does not exist.`,
	} {
		if a := w.generate(name, studio); a.status != 404 || a.detail() != detail {
			t.Errorf("%s: %d %s, want %q", name, a.status, a.body, detail)
		}
	}
}

// stuck is an engine whose video runs, and optionally image runs, last until the test ends.
type stuck struct {
	images           bool
	started, stopped chan string
}

func newStuck(images bool) *stuck {
	return &stuck{images, make(chan string, 10), make(chan string, 10)}
}

func (s *stuck) Run(
	ctx context.Context, spec engine.Spec, _ func(engine.Progress),
) (engine.Outcome, error) {
	if spec.Kind == catalog.Image && !s.images {
		return scripted(), os.WriteFile(spec.Output, []byte("x"), 0o600)
	}
	s.started <- spec.Job
	<-ctx.Done()
	s.stopped <- spec.Job
	return scripted(), ctx.Err()
}

func TestNoVideoDelaysAnImage(t *testing.T) {
	w := newWorld(t, setup{})
	slow := newStuck(false)
	w.work(slow, blind{})
	for range 3 {
		w.submit(studio)
	}
	await.Receive(t, "slow.started", slow.started) // the job occupies the only video slot
	if a := w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestDisconnectCancelsJob(t *testing.T) {
	for _, name := range []string{"gen-image-2", "gen-pro-t2v"} {
		w := newWorld(t, setup{})
		slow := newStuck(true)
		w.work(slow, blind{})
		call := func() (hangUp func()) {
			body, contentType := multiform(upload("data", picture(t)), text("prompt", "x"))
			ctx, cancel := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/generate/"+name, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("x-api-key", studio)
			request.Header.Set("Content-Type", contentType)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := http.DefaultTransport.RoundTrip(request); err == nil {
					t.Error("got a response")
				}
			}()
			return func() {
				cancel()
				<-done
			}
		}
		backlog := func(n int) {
			eventually(t, fmt.Sprintf("%d jobs wait or run", n), func() bool {
				backlog, err := w.records.Backlog(t.Context(), job.LaneOf(w.model(name).Kind), "studio")
				if err != nil {
					t.Fatal(err)
				}
				return backlog.AccountJobs == n
			})
		}
		first := call()
		id := await.Receive(t, "slow.started", slow.started)
		second := call()
		backlog(2)
		second() // disconnects while its job is pending
		backlog(1)
		first() // disconnects while its job is processing
		if stopped := await.Receive(t, "slow.stopped", slow.stopped); stopped != id {
			t.Errorf("%s: the engine stopped %s", name, stopped)
		}
		backlog(0)
		if j := w.record(id); j.Status != job.Failed || j.Failure.Code != job.Cancelled {
			t.Errorf("%s: the job is %s, %+v", name, j.Status, j.Failure)
		}
	}
}

func (w *world) model(name string) *catalog.Model {
	w.t.Helper()
	m, ok := w.catalog.Find(name)
	if !ok {
		w.t.Fatalf("no model %s", name)
	}
	return m
}

// crowded has forty waiting jobs of one account in each queue. Each job takes two seconds.
type crowded struct{ job.Store }

func (crowded) Backlog(context.Context, job.Lane, string) (job.Backlog, error) {
	return job.Backlog{Jobs: 40, AccountJobs: 40, AccountOpen: 40, RunTime: 2 * time.Second}, nil
}

// If submitted as a job, the image may wait for ten minutes.
func TestImageBehindLongQueueIsRejected(t *testing.T) {
	w := newWorld(t, setup{imageWait: time.Minute, workers: 1, pending: 100,
		store: func(s job.Store) job.Store { return crowded{s} }})
	form := []part{upload("data", picture(t)), text("prompt", "x")}
	if a := w.generate("gen-image-2", studio, form...); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.accepted(w.post("gen-image-2", studio, form...))
}

// filling is idle on the first call and crowded afterwards.
type filling struct {
	crowded
	asked *atomic.Int32
}

func (f filling) Backlog(ctx context.Context, lane job.Lane, account string) (job.Backlog, error) {
	if f.asked.Add(1) == 1 {
		return job.Backlog{RunTime: 2 * time.Second}, nil
	}
	return f.crowded.Backlog(ctx, lane, account)
}

// The queue may grow while an image's bytes arrive, for example because a client sends many images.
func TestImageIsRejectedIfQueueGrows(t *testing.T) {
	w := newWorld(t, setup{imageWait: time.Minute, workers: 1, pending: 100,
		store: func(s job.Store) job.Store { return filling{crowded{s}, new(atomic.Int32)} }})
	a := w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"))
	if a.status != 429 || a.header.Get("Retry-After") != "2" || a.header.Get("X-Job-Id") != "" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	if left := w.files(); len(left) > 0 {
		t.Errorf("%v remains", left)
	}
}

func TestLateImageIsCancelled(t *testing.T) {
	slow := newStuck(true)
	w := newWorld(t, setup{imageWait: 5 * time.Second, afterWait: func(wait time.Duration, over func()) func() bool {
		if wait != 5*time.Second {
			t.Errorf("the caller waits for %s", wait)
		}
		go func() {
			<-slow.started // however long the start takes
			over()
		}()
		return func() bool { return false }
	}})
	w.work(slow, blind{})
	a := w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"))
	if a.status != 504 || a.detail() != "The image was not edited within 5 seconds." {
		t.Errorf("%d %s", a.status, a.body)
	}
	id := await.Receive(t, "slow.stopped", slow.stopped)
	if j := w.record(id); j.Status != job.Failed || j.Failure.Code != job.TimedOut || a.header.Get("X-Job-Id") != id {
		t.Errorf("the job is %s, %+v; the response's header is %v", j.Status, j.Failure, a.header)
	}
}

// See docs/contract/jobs.md#synchronous-calls.
func TestDeprecatedRoutesReturnVideo(t *testing.T) {
	w := newWorld(t, setup{})
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		return os.WriteFile(spec.Output, []byte("a video of "+spec.Model), 0o600)
	}), blind{})
	video := upload("data", clip(t))
	for _, name := range []string{"gen-clip", "gen-clip-latest", "gen-pro-v2v", "gen-pro-t2v"} {
		a := w.generate(name, studio, video, text("prompt", "x"))
		if a.status != 200 || a.header.Get("Content-Type") != "video/mp4" || a.body != "a video of "+w.model(name).ID ||
			a.header.Get("Deprecation") != "true" ||
			a.header.Get("Link") != fmt.Sprintf(`<../../v1/jobs/%s>; rel="successor-version"`, name) {
			t.Errorf("%s: %d %s %v", name, a.status, a.body, a.header)
		}
	}
	a := w.request(http.MethodPost, "/v1/generate/gen-pro-t2v", studio, strings.NewReader("prompt=x"),
		"Content-Type: application/x-www-form-urlencoded")
	if a.status != 200 || a.body != "a video of gen-pro-t2v" {
		t.Errorf("urlencoded: %d %s", a.status, a.body)
	}
}

func TestJobOutlivesDeprecatedCall(t *testing.T) {
	w := newWorld(t, setup{videoWait: 50 * time.Millisecond})
	finish := make(chan struct{})
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		<-finish
		return os.WriteFile(spec.Output, []byte("x"), 0o600)
	}), blind{})
	a := w.generate("gen-pro-t2v", studio, text("prompt", "x"))
	id := a.header.Get("X-Job-Id")
	links := strings.Join(a.header.Values("Link"), ", ")
	if a.status != 504 || links != `<../../v1/jobs/gen-pro-t2v>; rel="successor-version", <../../v1/jobs/`+id+
		`>; rel="status"` || a.detail() == "" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	close(finish)
	eventually(t, "the job is completed", func() bool { return w.record(id).Status == job.Completed })
}

func TestShutdownEndsTheWait(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	w := newWorld(t, setup{stopping: stopping})
	slow := newStuck(true)
	w.work(slow, blind{})
	answers := make(chan answer)
	go func() {
		answers <- w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"))
	}()
	await.Receive(t, "slow.started", slow.started)
	stop()
	if a := await.Receive(t, "answers", answers); a.status != 503 || a.detail() != "The service is stopping." {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestDeadlineEndsTheWait(t *testing.T) {
	w := newWorld(t, setup{}) // no worker runs
	answers := make(chan answer)
	go func() { answers <- w.generate("gen-pro-t2v", studio, text("prompt", "x")) }()
	eventually(t, "the job is accepted", func() bool {
		backlog, err := w.records.Backlog(t.Context(), job.VideoLane, "studio")
		return err == nil && backlog.AccountJobs == 1
	})
	w.later.Store(int64(job.MaxAge))
	if a := await.Receive(t, "answers", answers); a.status != 504 || a.detail() != job.TimeoutFailure().Message {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestLargeResultArrivesComplete(t *testing.T) {
	w := newWorld(t, setup{})
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	w.work(script(func(_ context.Context, spec engine.Spec) error { return os.WriteFile(spec.Output, large, 0o600) }),
		blind{})
	if a := w.generate("gen-pro-t2v", studio, text("prompt", "x")); a.status != 200 || a.body != string(large) {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
}
