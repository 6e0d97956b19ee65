package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/origin"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
)

// See docs/contract/media.md#credentials-of-files.
func TestContentCredentialsAreVerified(t *testing.T) {
	t.Parallel()
	mine, _ := c2patest.NewIdentity(t)
	others, _ := c2patest.NewIdentity(t)
	w := newWorld(t, setup{verifier: c2pa.Reader{
		Library: c2patest.Library(t), Own: mine.Chain(), Time: await.Max, Logger: slog.New(slog.DiscardHandler),
	}})
	read := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	report := func(path string) (r origin.Report) {
		t.Helper()
		a := w.get(path, studio)
		if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return r
	}
	own := read(c2patest.SignedPicture(t, mine))
	tampered := []byte(own)
	tampered[len(tampered)-20]++
	for name, c := range map[string]struct {
		content, state string
		own            bool
	}{
		"its own":           {own, origin.Valid, true},
		"another service's": {read(c2patest.SignedPicture(t, others)), origin.Valid, false},
		"a changed file":    {string(tampered), origin.Invalid, false},
		"an unsigned file":  {read(mediatest.Image{}.Make(t)), origin.None, false},
		"a damaged file":    {own[:60], origin.Unreadable, false},
		"no image":          {"a text", origin.Unreadable, false},
	} {
		r := report("/v1/uploads/" + w.keep(studio, c.content).ID + "/credentials")
		if r.State != c.state || r.Own != c.own || r.Actions == nil || (c.state == origin.Unreadable) != (r.SignedBy == "" && len(r.Problems) == 1) {
			t.Errorf("report for %s: %+v", name, r)
		}
		if c.state == origin.Valid && (r.SignedBy != "Cutroom" || !r.ByModel() || r.Actions[len(r.Actions)-1].Model != "gen-image-2") {
			t.Errorf("report for %s: %+v", name, r)
		}
	}

	id := w.accepted(w.post("gen-2.5", studio, part{"data", "beach.mp4", clip(t)}, text("prompt", "watercolor")))
	path := "/v1/jobs/" + id + "/credentials"
	if a := w.get(path, studio); a.status != 409 {
		t.Errorf("before the job's end: %d %s", a.status, a.body)
	}
	w.start(id)
	w.complete(id, own, "image/png")
	if r := report(path); r.State != origin.Valid || !r.Own {
		t.Errorf("report for the result: %+v", r)
	}
	if a := w.get(path, rival); a.status != 404 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
}

func TestVerificationIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{verifier: endless{}, maxVerified: 6, verifyTime: time.Millisecond})
	for content, status := range map[string]int{"a text": 504, "a longer text": 413} {
		a := w.get("/v1/uploads/"+w.keep(studio, content).ID+"/credentials", studio)
		if a.status != status || !strings.Contains(a.detail(), "cutroom inspect") {
			t.Errorf("%q: %d %s", content, a.status, a.body)
		}
	}
}

type endless struct{}

func (endless) Verify(ctx context.Context, _ *os.File) (origin.Report, error) {
	<-ctx.Done()
	return origin.Report{}, ctx.Err()
}

func TestVerificationWithoutLibraryIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	a := w.get("/v1/uploads/"+w.keep(studio, "a text").ID+"/credentials", studio)
	if a.status != 404 || !strings.Contains(a.detail(), "cutroom inspect") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
