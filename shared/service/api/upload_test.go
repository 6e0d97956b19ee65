package api_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// movie is the start of an MP4 whose frames follow and never end.
const movie = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42\x00\x00\x00\x00mdat"

// frames returns n bytes of varying content.
func frames(n int) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(i>>8 ^ i)
	}
	return bytes
}

// heap returns the bytes in use, or waiting to be collected.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// An upload is streamed to the blob store: the memory that it needs does not depend
// on its size.
func TestALargeUploadTakesLittleMemory(t *testing.T) {
	const size = 256 << 20
	w := newWorld(t, setup{})
	piece := frames(1 << 20)
	const before = "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n" + movie
	const after = "\r\n--x--\r\n"
	hash := md5.New()
	io.WriteString(hash, movie)
	w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"))) // warms up the database
	runtime.GC()
	idle, most := heap(), uint64(0)
	a, err := w.raw(func(conn *net.TCPConn) {
		io.WriteString(conn, head("gen-2.5", fmt.Sprintf("Content-Length: %d", len(before)+size+len(after)))+before)
		for range size / len(piece) {
			hash.Write(piece)
			if _, err := conn.Write(piece); err != nil {
				t.Fatal(err)
			}
			most = max(most, heap())
		}
		io.WriteString(conn, after)
	})
	if err != nil {
		t.Fatal(err)
	}
	if most > idle+32<<20 {
		t.Errorf("an upload of %d MiB took the heap from %d to %d MiB", size>>20, idle>>20, most>>20)
	}
	input := w.record(w.accepted(a)).Request.Inputs["data"]
	if want := hex.EncodeToString(hash.Sum(nil)); input.MD5 != want || input.Size != size+int64(len(movie)) ||
		input.MIME != "video/mp4" {
		t.Errorf("the input is %+v, want the MD5 %s", input, want)
	}
	info, err := os.Stat(filepath.Join(w.root, input.Blob))
	if err != nil || info.Size() != input.Size {
		t.Errorf("stored: %v %v", info, err)
	}
}

// A file over the limit is a problem of its part; the rest of the form is still
// validated.
func TestTheLimitOfAFile(t *testing.T) {
	const limit = 1 << 20
	w := newWorld(t, setup{maxUpload: limit})
	exact := movie + string(frames(limit-len(movie)))
	id := w.accepted(w.post("gen-2.5", studio, upload("data", exact)))
	if got := w.record(id).Request.Inputs["data"].Size; got != limit {
		t.Errorf("the size is %d", got)
	}
	if content(t, filepath.Join(w.root, "jobs", id, "data")) != exact {
		t.Error("the bytes are not those that were sent")
	}
	if err := w.blobs.DeleteAll(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	o := w.outcome("", w.post("gen-2.5", studio, upload("data", exact+"x"), upload("reference_image", "no image"),
		text("seed", "x")))
	want := []string{
		"Value error, The file is larger than 1 MiB.",
		"Value error, The file is not an image of a kind that is accepted: GIF, PNG, JPG, WEBP, AVIF, BMP or TIF.",
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
