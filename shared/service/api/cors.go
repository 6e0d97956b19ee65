package api

import "strings"

var exposed = []string{strings.Join([]string{
	"X-Request-Id", "X-Job-Id", "X-Changed", "X-Engine", "X-Understood", "X-Notice", "Retry-After", replayedHeader,
	"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "ETag", "Content-Disposition", "Content-Length", "Content-Range", "Accept-Ranges", "Allow", "Deprecation", "Link",
	"Location", "Preference-Applied",
}, ", ")}
