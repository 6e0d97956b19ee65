package c2pa_test

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"slices"
	"testing"

	"cutroom/shared/domain/origin"
	"cutroom/shared/service/c2pa"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
)

func TestFileWithTooManyBoxesIsRejected(t *testing.T) {
	t.Parallel()
	s := newSigning(t, false)
	box := func(kind string, content ...byte) []byte {
		return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(content))), []byte(kind), content)
	}
	free := func(count int) []byte { return bytes.Repeat(box("free"), count) }
	start := box("ftyp", []byte("isom\x00\x00\x02\x00isommp42")...)
	long := slices.Concat([]byte("\x00\x00\x00\x01moov"), binary.BigEndian.AppendUint64(nil, 16+8*30_000), free(30_000))
	// A user data box may end with four zero bytes, which are not a box.
	ended := box("moov", slices.Concat(box("udta", 0, 0, 0, 0), free(30_000))...)
	reader := c2pa.Reader{Library: c2patest.Library(t), Time: await.Max, Logger: slog.New(slog.DiscardHandler)}
	for name, c := range map[string]struct {
		boxes []byte
		want  string
	}{
		"few":                      {free(1000), origin.None},
		"in the file":              {free(30_000), origin.Unreadable},
		"in a box":                 {box("moov", box("trak", free(30_000)...)...), origin.Unreadable},
		"in a box of 64 b":         {long, origin.Unreadable},
		"after a malformed box":    {ended, origin.Unreadable},
		"in a full box":            {box("meta", append(make([]byte, 4), free(30_000)...)...), origin.Unreadable},
		"bytes that are not boxes": {box("free", free(30_000)...), origin.None},
	} {
		file, err := os.Open(s.file("boxes.mp4", slices.Concat(start, c.boxes)))
		if err != nil {
			t.Fatal(err)
		}
		report, err := reader.Verify(t.Context(), file)
		if err != nil || report.State != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, report, err, c.want)
		}
		file.Close()
	}
}
