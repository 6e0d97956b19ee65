package api

import (
	"net/url"
	"strings"
)

// newDocsPage returns the page with the OpenAPI document. Its policy lets "Try it" call both
// services and show images and videos in their responses.
func (s *service) newDocsPage() (*page, error) {
	return newPage("docs", nil, "connect-src 'self'"+originOf(s.inferenceURL()), "frame-ancestors 'none'",
		"img-src data: blob:", "media-src blob:")
}

// originOf returns the origin of a URL for a policy, with a leading space, or "".
func originOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || strings.ContainsAny(parsed.Host, " ;,'\"") {
		return ""
	}
	return " " + parsed.Scheme + "://" + parsed.Host
}
