package api_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/await"
)

func TestExpiredFilesAreSwept(t *testing.T) {
	w := newWorld(t, setup{})
	video := clip(t)
	brief := w.keep(studio, video, text("ttl_seconds", "60"))
	deleted := w.keep(studio, video)
	lasting := w.keep(studio, "lasting")
	promised := w.announceBytes(studio, "promised")
	job := w.accepted(w.post("gen-2.5", studio, text("data", brief.ID)))
	another := w.accepted(w.post("gen-2.5", studio, text("data", deleted.ID)))
	if a := w.request("DELETE", "/v1/files/"+deleted.ID, studio, nil); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	sweep := func(want ...string) {
		t.Helper()
		if err := w.sweeper.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := w.files()
		for i := range got {
			if strings.HasPrefix(got[i], "files/") {
				got[i] = "files/" + content(t, filepath.Join(w.root, got[i]))[:4]
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	inputs := []string{"jobs/" + job + "/data", "jobs/" + another + "/data"}
	sweep(append(inputs, "files/"+video[:4], "files/last")...)
	w.pass(61 * time.Second)
	sweep(append(inputs, "files/last")...)
	for _, id := range []string{job, another} {
		if content(t, filepath.Join(w.root, "jobs", id, "data")) != video {
			t.Error("a job lost its input")
		}
	}
	w.pass(file.SignedTime)
	sweep(append(inputs, "files/last")...)
	if a := w.put(promised.Upload.URL, strings.NewReader("promised")); a.status != 403 {
		t.Errorf("a pending file past its time: %d", a.status)
	}
	w.stored(w.get("/v1/files/"+lasting.ID, studio))

	if _, err := w.blobs.Put(t.Context(), "files/file_crashed", strings.NewReader("left")); err != nil {
		t.Fatal(err)
	}
	today := func() string { return time.Now().Add(time.Duration(w.later.Load())).UTC().Format(time.DateOnly) }
	day := today()
	if n, err := w.sweeper.SweepUnknown(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(w.root, ".unknown", day)); err != nil {
		day = today() // midnight has passed
	}
	aside := ".unknown/" + day + "/files/file_crashed"
	sweep(append(inputs, "files/last", aside)...)
}

func TestFileDeletedDuringUploadLeavesNoBytes(t *testing.T) {
	w := newWorld(t, setup{})
	bytes := string(frames(600 << 10))
	late, lost := w.announceBytes(studio, bytes), w.announceBytes(studio, bytes)
	for _, c := range []struct {
		signed announced
		end    func()
	}{
		{lost, func() {
			if a := w.put(lost.Upload.URL, strings.NewReader(bytes)); a.status != 200 {
				t.Fatalf("the other request: %d %s", a.status, a.body)
			}
			if a := w.request("DELETE", "/v1/files/"+lost.ID, studio, nil); a.status != 204 {
				t.Fatalf("delete: %d %s", a.status, a.body)
			}
		}},
		{late, func() {
			w.pass(file.SignedTime)
			if err := w.sweeper.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		reader, writer := io.Pipe()
		answered := make(chan answer)
		go func() { answered <- w.put(c.signed.Upload.URL, reader) }()
		io.WriteString(writer, bytes[:len(bytes)/2])
		eventually(t, "bytes arrive", func() bool { return len(w.files()) == 1 })
		c.end()
		io.WriteString(writer, bytes[len(bytes)/2:])
		writer.Close()
		if a := await.Receive(t, "answered", answered); a.status != 404 || a.detail() != "File not found." {
			t.Errorf("got %d %s", a.status, a.body)
		}
		w.nothingStays()
		w.isUnknown(studio, c.signed.reference)
	}
}
