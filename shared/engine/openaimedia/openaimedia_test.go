package openaimedia_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/openaimedia"
)

var tools = sync.OnceValues(func() (*ffmpeg.Tools, error) {
	return ffmpeg.Find(
		context.Background(),
		catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000},
	)
})

type call struct {
	what   string
	fields map[string]string
	files  map[string][]string
}

type upstream struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string][]answer
	calls   []call
}

type answer struct {
	status int
	body   string
}

func says(body string) answer { return answer{http.StatusOK, body} }

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got := call{what: r.Method + " " + r.URL.Path, fields: map[string]string{}, files: map[string][]string{}}
	if key := r.Header.Get("Authorization"); key != "Bearer secret" {
		u.t.Errorf("%s has the key %q", got.what, key)
	}
	if kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		body, _ := io.ReadAll(r.Body)
		got.fields["json"] = string(body)
	} else if err == nil {
		form := multipart.NewReader(r.Body, params["boundary"])
		for {
			part, err := form.NextPart()
			if err != nil {
				break
			}
			content, _ := io.ReadAll(part)
			if part.FileName() == "" {
				got.fields[part.FormName()] = string(content)
				continue
			}
			got.files[part.FormName()] = append(
				got.files[part.FormName()], fmt.Sprintf("%s %s %d", part.FileName(), part.Header.Get("Content-Type"), len(content)),
			)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = append(u.calls, got)
	left := u.answers[got.what]
	if len(left) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if len(left) > 1 {
		u.answers[got.what] = left[1:]
	}
	if left[0].status == 0 { // simulates a crash
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(left[0].status)
	_, _ = io.WriteString(w, left[0].body)
}

func (u *upstream) called() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var what []string
	for _, c := range u.calls {
		what = append(what, c.what)
	}
	return what
}

func serve(t *testing.T, answers map[string][]answer) (*openaimedia.Engine, *upstream) {
	t.Helper()
	return serveAt(t, "", "", answers)
}

func serveAt(t *testing.T, videos, images string, answers map[string][]answer) (*openaimedia.Engine, *upstream) {
	t.Helper()
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{t: t, answers: answers}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	e, err := openaimedia.New(openaimedia.Config{
		Videos: server.URL + videos, Images: server.URL + images, Key: "secret", Runner: found, PollEvery: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, u
}

func clip(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(mediatest.Video{Width: 96, Height: 64, FPS: 16, Seconds: 0.5, Silent: true}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func input(t *testing.T, path, mime string, image bool) *engine.Input {
	t.Helper()
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	probe := found.ProbeVideo
	if image {
		probe = found.ProbeImage
	}
	info, err := probe(t.Context(), path, mime)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Input{Path: path, MIME: mime, Info: info}
}

func newSpec(t *testing.T, kind catalog.Kind) engine.Spec {
	t.Helper()
	spec := engine.Spec{
		Kind: kind, Prompt: "winter", Seed: 4294967295, Size: catalog.Size{Width: 160, Height: 90}, FPS: 10,
		Duration: time.Second,
		Folder:   t.TempDir(),
	}
	spec.Output = filepath.Join(spec.Folder, "output.mp4")
	switch kind {
	case catalog.TextToVideo:
	case catalog.ImageToVideo:
		spec.Data = input(t, mediatest.Image{Name: "a.bmp", Width: 48, Height: 27}.Make(t), "image/bmp", true)
	case catalog.Image:
		spec.Data = input(t, mediatest.Image{Name: "a.png", Width: 48, Height: 32}.Make(t), "image/png", true)
		spec.FPS, spec.Duration, spec.Output = 0, 0, filepath.Join(spec.Folder, "output.png")
	default:
		spec.Data = input(t, mediatest.Video{}.Make(t), "video/mp4", false)
	}
	return spec
}

const (
	create  = "POST /v1/videos"
	status  = "GET /v1/videos/v1"
	content = "GET /v1/videos/v1/content"
	remove  = "DELETE /v1/videos/v1"
	edits   = "POST /v1/images/edits"
	queued  = `{"id":"v1","status":"queued"}`
	done    = `{"id":"v1","status":"completed","progress":100}`
)

func TestVideoIsEdited(t *testing.T) {
	for _, kind := range []catalog.Kind{catalog.Edit, catalog.TextToVideo, catalog.ImageToVideo} {
		t.Run(string(kind), func(t *testing.T) {
			e, u := serve(t, map[string][]answer{
				create: {says(queued)},
				status: {
					says(`{"id":"v1","status":"in_progress","progress":50}`), {503, ""},
					says(`{"id":"v1","status":"in_progress","progress":40}`), says(done),
				},
				content: {says(clip(t))},
				remove:  {says(`{"deleted":true}`)},
			})
			spec := newSpec(t, kind)
			last := 0.0
			_, err := e.Run(t.Context(), spec, func(p engine.Progress) {
				if p.Fraction < last || p.Fraction > 1 || p.Stage == "" {
					t.Errorf("progress %+v after %g", p, last)
				}
				last = p.Fraction
			})
			if err != nil || last != 1 {
				t.Fatalf("at %g: %v", last, err)
			}
			info := input(t, spec.Output, "video/mp4", false).Info
			if info.Width != 160 || info.Height != 90 || info.FrameRate != 10 || math.Abs(info.Duration.Seconds()-1) > 0.1 ||
				info.Audio != (kind == catalog.Edit) {
				t.Errorf("the result is %+v", info)
			}
			if got, want := u.called(), []string{create, status, status, status, status, content, remove}; !slices.Equal(got, want) {
				t.Errorf("called %v, want %v", got, want)
			}
			asked := u.calls[0]
			want := map[string]string{
				"prompt": "winter", "size": "160x90", "width": "160", "height": "90", "seconds": "1", "num_frames": "10",
				"fps": "10", "seed": "4294967295",
			}
			if fmt.Sprint(asked.fields) != fmt.Sprint(want) {
				t.Errorf("requested %v, want %v", asked.fields, want)
			}
			if has := len(asked.files["input_reference"]) == 1; has != (kind != catalog.TextToVideo) {
				t.Errorf("sent %v", asked.files)
			}
			if kind == catalog.ImageToVideo && !strings.Contains(asked.files["input_reference"][0], "image/png") {
				t.Error("the image was not sent as a PNG")
			}
		})
	}
}

func TestImageIsEdited(t *testing.T) {
	made, err := os.ReadFile(mediatest.Image{Name: "made.jpg", Width: 96, Height: 64}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	e, u := serve(
		t,
		map[string][]answer{
			edits: {says(fmt.Sprintf(`{"created":1,"data":[{"b64_json":%q}]}`, base64.StdEncoding.EncodeToString(made)))},
		},
	)
	spec := newSpec(t, catalog.Image)
	spec.Reference = input(t, mediatest.Image{Name: "b.jpg", Width: 32, Height: 32}.Make(t), "image/jpeg", true)
	if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if info := input(t, spec.Output, "image/png", true).Info; info.Width != 160 || info.Height != 90 {
		t.Errorf("the result is %+v", info)
	}
	sent := u.calls[0].files["image"]
	if len(sent) != 2 || !strings.HasPrefix(sent[0], "image.png image/png ") ||
		!strings.HasPrefix(sent[1], "image.jpg image/jpeg ") {
		t.Errorf("sent %v", sent)
	}
}

func TestImageIsGenerated(t *testing.T) {
	made, err := os.ReadFile(mediatest.Image{Name: "made.jpg", Width: 96, Height: 64}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	e, u := serve(t, map[string][]answer{
		"POST /v1/images/generations": {says(`{"created":1,"data":[{"b64_json":"` + base64.StdEncoding.EncodeToString(made) + `"}]}`)},
	})
	spec := newSpec(t, catalog.Image)
	spec.Data = nil
	if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if info := input(t, spec.Output, "image/png", true).Info; info.Width != 160 || info.Height != 90 {
		t.Errorf("the result is %+v", info)
	}
	if want := `{"n":1,"prompt":"winter","response_format":"b64_json","seed":4294967295,"size":"160x90"}`; u.calls[0].fields["json"] != want {
		t.Errorf("sent %s", u.calls[0].fields["json"])
	}
}

func TestImagesAreSentInAcceptedFormats(t *testing.T) {
	made, err := os.ReadFile(mediatest.Image{Width: 96, Height: 64}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	answers := []answer{says(fmt.Sprintf(`{"data":[{"b64_json":%q}]}`, base64.StdEncoding.EncodeToString(made)))}
	for sent, want := range map[string]string{
		"a.png": "image/png", "a.jpg": "image/jpeg", "a.webp": "image/webp",
		"a.tif": "image/png", "a.bmp": "image/png", "a.gif": "image/png", "a.heic": "image/png",
	} {
		t.Run(sent, func(t *testing.T) {
			e, u := serve(t, map[string][]answer{edits: answers})
			found, err := tools()
			if err != nil {
				t.Fatal(err)
			}
			spec := newSpec(t, catalog.Image)
			path := mediatest.Image{Name: sent, Width: 48, Height: 32}.Make(t)
			kinds := map[string]string{".tif": "image/tiff", ".jpg": "image/jpeg"}
			read, err := found.ReadImage(
				t.Context(), t.TempDir(), path, cmp.Or(kinds[filepath.Ext(sent)], "image/"+filepath.Ext(sent)[1:]))
			if err != nil {
				t.Fatal(err)
			}
			spec.Data, spec.Reference = &read, &read
			if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
				t.Fatal(err)
			}
			parts := u.calls[0].files["image"]
			if len(parts) != 2 || strings.Count(strings.Join(parts, "\n"), " "+want+" ") != 2 {
				t.Errorf("sent %v, want two of %s", parts, want)
			}
		})
	}
}

func TestServerFaultsGiveClearErrors(t *testing.T) {
	completed := map[string][]answer{create: {says(queued)}, status: {says(done)}, remove: {says("{}")}}
	with := func(what string, then ...answer) map[string][]answer {
		answers := map[string][]answer{}
		for path, usual := range completed {
			answers[path] = usual
		}
		answers[what] = then
		return answers
	}
	for _, c := range []struct {
		name      string
		kind      catalog.Kind
		answers   map[string][]answer
		message   string
		retryable bool
	}{
		{
			"it refuses", catalog.Edit, with(create, answer{400, `{"error":{"message":"no"}}`}),
			"The engine rejected the edit.", false,
		},
		{"it is busy", catalog.Edit, with(create, answer{429, ""}), "The engine rejected the edit.", true},
		{"it is broken", catalog.Edit, with(create, answer{500, ""}), "The engine rejected the edit.", true},
		{"it crashes immediately", catalog.Edit, with(create, answer{}), "The engine cannot be reached.", true},
		{
			"it sends invalid JSON", catalog.Edit, with(create, says("<html>")),
			"The engine returned an invalid response.",
			true,
		},
		{
			"its video has no id", catalog.Edit, with(create, says("{}")), "The engine returned an invalid response.",
			true,
		},
		{
			"its video fails", catalog.Edit,
			with(status, says(`{"id":"v1","status":"failed","error":{"message":"/secret: out of memory"}}`)), "The engine failed.",
			true,
		},
		{
			"it forgets the video", catalog.Edit, with(status, answer{404, ""}), "The engine stopped during the edit.",
			true,
		},
		{"it does not restart", catalog.Edit, with(status, answer{}), "The engine stopped during the edit.", true},
		{"its video is empty", catalog.Edit, with(content, says("")), "The engine returned no result.", true},
		{"its video is not a video", catalog.Edit, with(content, says("oops")), "The engine returned no result.", true},
		{"it crashes during the download", catalog.Edit, with(content, answer{}), "The engine cannot be reached.", true},
		{"it has no image", catalog.Image, with(edits, says(`{"data":[]}`)), "The engine returned no result.", true},
		{
			"its image is not base64", catalog.Image, with(edits, says(`{"data":[{"b64_json":"?"}]}`)),
			"The engine returned an invalid response.", true,
		},
		{
			"its image is not an image", catalog.Image, with(edits, says(`{"data":[{"b64_json":"b29wcw=="}]}`)),
			"The engine returned no result.", true,
		},
		{
			"its response is truncated", catalog.Image, with(edits, says(`{"data":[`)),
			"The engine stopped during the edit.", true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, u := serve(t, c.answers)
			_, err := e.Run(t.Context(), newSpec(t, c.kind), func(engine.Progress) {})
			var failure *engine.Error
			if !errors.As(err, &failure) || failure.Code != job.EngineError || failure.Message != c.message ||
				failure.Retryable != c.retryable {
				t.Errorf("error %v, want %q, retryable %t", err, c.message, c.retryable)
			}
			if called := u.called(); slices.Contains(called, status) && !slices.Contains(called, remove) {
				t.Errorf("the video was not deleted: %v", called)
			}
		})
	}
}

// SGLang's response to a form without a file is 400.
func TestTextToVideoIsSentAsJSONIfTheFormIsRejected(t *testing.T) {
	e, u := serve(t, map[string][]answer{
		create: {{400, `{"detail":"input_reference file or reference_url is required"}`}, says(queued)},
		status: {says(done)}, content: {says(clip(t))}, remove: {says("{}")},
	})
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), func(engine.Progress) {}); err != nil {
		t.Fatal(err)
	}
	want := `{"fps":10,"num_frames":10,"prompt":"winter","seconds":1,"seed":4294967295,"size":"160x90"}`
	if got := u.calls[1].fields["json"]; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestReferenceImageWithVideoIsRejected(t *testing.T) {
	e, u := serve(t, nil)
	spec := newSpec(t, catalog.TryOn)
	spec.Reference = spec.Data
	var failure *engine.Error
	if _, err := e.Run(t.Context(), spec, nil); !errors.As(err, &failure) || failure.Code != job.InvalidInput ||
		len(u.called()) > 0 {
		t.Errorf("error %v after %v", err, u.called())
	}
}

func TestCancellationDeletesRun(t *testing.T) {
	e, u := serve(
		t,
		map[string][]answer{
			create: {says(queued)}, status: {says(`{"id":"v1","status":"in_progress","progress":10}`)}, remove: {says("{}")},
		},
	)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := e.Run(ctx, newSpec(t, catalog.TextToVideo), func(p engine.Progress) {
		if p.Fraction > 0 {
			cancel()
		}
	})
	if called := u.called(); !errors.Is(err, context.Canceled) || called[len(called)-1] != remove {
		t.Errorf("error %v after %v", err, called)
	}
}

// The server must not treat half an upload as complete.
func TestUnreadableInputAbortsUpload(t *testing.T) {
	e, _ := serve(t, map[string][]answer{create: {says(queued)}})
	spec := newSpec(t, catalog.Edit)
	spec.Data.Path = filepath.Join(t.TempDir(), "gone.mp4")
	if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); err == nil {
		t.Error("an edit without an input succeeded")
	}
}

func TestInvalidURLsAreRejected(t *testing.T) {
	for _, wrong := range []string{"", "127.0.0.1", "ftp://a", "http://", "http://a?b"} {
		if _, err := openaimedia.New(openaimedia.Config{Videos: wrong, Images: "http://a"}); err == nil {
			t.Errorf("%q is accepted as a URL", wrong)
		}
	}
	for _, right := range [][2]string{{"", ""}, {"/", "/"}, {"/v1", "/v1/"}, {"/v1", "/v1"}} {
		e, u := serveAt(t, right[0], right[1], nil)
		for _, kind := range []catalog.Kind{catalog.Edit, catalog.Image} {
			if _, err := e.Run(t.Context(), newSpec(t, kind), func(engine.Progress) {}); err == nil {
				t.Errorf("%q: a rejected edit succeeded", right)
			}
		}
		if got := u.called(); !slices.Equal(got, []string{create, edits}) {
			t.Errorf("%q: the server received %q", right, got)
		}
	}
}

func TestDownloadLeavesTheDiskFree(t *testing.T) {
	e, _ := serve(t, map[string][]answer{create: {says(done)}, content: {says(clip(t))}})
	spec := newSpec(t, catalog.TextToVideo)
	spec.Free = func() (int64, error) { return -1, nil }
	if _, err := e.Run(t.Context(), spec, func(engine.Progress) {}); !fault.Is(err, fault.StorageFull) {
		t.Errorf("got %v, want an error for a full disk", err)
	}
}
