package job_test

import (
	"bytes"
	"testing"

	"cutroom/shared/domain/job"
)

func TestThumbnailsSurviveEncoding(t *testing.T) {
	for _, c := range []job.Thumbnails{
		{Result: []byte("result"), Input: []byte("input")}, {Result: []byte("result")}, {Input: []byte("input")}, {},
		{Result: []byte("result"), Input: []byte("input"), Poster: []byte("poster")}, {Poster: []byte("poster")},
	} {
		got, err := job.DecodeThumbnails(c.Encode())
		if err != nil || !bytes.Equal(got.Result, c.Result) || !bytes.Equal(got.Input, c.Input) ||
			!bytes.Equal(got.Poster, c.Poster) {
			t.Errorf("%q became %q, %v", c, got, err)
		}
	}
	for _, broken := range []string{"", "\x00\x00\x00", "\x00\x00\x00\x02x", "\xff\xff\xff\xffxxxx",
		"poster\n", "\x00\x00\x00\x00poster\n", "\x00\x00\x00\x00p\x00\x00\x00\x09poster\n"} {
		if got, err := job.DecodeThumbnails([]byte(broken)); err == nil {
			t.Errorf("%q was decoded as %q, want an error", broken, got)
		}
	}
}
