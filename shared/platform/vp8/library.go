package vp8

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/sandbox/libraries"
	"cutroom/shared/platform/vp8/helper"
)

// Library is this machine's libvpx. It is safe for concurrent use.
type Library struct {
	// FrameTime is how long a helper may take for one frame before it is killed. Find sets it to DefaultFrameTime.
	FrameTime time.Duration

	box   *sandbox.Sandbox
	self  sandbox.Program
	found libraries.Found
}

// Find finds libvpx, and verifies that this package supports it and that a helper works in the
// sandbox. The error names the package to install.
func Find(ctx context.Context, box *sandbox.Sandbox) (*Library, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	self, err := sandbox.Self(ctx)
	if err != nil {
		return nil, err
	}
	l := &Library{FrameTime: DefaultFrameTime, box: box, self: self}
	l.found, err = self.Search(ctx, environment(), helper.SearchName)
	switch {
	case err != nil:
		return nil, fmt.Errorf("vp8: %w", err)
	case l.found.Problem != "":
		return nil, fmt.Errorf("vp8: %s: install the package %s", l.found.Problem, packageOf(os.ReadFile))
	}
	c, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	c.Close()
	return l, nil
}

func (l *Library) String() string { return "libvpx " + strings.TrimPrefix(l.found.Version, "v") }

// environment limits helpers to one processor and two memory arenas. With more arenas, their threads would fill the
// address space.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "MALLOC_ARENA_MAX=2"}
}

func packageOf(read func(string) ([]byte, error)) string {
	if runtime.GOOS == "darwin" {
		return "libvpx (brew install libvpx)"
	}
	release, _ := read("/etc/os-release")
	for line := range bytes.Lines(release) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		if name != "VERSION_CODENAME" {
			continue
		}
		switch strings.Trim(value, `"`) {
		case "bookworm", "jammy":
			return "libvpx7"
		case "trixie", "noble":
			return "libvpx9"
		}
	}
	return "libvpx"
}

// A helper may be restarted a few times in quick succession, and then only once per interval.
const (
	restartsAtOnce = 5
	restartEvery   = 10 * time.Second
)

// Open opens the codec for one session. The caller must close it. The context limits only the
// start. Errors: ErrFailed.
func (l *Library) Open(ctx context.Context) (*Codec, error) {
	c := &Codec{library: l, starts: rate.NewLimiter(rate.Every(restartEvery), restartsAtOnce)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.running(ctx); err != nil {
		return nil, err
	}
	return c, nil
}
