package media

import "github.com/gabriel-vasile/mimetype"

// SniffLen is how many bytes from the front of a file [Sniff] needs, at most.
const SniffLen = 4096

// Sniff tells the type of a file by its first bytes, of which it looks at
// SniffLen at most, and reports whether it is one that the service accepts.
func Sniff(head []byte) (Type, bool) {
	return Find(mimetype.Detect(head[:min(len(head), SniffLen)]).String())
}
