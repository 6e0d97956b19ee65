package api

import "strings"

// exposed are the fields of an answer's header that a browser shows to the page,
// beside those that it always does.
var exposed = strings.Join([]string{
	"X-Request-Id", "X-Job-Id", "Retry-After", replayedHeader, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
	"ETag", "Content-Disposition", "Content-Length", "Content-Range", "Accept-Ranges", "Allow", "Deprecation", "Link", "Location",
}, ", ")
