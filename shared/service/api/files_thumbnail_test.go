package api_test

import (
	"bytes"
	"context"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/await"
)

type counted struct {
	*ffmpeg.Tools
	calls atomic.Int64
}

func (c *counted) Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error) {
	c.calls.Add(1)
	return c.Tools.Posters(ctx, folder, of)
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := ffmpeg.Find(t.Context(), known.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Tools: tools}
}

const noThumbnail = `{"detail":"There is no such thumbnail."}`

// A thumbnail has its file's permissions, is made once, and is deleted with the file.
func TestFileHasThumbnail(t *testing.T) {
	p := newCounted(t)
	w := newWorld(t, setup{posters: p})
	token := w.mint(studio, credential.Scope{})
	for i, c := range []struct{ name, path string }{
		{"holiday photo.png", mediatest.Image{Width: 800, Height: 600}.Make(t)},
		{"beach.mp4", mediatest.Video{}.Make(t)},
	} {
		f := w.stored(w.send(studio, part{"file", c.name, content(t, c.path)}))
		path := "/v1/uploads/" + f.ID + "/thumbnail"
		first := w.get(path, studio)
		picture, err := jpeg.Decode(strings.NewReader(first.body))
		if first.status != 200 || err != nil || max(picture.Bounds().Dx(), picture.Bounds().Dy()) > 320 || len(first.body) > 20_000 {
			t.Fatalf("%s: %d, %v, %d bytes", c.name, first.status, err, len(first.body))
		}
		header, tag := first.header, `"`+f.MD5+`-thumbnail"`
		name := strings.ReplaceAll(strings.TrimSuffix(c.name, filepath.Ext(c.name)), " ", "-")
		if header.Get("Content-Type") != "image/jpeg" || header.Get("ETag") != tag ||
			header.Get("Cache-Control") != "private, max-age=3600" || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(header.Get("Content-Disposition"), `inline; filename="`+name+`.jpg"`) {
			t.Errorf("%s: %v", c.name, header)
		}
		for what, again := range map[string]answer{
			"again": w.get(path, studio), "a token": w.get(path, token), "a token in the query": w.get(path+"?api_key="+token, ""),
			"a range": w.get(path, studio, "Range: bytes=0-1"),
		} {
			if again.status != 200 || again.body != first.body {
				t.Errorf("%s, %s: %d, %d bytes", c.name, what, again.status, len(again.body))
			}
		}
		if same := w.get(path, studio, "If-None-Match: "+tag); same.status != 304 || same.body != "" {
			t.Errorf("%s, which the client has: %d", c.name, same.status)
		}
		if head := w.request("HEAD", path, studio, nil); head.status != 200 || head.body != "" {
			t.Errorf("HEAD of %s: %d", c.name, head.status)
		}
		if a := w.get(path+"?api_key="+studio, ""); a.status != 401 {
			t.Errorf("%s with a permanent key in the query: %d", c.name, a.status)
		}
		if a := w.get(path, rival); a.status != 404 || a.body != `{"detail":"File not found."}` {
			t.Errorf("%s for another account: %d %s", c.name, a.status, a.body)
		}
		if calls := p.calls.Load(); calls != int64(i+1) {
			t.Errorf("%s: made %d times", c.name, calls-int64(i))
		}
		if a := w.request("DELETE", "/v1/files/"+f.ID, studio, nil); a.status != 204 {
			t.Fatal(a.body)
		}
		if a := w.get(path, studio); a.status != 404 {
			t.Errorf("%s, deleted: %d", c.name, a.status)
		}
	}
	if left, err := os.ReadDir(filepath.Join(w.root, "thumbnails")); len(left) > 0 || err != nil && !os.IsNotExist(err) {
		t.Errorf("remaining: %v, %v", left, err)
	}
}

func TestFileWithoutThumbnailIsReadOnce(t *testing.T) {
	p := newCounted(t)
	w := newWorld(t, setup{posters: p})
	show := func(name, bytes string) answer {
		f := w.stored(w.send(studio, part{"file", name, bytes}))
		first := w.get("/v1/uploads/"+f.ID+"/thumbnail", studio)
		calls := p.calls.Load()
		if again := w.get("/v1/uploads/"+f.ID+"/thumbnail", studio); again.status != first.status || again.body != first.body {
			t.Errorf("%s: %d %s, then %d %s", name, first.status, first.body, again.status, again.body)
		}
		if p.calls.Load() != calls {
			t.Errorf("%s is read again", name)
		}
		return first
	}
	video := content(t, mediatest.Video{}.Make(t))
	for name, bytes := range map[string]string{
		"notes.txt": "plain text", "page.html": "<html></html>", "drawing.svg": content(t, mediatest.SVG(t, "http://127.0.0.1:1/")),
		"cut off.mp4": video[:len(video)/3], "huge.png": content(t, mediatest.PNGHeader(t, 30_000, 30_000)),
		"playlist.mp4": content(t, mediatest.DisguisedPlaylist(t, "http://127.0.0.1:1/")),
	} {
		if a := show(name, bytes); a.status != 404 || a.body != noThumbnail || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %.100s", name, a.status, a.body)
		}
	}
	for i, f := range mediatest.HostileSet(t, "127.0.0.1:1", "/etc/hostname") {
		if i%12 != 0 {
			continue
		}
		if a := show(filepath.Base(f.Path), content(t, f.Path)); a.status != 200 && a.status != 404 {
			t.Errorf("%s: %d %.100s", f.Name, a.status, a.body)
		}
	}
	for _, id := range []string{"file_unknown", "x", "..%2f..%2fetc", "file_%00", "file_" + strings.Repeat("0", 1000)} {
		if a := w.get("/v1/uploads/"+id+"/thumbnail", studio); a.status != 404 {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}

func TestThumbnailsFromWorkersAreServed(t *testing.T) {
	w := newWorld(t, setup{})
	kept := w.keep(studio, picture(t))
	path := "/v1/uploads/" + kept.ID + "/thumbnail"
	if a := w.get(path, studio); a.status != 404 || a.body != noThumbnail {
		t.Errorf("before: %d %s", a.status, a.body)
	}
	f, err := w.shelf.Get(t.Context(), "studio", kept.ID, w.now())
	if err == nil {
		err = file.StoreThumbnail(t.Context(), w.blobs, f.Blob, []byte("small"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := w.get(path, studio); a.status != 200 || a.body != "small" {
		t.Errorf("after: %d %s", a.status, a.body)
	}
	id := w.accepted(w.post("gen-2.5", studio, text("prompt", "x"), upload("data", w.keep(studio, clip(t)).ID),
		upload("reference_image", kept.ID)))
	if input := w.record(id).Request.Inputs["reference_image"]; input.File != f.Blob {
		t.Errorf("the input is of %q", input.File)
	}
}

type blockedPosters struct {
	begun, release chan struct{}
	calls          atomic.Int64
}

func (b *blockedPosters) Posters(ctx context.Context, _ string, _ []engine.Depicted) ([][]byte, error) {
	b.calls.Add(1)
	b.begun <- struct{}{}
	select {
	case <-b.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return [][]byte{[]byte("small")}, nil
}

// If a file is deleted while its thumbnail is being made, no thumbnail remains.
func TestThumbnailIsCreatedOnce(t *testing.T) {
	p := &blockedPosters{begun: make(chan struct{}, 10), release: make(chan struct{})}
	w := newWorld(t, setup{posters: p})
	kept, gone := w.keep(studio, picture(t)), w.keep(studio, picture(t))
	answers := make(chan answer, 5)
	var asking sync.WaitGroup
	for range 5 {
		asking.Go(func() { answers <- w.get("/v1/uploads/"+kept.ID+"/thumbnail", studio) })
	}
	await.Receive(t, "p.begun", p.begun)
	p.release <- struct{}{}
	asking.Wait()
	close(answers)
	for a := range answers {
		if a.status != 200 || !bytes.Equal([]byte(a.body), []byte("small")) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if calls := p.calls.Load(); calls != 1 {
		t.Errorf("made %d times", calls)
	}

	late := make(chan answer, 1)
	go func() { late <- w.get("/v1/uploads/"+gone.ID+"/thumbnail", studio) }()
	await.Receive(t, "p.begun", p.begun)
	if a := w.request("DELETE", "/v1/files/"+gone.ID, studio, nil); a.status != 204 {
		t.Fatal(a.body)
	}
	p.release <- struct{}{}
	if a := await.Receive(t, "late", late); a.status != 404 {
		t.Errorf("thumbnail of a deleted file: %d %s", a.status, a.body)
	}
}
