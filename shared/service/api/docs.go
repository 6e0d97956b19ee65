package api

import (
	"net/url"
	"strings"
)

// The content security policy lets "Try it" call both services and show images and videos.
func (s *service) newDocsPage() (*page, error) {
	return newPage("docs", nil, "connect-src 'self'"+originOf(s.inferenceURL()), "frame-ancestors 'none'",
		"img-src data: blob:", "media-src blob:")
}

func originOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || strings.ContainsAny(parsed.Host, " ;,'\"") {
		return ""
	}
	return " " + parsed.Scheme + "://" + parsed.Host
}
