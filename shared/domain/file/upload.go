package file

import "time"

// SignedUpload is a signed request with which the bytes of a pending file can be uploaded without an API key.
type SignedUpload struct {
	URL string // an absolute URL, or a path and query of this service
	// Headers lists the header fields to send in addition to the usual fields of HTTP clients.
	Headers   map[string]string
	ExpiresAt time.Time
}

type Arrival struct {
	Size int64
	MD5  string // lower-case hex
}
