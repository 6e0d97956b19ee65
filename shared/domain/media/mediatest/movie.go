package mediatest

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// rotate writes a rotation into the header of the first track, as phone cameras do.
func rotate(t testing.TB, path string, degrees int) {
	t.Helper()
	const one, minusOne, w = 1 << 16, 0xffff0000, 1 << 30
	matrices := map[int][9]uint32{
		90:  {0, one, 0, minusOne, 0, 0, 0, 0, w},
		180: {minusOne, 0, 0, 0, minusOne, 0, 0, 0, w},
		270: {0, minusOne, 0, one, 0, 0, 0, 0, w},
	}
	content := read(t, path)
	header := content[boxContent(t, content, "tkhd"):]
	for i, value := range matrices[degrees] {
		binary.BigEndian.PutUint32(header[40+4*i:], value)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// boxContent returns the offset of the content of the first box of the given type, whose version must be 0.
func boxContent(t testing.TB, movie []byte, kind string) int {
	t.Helper()
	// The name could also occur in the picture data, which precedes the header here.
	moov := bytes.LastIndex(movie, []byte("moov"))
	at := bytes.Index(movie[max(0, moov):], []byte(kind))
	if moov < 0 || at < 0 {
		t.Fatalf("the movie has no box %q", kind)
	}
	return moov + at + 4
}

// ClaimDuration rewrites the header of an MP4, and optionally of its tracks, to claim a duration in seconds.
func ClaimDuration(t testing.TB, path string, seconds uint32, tracksToo bool) string {
	t.Helper()
	content := read(t, path)
	moov := content[boxContent(t, content, "mvhd")-8-8:]
	set := func(kind string, scaleAt, durationAt int, scale uint32) uint32 {
		rest := moov
		for {
			at := bytes.Index(rest, []byte(kind))
			if at < 0 {
				return scale
			}
			rest = rest[at+4:]
			if scaleAt > 0 {
				scale = binary.BigEndian.Uint32(rest[scaleAt:])
			}
			binary.BigEndian.PutUint32(rest[durationAt:], seconds*scale)
		}
	}
	scale := set("mvhd", 12, 16, 0)
	if tracksToo {
		set("tkhd", 0, 20, scale)
		set("mdhd", 12, 16, 0)
	}
	return write(t, "claims.mp4", content)
}
