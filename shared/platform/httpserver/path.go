package httpserver

import (
	"net/http"
	"strings"
)

const version = "/v1/"

// PrefixHeader has the path below which a proxy, or a stage of API Gateway, serves the service. The
// request's path does not include it.
const PrefixHeader = "X-Forwarded-Prefix"

// collapseSlashes removes empty segments at the start of a path: a base URL that ends with a slash
// makes //v1/files or /v1//files. It does not redirect, because many clients do not follow the
// redirect of a POST. Other empty segments are kept.
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
