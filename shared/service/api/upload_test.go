package api_test

import (
	"path/filepath"
	"runtime"
	"testing"
)

// movie is the start of an MP4 with endless frames.
const movie = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42\x00\x00\x00\x00mdat"

func frames(n int) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(i>>8 ^ i)
	}
	return bytes
}

// heap returns the heap size, including garbage that has not been collected yet.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestFileSizeIsLimited(t *testing.T) {
	const limit = 1 << 20
	w := newWorld(t, setup{maxUpload: limit})
	exact := movie + string(frames(limit-len(movie)))
	id := w.accepted(w.post("gen-2.5", studio, upload("data", exact)))
	if got := w.record(id).Request.Inputs["data"].Size; got != limit {
		t.Errorf("the size is %d", got)
	}
	if content(t, filepath.Join(w.root, "jobs", id, "data")) != exact {
		t.Error("the bytes differ from the sent ones")
	}
	if err := w.blobs.DeleteAll(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	o := w.outcome("", w.post("gen-2.5", studio, upload("data", exact+"x"), upload("reference_image", "no image"),
		text("seed", "x")))
	want := []string{
		"Value error, The file is larger than 1 MiB.",
		"Value error, The file must be an image: GIF, PNG, JPG, WEBP, AVIF, HEIC, BMP or TIF.",
		"Input should be a valid integer, unable to parse string as an integer",
	}
	for i, line := range o.lines {
		if got := line.(problem).Msg; len(o.lines) != len(want) || got != want[i] {
			t.Errorf("problem %d: %s", i, got)
		}
	}
	w.nothingStays()

	odd := newWorld(t, setup{maxUpload: 1000})
	problems := odd.problems(odd.post("gen-2.5", studio, upload("data", movie+string(frames(1000)))))
	if len(problems) != 1 || problems[0].Msg != "Value error, The file is larger than 1000 bytes." {
		t.Errorf("got %v", problems)
	}
}
