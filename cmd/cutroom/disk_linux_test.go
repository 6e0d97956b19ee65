package main_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cutroom/shared/testkit/disktest"
	"cutroom/shared/testkit/servertest"
)

// room is how many bytes are free.
func room(t *testing.T, disk string) int64 {
	t.Helper()
	var state unix.Statfs_t
	if err := unix.Statfs(disk, &state); err != nil {
		t.Fatal(err)
	}
	return int64(state.Bavail) * state.Bsize
}

// fill takes all room but the rest, until the file that it gives is removed.
func fill(t *testing.T, disk string, rest int64) string {
	t.Helper()
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, room(t, disk)-rest), 0o600); err != nil {
		t.Fatal(err)
	}
	return filler
}

// saysFull is what a message to a person says of a full disk.
var saysFull = regexp.MustCompile(`(?i)\b(disk is full|no room left)\b`)

// TestFullDisk: what does not fit is refused, or fails, with a clear error, leaves
// nothing, and harms nothing else.
func TestFullDisk(t *testing.T) {
	ctx := bounded(t)
	disk := disktest.Small(t, "size=24m")
	data := filepath.Join(disk, "data")
	server := start(t, data, "CUTROOM_WORKERS=1", "CUTROOM_DISK_RESERVE=1")
	client := server.Client()

	edit := func(model string, part servertest.Part) servertest.Job {
		t.Helper()
		job, err := client.Submit(ctx, model, servertest.Form{part, servertest.Text("prompt", "vintage film")})
		if err != nil {
			t.Fatal(err)
		}
		if job, err = client.Await(ctx, job.ID, nil); err != nil {
			t.Fatal(err)
		}
		return job
	}
	small := func() servertest.Part { return servertest.File("data", "tiny.mp4", fixtures.tiny) }

	first := edit("gen-2.1", small())
	if first.Status != "completed" {
		t.Fatalf("%+v (%+v)", first, first.Error)
	}
	result, err := client.Content(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("an upload that does not fit", func(t *testing.T) {
		before := filesIn(t, filepath.Join(data, "blobs"))
		const size = 40 << 20
		clip := io.MultiReader(bytes.NewReader(fixtures.tiny), io.LimitReader(zeros{}, size-int64(len(fixtures.tiny))))
		_, err := client.Submit(ctx, "gen-2.1", servertest.Form{{Name: "data", FileName: "clip.mp4", Content: clip, Size: size}})
		if !isRefusal(err, 507) || !saysFull.MatchString(err.Error()) {
			t.Errorf("got %v, want status 507 with a detail that says that there is no room", err)
		}
		eventually(t, "nothing of the upload is left", func() bool {
			return strings.Join(filesIn(t, filepath.Join(data, "blobs")), " ") == strings.Join(before, " ")
		})
		if next := edit("gen-2.1", small()); next.Status != "completed" {
			t.Errorf("the next job: %+v (%+v)", next, next.Error)
		}
	})

	for name, rest := range map[string]int64{
		"a result that does not fit":      3 << 20,
		"not even what the engine writes": 256 << 10,
	} {
		t.Run(name, func(t *testing.T) {
			filler := fill(t, disk, rest)
			failed := edit("gen-2.5", servertest.File("data", "long.mp4", fixtures.long))
			if failed.Status != "failed" || failed.Error == nil || failed.Error.Code != "engine_error" || !saysFull.MatchString(failed.Error.Message) {
				t.Errorf("got %+v (%+v), want engine_error that says that the disk is full", failed, failed.Error)
			}
			if again, err := client.Content(ctx, first.ID); err != nil || !bytes.Equal(again.Body, result.Body) {
				t.Errorf("an earlier result is harmed: %v", err)
			}
			if health, err := client.Get(ctx, "/healthz"); err != nil || health.Status != 200 {
				t.Errorf("/healthz: %d, %v", health.Status, err)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if next := edit("gen-2.1", small()); next.Status != "completed" {
				t.Errorf("once there is room: %+v (%+v)", next, next.Error)
			}
			if still, err := client.Job(ctx, failed.ID); err != nil || still.Status != "failed" {
				t.Errorf("the failed job became %+v, %v", still, err)
			}
		})
	}
	stop(t, server)
}
