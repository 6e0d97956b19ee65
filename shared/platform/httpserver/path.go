package httpserver

import (
	"net/http"
	"strings"
)

const version = "/v1/"

// PrefixHeader contains the path under which a proxy or an API Gateway stage serves the service.
// The request's path does not include it.
const PrefixHeader = "X-Forwarded-Prefix"

// collapseSlashes accepts paths like //v1/files, for base URLs that end with a slash. It does not
// redirect, because many clients do not follow redirects of a POST.
func collapseSlashes(r *http.Request) *http.Request {
	path := r.URL.Path
	if !strings.HasPrefix(path, "//") && !strings.HasPrefix(path, version+"/") {
		return r
	}
	url := *r.URL
	url.Path, url.RawPath = tidy(path), tidy(url.RawPath)
	tidied := *r
	tidied.URL = &url
	return &tidied
}

func tidy(path string) string {
	if strings.HasPrefix(path, "//") {
		path = "/" + strings.TrimLeft(path, "/")
	}
	if rest, ok := strings.CutPrefix(path, version); ok {
		path = version + strings.TrimLeft(rest, "/")
	}
	return path
}
