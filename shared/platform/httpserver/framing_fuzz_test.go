package httpserver

import "testing"

// The result must not depend on how the bytes are split.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n"), 7)
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 1)
	f.Add([]byte("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3;x\nabc\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.0\r\n"+
		"Transfer-Encoding: x\r\n\r\n"), 2)
	f.Add([]byte("\r\n\r\nGET / HTTP/1.1\r\nX: y\r\n folded\r\n\r\n"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		if piece < 1 {
			return
		}
		var whole, pieces framing
		read := append([]byte(nil), stream...)
		n, err := whole.follow(read)
		if string(read) != string(stream) || n > len(stream) || err == nil && n != len(stream) {
			t.Fatalf("%d of %d bytes, %v", n, len(stream), err)
		}
		taken := 0
		var fault error
		for rest := stream; len(rest) > 0 && fault == nil; {
			part := rest[:min(piece, len(rest))]
			n, fault = pieces.follow(part)
			taken += n
			rest = rest[len(part):]
		}
		// If a line arrives in pieces, part of it may have been forwarded before the error.
		if fault != err || taken > len(stream) {
			t.Errorf("%v in pieces of %d, %v in one piece", fault, piece, err)
		}
	})
}
