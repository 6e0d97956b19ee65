package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/origin"
	"cutroom/shared/engine"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
)

func signer(t *testing.T) (*c2pa.Signer, c2pa.Reader) {
	t.Helper()
	text, err := c2pa.NewIdentity(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	who, err := c2pa.ParseIdentity(text, text, time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	return c2pa.New(c2pa.Config{
			Library: c2patest.Library(t), Identity: who, Generative: true, Now: time.Now, Logger: logger, InputTime: await.Max,
		}), c2pa.Reader{
			Library: c2patest.Library(t), Own: who.Chain(), Time: await.Max, Logger: logger,
		}
}

func signed(t *testing.T, by *c2pa.Signer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "signed.png")
	spec := engine.Spec{Model: "gen-image-2", Kind: catalog.Image, Output: mediatest.Image{}.Make(t)}
	if _, err := by.Sign(t.Context(), spec, engine.Outcome{Engine: "an engine"}, "image/png", path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// See docs/contract/media.md#credentials-of-files.
func TestContentCredentialsAreVerified(t *testing.T) {
	t.Parallel()
	mine, reader := signer(t)
	others, _ := signer(t)
	w := newWorld(t, setup{verifier: reader})
	report := func(path string) (r origin.Report) {
		t.Helper()
		a := w.get(path, studio)
		if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return r
	}
	own := signed(t, mine)
	tampered := []byte(own)
	tampered[len(tampered)-20]++
	plain, err := os.ReadFile(mediatest.Image{}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content, state string
		own            bool
	}{
		"its own":           {own, origin.Valid, true},
		"another service's": {signed(t, others), origin.Valid, false},
		"a changed file":    {string(tampered), origin.Invalid, false},
		"an unsigned file":  {string(plain), origin.None, false},
		"a damaged file":    {own[:60], origin.Unreadable, false},
		"no image":          {"a text", origin.Unreadable, false},
	} {
		r := report("/v1/uploads/" + w.keep(studio, c.content).ID + "/credentials")
		if r.State != c.state || r.Own != c.own || r.Actions == nil || (c.state == origin.Unreadable) != (r.SignedBy == "" && len(r.Problems) == 1) {
			t.Errorf("report for %s: %+v", name, r)
		}
		if c.state == origin.Valid && (r.SignedBy != "Cutroom" || !r.ByModel() || r.Actions[0].Model != "gen-image-2") {
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
