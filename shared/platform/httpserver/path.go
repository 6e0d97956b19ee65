package httpserver

import (
	"net/http"
	"strings"
)

// version is the first segment of the paths of every surface.
const version = "/v1/"

// PrefixHeader carries the path below which a proxy, or a stage of API Gateway, serves
// the service; the path of the request is without it.
const PrefixHeader = "X-Forwarded-Prefix"

// collapseSlashes returns the request as a client with a tidy base URL would have sent it:
// a base URL that ends with a slash turns a path into //v1/files or /v1//files. The
// request is not redirected, because many clients do not follow the redirect of a POST.
// Elsewhere in a path an empty segment is kept.
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
