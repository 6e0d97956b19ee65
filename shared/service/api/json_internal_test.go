package api

import (
	"bytes"
	"io"
	"net/http/httptest"
	"testing"

	"cutroom/shared/testkit/alloctest"
)

// A stalled body of a few bytes must not hold a decoder's memory.
func TestCompressedBodiesAreDecodedOnlyAfterTheyHaveArrived(t *testing.T) {
	block := "\x02\x00\x10 " // 128 KiB of spaces
	held := alloctest.Of(func() {
		arrived := bytes.NewReader([]byte("\x28\xb5\x2f\xfd\x00\x40" + block + block))
		stalled := readerFunc(func([]byte) (int, error) {
			panic("the connection waits for more bytes")
		})
		defer func() { _ = recover() }()
		r := httptest.NewRequest("POST", "/v1/client/tokens", io.MultiReader(arrived, stalled))
		r.Header.Set("Content-Encoding", "zstd")
		_, _ = readJSON(r)
	})
	if held > 32<<10 {
		t.Errorf("a stalled body of 14 bytes took %d bytes of memory", held)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
