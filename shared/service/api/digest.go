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

// digestReader hashes a stream beside its reader: while one chunk is being
// written to the disk, the one before is being hashed. Whoever makes one calls
// sum or stop when the reading is over.
type digestReader struct {
	source io.Reader
	// left is how many bytes may be read, tooLarge what happens beyond.
	left     int64
	tooLarge error

	unread []byte // of the chunk in hand
	err    error
	free   chan []byte
	filled chan []byte
	hash   hash.Hash // the hashing goroutine's until hashed is closed
	hashed chan struct{}
}

// newDigestReader makes a reader of at most limit bytes; a longer source fails
// with tooLarge.
func newDigestReader(source io.Reader, limit int64, tooLarge error) *digestReader {
	d := &digestReader{
		source: source, left: limit, tooLarge: tooLarge,
		free: make(chan []byte, digestChunks), filled: make(chan []byte, digestChunks),
		hash: md5.New(), hashed: make(chan struct{}),
	}
	for range digestChunks {
		d.free <- nil // made when it is first needed: most files are small
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

// Read gives bytes that are being hashed.
//
// Errors: those of the source as they are; tooLarge.
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

// fill reads a chunk. The one before has been copied out whole, so that its
// memory may be among the free.
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

// stop ends the hashing.
func (d *digestReader) stop() {
	close(d.filled)
	<-d.hashed
}

// sum ends the hashing and gives the MD5 of all that was read, in hex.
func (d *digestReader) sum() string {
	d.stop()
	return hex.EncodeToString(d.hash.Sum(nil))
}
