package file

import "time"

// SignedUpload is a request that may carry the bytes of a promised file without
// a key, as a signature permits it.
type SignedUpload struct {
	// URL is absolute, or a path of this service with its query.
	URL string
	// Headers are those that the request must have, beside the ones that every
	// HTTP client sends.
	Headers map[string]string
	// ExpiresAt is when the permission ends.
	ExpiresAt time.Time
}

// Arrival is what has come by a signed upload.
type Arrival struct {
	// Size is in bytes.
	Size int64
	// MD5 of the bytes, in lower-case hex.
	MD5 string
}
