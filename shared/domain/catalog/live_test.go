package catalog_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/testkit/await"
)

func TestLiveFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	write := func(source string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := media + row
	write(first)
	known, err := catalog.Parse([]byte(first), "gen")
	if err != nil {
		t.Fatal(err)
	}
	live := catalog.NewLive(known)
	file := catalog.File{Path: path, Family: "gen", Source: []byte(first)}
	bad := strings.Replace(first, "[chat]", "[dance]", 1)
	second := strings.Replace(first, "org/big-model:8b", "$family-small", 1)
	for _, step := range []struct {
		name    string
		do      func()
		changed bool
		err     string
		knows   string
	}{
		{"no change", func() {}, false, "", "org/big-model:8b"},
		{"a new model", func() { write(second) }, true, "", "gen-small"},
		{"no further change", func() {}, false, "", "gen-small"},
		{"an invalid file", func() { write(bad) }, false, "line 9:", "gen-small"},
		{"the invalid file is reported once", func() {}, false, "", "gen-small"},
		{"a malformed file", func() { write("inference: [") }, false, "1", "gen-small"},
		{"a missing file", func() { _ = os.Remove(path) }, false, "no such file", "gen-small"},
		{"the missing file is reported once", func() {}, false, "", "gen-small"},
		{"the first file again", func() { write(first) }, true, "", "org/big-model:8b"},
	} {
		step.do()
		changed, err := live.Reload(&file)
		if changed != step.changed || (err == nil) != (step.err == "") ||
			err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: got %v, %v; want %v, %q", step.name, changed, err, step.changed, step.err)
		}
		if _, ok := live.Catalog().Inference(step.knows); !ok || !live.Knows(step.knows) {
			t.Errorf("%s: %s is unknown", step.name, step.knows)
		}
	}
}

func TestFollowReloadsAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	known, err := catalog.Parse([]byte(media+row), "gen")
	if err != nil {
		t.Fatal(err)
	}
	live := catalog.NewLive(known)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		live.Follow(ctx, catalog.File{Path: path, Family: "gen"}, time.Millisecond, slog.New(slog.DiscardHandler))
	}()
	if err := os.WriteFile(path, []byte(media+strings.Replace(row, "8b", "70b", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the new model", func() bool { return live.Knows("org/big-model:70b") })
	stop()
	<-stopped
}
