package ffmpeg_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// See docs/contract/media.md#input-limits.
var limits = catalog.Limits{
	VideoDuration: 5 * time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000,
}

// Find is called once, because it runs each program several times.
var installed = sync.OnceValues(func() (*ffmpeg.Tools, error) { return ffmpeg.Find(context.Background(), limits) })

func find(t *testing.T) *ffmpeg.Tools {
	t.Helper()
	tools, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	own := *tools
	return &own
}

func findAnew(t *testing.T) *ffmpeg.Tools {
	t.Helper()
	tools, err := ffmpeg.Find(t.Context(), limits)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// checkCode checks that err is an *engine.Error with the given code and that its message is safe to show.
func checkCode(t *testing.T, err error, code job.Code) *engine.Error {
	t.Helper()
	var failure *engine.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want %s", err, code)
	}
	if failure.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
	if strings.Contains(failure.Message, "/") || strings.Contains(failure.Message, "\n") {
		t.Errorf("the message %q reveals too much", failure.Message)
	}
	return failure
}

func TestFindNamesMissingFeatures(t *testing.T) {
	program := func(folder, name, script string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, version, filters, want, but string
	}{
		{"old", "ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright", "", "version 4; version 5 or newer is needed", ""},
		{"without a required feature", "ffmpeg version 6.1.1 Copyright", " ..C scale V->V", "filter lut3d", "filter scale"},
		{"of a revision, without a required feature", "ffmpeg version N-1234-gabcdef Copyright", "", "encoder libx264", ""},
		{"whose configuration shows the filters", "ffmpeg version 6.1.1 configuration: --enable-libzimg", "",
			"encoder libx264", "filter"},
		{"that omits filters", "ffmpeg version 6.1.1 configuration: --enable-libzimg --disable-filters",
			" ..C scale V->V", "filter zscale", "filter scale"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			program(folder, "ffmpeg", `echo "`+test.version+`" >&2; echo "`+test.filters+`"`)
			program(folder, "ffprobe", "")
			t.Setenv("PATH", folder+":/usr/bin:/bin")
			_, err := ffmpeg.Find(t.Context(), limits)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Find returned %v, want one line with %q", err, test.want)
			} else if test.but != "" && strings.Contains(err.Error(), test.but) {
				t.Errorf("Find returned %v, which must not contain %q", err, test.but)
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := ffmpeg.Find(t.Context(), limits)
		if err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") ||
			!strings.Contains(err.Error(), "brew install ffmpeg") {
			t.Errorf("Find returned %v", err)
		}
	})
}
