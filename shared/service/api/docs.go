package api

// newDocsPage makes the page that shows the OpenAPI document. Beside calling
// this service for "Try it", it may show what such a call answers.
func newDocsPage() (*page, error) {
	return newPage("docs", nil, "frame-ancestors 'none'", "img-src data: blob:", "media-src blob:")
}
