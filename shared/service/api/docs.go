package api

import (
	"net/url"
	"strings"
)

// newDocsPage makes the page that shows the OpenAPI document. Beside calling
// both services for "Try it", it may show what such a call answers.
func (s *service) newDocsPage() (*page, error) {
	return newPage("docs", nil, "connect-src 'self'"+originOf(s.inferenceURL()), "frame-ancestors 'none'", "img-src data: blob:", "media-src blob:")
}

// originOf gives the origin of a URL for a policy, after a space; nothing where it
// has none that a policy can name.
func originOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || strings.ContainsAny(parsed.Host, " ;,'\"") {
		return ""
	}
	return " " + parsed.Scheme + "://" + parsed.Host
}
