package c2patest

import (
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
)

// NewIdentity returns a new identity and its PEM text.
func NewIdentity(t testing.TB) (*c2pa.Identity, []byte) {
	t.Helper()
	text, err := c2pa.NewIdentity(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	who, err := c2pa.ParseIdentity(text, text, time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return who, text
}

// SignedPicture returns the path of a PNG picture that a model edited. The identity has signed it.
func SignedPicture(t testing.TB, by *c2pa.Identity) string {
	t.Helper()
	signer := c2pa.New(c2pa.Config{
		Library: Library(t), Identity: by, Generative: true, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		InputTime: await.Max,
	})
	path, source := filepath.Join(t.TempDir(), "signed.png"), mediatest.Image{}.Make(t)
	spec := engine.Spec{
		Model: "gen-image-2", Kind: catalog.Image, Data: &engine.Input{Path: source, MIME: "image/png"}, Output: source,
	}
	if _, err := signer.Sign(t.Context(), spec, engine.Outcome{Engine: "an engine"}, "image/png", path); err != nil {
		t.Fatal(err)
	}
	return path
}
