package file

import "time"

// SignedUpload is a signed request that uploads the bytes of a pending file without an API key.
type SignedUpload struct {
	URL string // absolute, or a path and query of this service
	// Headers lists the required header fields, in addition to the usual fields of HTTP clients.
	Headers   map[string]string
	ExpiresAt time.Time
}

type Arrival struct {
	Size int64
	MD5  string // lower-case hex
}
