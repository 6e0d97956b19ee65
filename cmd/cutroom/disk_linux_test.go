package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cutroom/shared/testkit/disktest"
	"cutroom/shared/testkit/servertest"
)

func free(t *testing.T, disk string) int64 {
	t.Helper()
	var state unix.Statfs_t
	if err := unix.Statfs(disk, &state); err != nil {
		t.Fatal(err)
	}
	return int64(state.Bavail) * state.Bsize
}

// fill fills the disk but leaves the given number of bytes free. Removing the returned file frees the space again.
func fill(t *testing.T, disk string, rest int64) string {
	t.Helper()
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, free(t, disk)-rest), 0o600); err != nil {
		t.Fatal(err)
	}
	return filler
}

var saysFull = regexp.MustCompile(`(?i)\b(disk is full|no room left)\b`)

func TestFullDiskRejectsWritesCleanly(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	disk := disktest.Small(t, "size=24m")
	data := filepath.Join(disk, "data")
	// Results of gen-2.5 keep their full size, so that they do not fit on the disk.
	small := bytes.ReplaceAll(defaultCatalog(t), []byte("1088x624"), []byte("64x36"))
	server := start(t, data, "CUTROOM_WORKERS=1", "CUTROOM_DISK_RESERVE=1", "CUTROOM_CATALOG="+save(t, small))
	client := server.Client()

	edit := func(model string, part servertest.Part) servertest.Job {
		t.Helper()
		job, err := client.Submit(ctx, model, servertest.Form{part, servertest.Text("prompt", "vintage film")})
		if err != nil {
			t.Fatal(err)
		}
		if job, err = client.Await(bounded(t), job.ID, nil); err != nil {
			t.Fatal(err)
		}
		return job
	}
	tiny := func() servertest.Part { return servertest.File("data", "tiny.mp4", fixtures.tiny) }

	first := edit("gen-2.1", tiny())
	if first.Status != "completed" {
		t.Fatalf("%+v (%+v)", first, first.Error)
	}
	result, err := client.Content(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("an upload that does not fit", func(t *testing.T) {
		before := filesIn(t, filepath.Join(data, "blobs"))
		// The server may still be cleaning up after the first job.
		isNew := func(blob string) bool { return !slices.Contains(before, blob) && !strings.Contains(blob, first.ID) }
		const size = 40 << 20
		clip := io.MultiReader(bytes.NewReader(fixtures.tiny), io.LimitReader(zeros{}, size-int64(len(fixtures.tiny))))
		_, err := client.Submit(ctx, "gen-2.1", servertest.Form{{Name: "data", FileName: "clip.mp4", Content: clip,
			Size: size}})
		if !hasStatus(err, 507) || !saysFull.MatchString(err.Error()) {
			t.Errorf("got %v, want status 507 with a detail about missing space", err)
		}
		eventually(t, "nothing of the upload is left", func() bool {
			return !slices.ContainsFunc(filesIn(t, filepath.Join(data, "blobs")), isNew)
		})
		if next := edit("gen-2.1", tiny()); next.Status != "completed" {
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
			if failed.Status != "failed" || failed.Error == nil || failed.Error.Code != "engine_error" ||
				!saysFull.MatchString(failed.Error.Message) {
				t.Errorf("got %+v (%+v), want engine_error with a message about a full disk", failed, failed.Error)
			}
			if again, err := client.Content(ctx, first.ID); err != nil || !bytes.Equal(again.Body, result.Body) {
				t.Errorf("an earlier result is damaged: %v", err)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if next := edit("gen-2.1", tiny()); next.Status != "completed" {
				t.Errorf("with free space again: %+v (%+v)", next, next.Error)
			}
			if still, err := client.Job(ctx, failed.ID); err != nil || still.Status != "failed" {
				t.Errorf("the failed job became %+v, %v", still, err)
			}
		})
	}
	stop(t, server)
}

// The server can still delete files. Once there is free space, everything works again.
func TestServerStartsOnFullDisk(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	disk := disktest.Small(t, "size=32m")
	data := filepath.Join(disk, "data")
	server := start(t, data)
	client := server.Client()
	var files []storedFile
	for i := range 40 {
		files = append(files, store(t, client, bytes.Repeat([]byte{byte(i)}, 10<<10)))
	}
	fillUp := func() string {
		t.Helper()
		filler := fill(t, disk, 0)
		if left := free(t, disk); left > 0 {
			t.Fatalf("%d bytes are free", left)
		}
		return filler
	}
	for round, end := range []func(){func() { stop(t, server) }, func() { server.Kill() }} {
		filler := fillUp()
		end()
		var err error
		// Do not wait until the server is ready. On a full disk it responds to requests without being ready.
		if server, err = program.Launch(data); err != nil {
			t.Fatal(err)
		}
		endWith(t, server)
		eventually(t, "the server serves on the full disk", func() bool {
			if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(server.PID()))); err != nil {
				t.Fatalf("the server has ended:\n%s", server.Log())
			}
			return server.URL() != ""
		})
		client = server.Client()
		// Simulate other programs, which fill the space that was freed at startup.
		more := filepath.Join(disk, "more")
		if left := free(t, disk); left > 4<<20 {
			if err := os.WriteFile(more, make([]byte, left-4<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if answer, err := client.Get(ctx, "/v1/files/"+files[0].ID); err != nil || answer.Status != 200 {
			t.Errorf("round %d: a read: %d %s, %v", round, answer.Status, answer.Body, err)
		}
		body, length, contentType := servertest.Form{servertest.File("file", "a.png", make([]byte, 6<<20))}.Encode()
		if answer, err := client.Call(ctx, "POST", "/v1/files", body, length, "Content-Type", contentType); err != nil ||
			answer.Status != 507 {
			t.Errorf("round %d: an upload: %d %s, %v", round, answer.Status, answer.Body, err)
		}
		if answer, err := client.Get(ctx, "/healthz"); err != nil || answer.Status != 503 ||
			strings.Contains(string(answer.Body), "/") {
			t.Errorf("round %d: /healthz: %d %s, %v", round, answer.Status, answer.Body, err)
		}
		for _, f := range files[1:20] {
			if answer, err := client.Call(ctx, "DELETE", "/v1/files/"+f.ID, nil, 0); err != nil || answer.Status != 204 {
				t.Fatalf("round %d: delete: %d %s, %v", round, answer.Status, answer.Body, err)
			}
		}
		files = append(files[:1], files[20:]...)
		for _, name := range []string{filler, more} {
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		eventually(t, "it is healthy once there is space", func() bool {
			answer, err := client.Get(ctx, "/health")
			return err == nil && answer.Status == 200
		})
		for i := range 20 {
			files = append(files, store(t, client, bytes.Repeat([]byte{byte(100 + i)}, 10<<10)))
		}
	}
	stop(t, server)
}

// The response does not contain the folder's path.
func TestHealthReportsMissingFolder(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{"blobs": "Files cannot be written.",
		"scratch": "Jobs cannot be processed."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			missedAndBack(t, start(t, data), filepath.Join(data, name), reason)
		})
	}
}

func missedAndBack(t *testing.T, server *servertest.Server, folder, reason string) {
	away := folder + ".away"
	if err := os.Rename(folder, away); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{server.URL(), server.InferenceURL()} {
		client := servertest.Client{URL: url}
		eventually(t, "the folder is missed", func() bool {
			answer, err := client.Get(bounded(t), "/healthz")
			return err == nil && answer.Status == 503 && strings.Contains(string(answer.Body), reason)
		})
	}
	if err := os.Rename(away, folder); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back", func() bool {
		answer, err := server.Client().Get(bounded(t), "/healthz")
		return err == nil && answer.Status == 200
	})
}
