package file

import "time"

// SignedUpload is a signed request that uploads the bytes of a pending file without an API key.
type SignedUpload struct {
	// URL is absolute, or a path and query of this service.
	URL string
	// Headers holds the required header fields, in addition to the usual fields of HTTP clients.
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
