package file

import "time"

// SignedUpload is a signed request that uploads the bytes of a pending file without a key.
type SignedUpload struct {
	// URL is absolute, or a path of this service with its query.
	URL string
	// Headers are required fields, in addition to the usual ones of HTTP clients.
	Headers   map[string]string
	ExpiresAt time.Time
}

// Arrival describes the bytes that a signed upload stored.
type Arrival struct {
	// Size is in bytes.
	Size int64
	// MD5 is in lower-case hex.
	MD5 string
}
