package api

import (
	"crypto/md5"
	"encoding/hex"
	"hash"
	"io"
)

const (
	digestChunk  = 256 << 10
	digestChunks = 3
)

// digestReader hashes the bytes that it reads while the caller writes them. The caller must finally call sum or stop.
type digestReader struct {
	source io.Reader
	// left is how much of the limit remains, in bytes. Reading more fails with tooLarge.
	left     int64
	tooLarge error

	unread []byte // remaining bytes of the current chunk
	err    error
	free   chan []byte
	filled chan []byte
	hash   hash.Hash // owned by the hashing goroutine until the channel hashed is closed
	hashed chan struct{}
}

func newDigestReader(source io.Reader, limit int64, tooLarge error) *digestReader {
	d := &digestReader{
		source: source, left: limit, tooLarge: tooLarge,
		free: make(chan []byte, digestChunks), filled: make(chan []byte, digestChunks),
		hash: md5.New(), hashed: make(chan struct{}),
	}
	for range digestChunks {
		d.free <- nil // allocated when first needed: most files are small
	}
	go func() {
		defer close(d.hashed)
		for chunk := range d.filled {
			d.hash.Write(chunk)
			d.free <- chunk[:cap(chunk)]
		}
	}()
	return d
}

// Read returns the source's errors unchanged, or tooLarge.
func (d *digestReader) Read(p []byte) (int, error) {
	if len(d.unread) == 0 && d.err == nil {
		d.fill()
	}
	if len(d.unread) == 0 {
		return 0, d.err
	}
	n := copy(p, d.unread)
	d.unread = d.unread[n:]
	return n, nil
}

// fill reads the next chunk. The previous chunk has been copied, so its buffer may be reused.
func (d *digestReader) fill() {
	chunk := <-d.free
	if chunk == nil {
		chunk = make([]byte, digestChunk)
	}
	n := 0
	for n < len(chunk) && d.err == nil {
		var read int
		read, d.err = d.source.Read(chunk[n:])
		n += read
	}
	if d.left -= int64(n); d.left < 0 {
		n, d.err = 0, d.tooLarge
	}
	d.unread = chunk[:n]
	d.filled <- chunk[:n]
}

func (d *digestReader) stop() {
	close(d.filled)
	<-d.hashed
}

func (d *digestReader) sum() string {
	d.stop()
	return hex.EncodeToString(d.hash.Sum(nil))
}
