package api_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/alloctest"
)

// hostileHeaders are header fields of callers without a credential, as large as a header
// may be.
func hostileHeaders() map[string][]string {
	const most = 60 << 10
	jwt := func(claims string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + strings.Repeat("A", 43)
	}
	return map[string][]string{
		"nothing":         nil,
		"header lines":    strings.Split(strings.TrimSuffix(numbered(most, "", "a%x:\n", ""), "\n"), "\n"),
		"same lines":      strings.Split(strings.TrimSuffix(filled(most, "", "a:\n", ""), "\n"), "\n"),
		"cookies":         {numbered(most, "Cookie: a=b", "; a%x=b", "")},
		"ranges":          {filled(most, "Range: bytes=0-0", ",0-0", "")},
		"etags":           {filled(most, "If-None-Match: \"a\"", ",\"\"", "")},
		"accepts":         {filled(most, "Accept: a/b", ",*/*", "")},
		"languages":       {filled(most, "Accept-Language: a", ",a", "")},
		"encodings":       {filled(most, "Accept-Encoding: gzip", ",a", "")},
		"hops":            {filled(most, "X-Forwarded-For: 1.1.1.1", ",1.1.1.1", "")},
		"forwarded":       {filled(most, "Forwarded: for=a", ",for=a", "")},
		"origin":          {filled(most, "Origin: https://a", "a", ""), "Access-Control-Request-Method: GET"},
		"media type":      {numbered(most, "Content-Type: multipart/form-data; boundary=x", ";a%x=b", "")},
		"long key":        {filled(most, "x-api-key: ck_", "a", "")},
		"junk key":        {"x-api-key: ck_" + strings.Repeat("a", 40)},
		"junk token":      {"x-api-key: ek_" + strings.Repeat("a", 40)},
		"long token":      {filled(most, "x-api-key: ek_", "a", "")},
		"deep token":      {"x-api-key: " + jwt(strings.Repeat("[", 40<<10))},
		"token of lists":  {"x-api-key: " + jwt(filled(40<<10, `{"aud":[`, `"",`, `""]}`))},
		"token of claims": {"x-api-key: " + jwt(numbered(40<<10, `{"a":0`, `,"%x":0`, `}`))},
		"token of dots":   {filled(most, "x-api-key: a", ".a", "")},
		"token header": {"x-api-key: " + base64.RawURLEncoding.EncodeToString([]byte(filled(40<<10, `{"alg":"HS256","crit":[`, `"",`,
			`""]}`))) + ".e30.AA"},
		"bearer": {filled(most, "Authorization: Bearer ", "a.", "")},
	}
}

// hostileQueries are queries that follow a path.
func hostileQueries() map[string]string {
	const most = 60 << 10
	return map[string]string{
		"no query": "", "pairs": filled(most, "?", "&", ""), "names": numbered(most, "?a", "&%x", ""),
		"same names": filled(most, "?a", "&a=", ""), "a signature": "?" + filled(most, "signature=", "a", ""),
		"a cursor": "?cursor=" + filled(most, "", "A", ""), "escapes": filled(most, "?api_key=", "%20", ""),
		"a token": "?api_key=ek_" + strings.Repeat("a", 40),
	}
}

// A call without a credential takes at most 20 bytes of memory for each byte received,
// and 128 KiB. The service answers it, and never with a server error.
func TestMemoryOfAnonymousCalls(t *testing.T) {
	w := newWorld(t, setup{origins: httpserver.Origins{}})
	lines := []string{
		"POST /v1/models/resolve", "GET /v1/engine", "GET /v1/looks", "POST /v1/understand", "GET /v1/shares/job_x",
		"PUT /v1/uploads/file_x", "GET /", "GET /healthz", "GET /health", "GET /openapi.json", "GET /openapi.yaml", "GET /docs",
		"GET /v1/realtime", "GET /nowhere", "OPTIONS /v1/jobs", "TRACE /v1/jobs", "POST /v1/jobs/gen-2.5/" + strings.Repeat("a/", 20<<10),
		"GET /" + strings.Repeat("%2e%2e/", 8<<10), "GET /v1/" + strings.Repeat("/", 50<<10), "GET /v1/jobs/" + strings.Repeat("a", 50<<10),
	}
	protected := 0
	for _, c := range w.protectedRoutes() {
		protected++
		method, _, _ := strings.Cut(c.Endpoint, " ")
		lines = append(lines, method+" "+c.Path)
	}
	calls := 0
	check := func(name string, request []byte, refused bool) {
		t.Helper()
		var status int
		calls++
		most := 20*len(request) + 128<<10
		if took := alloctest.Least(func() { status = w.sendBytes(request) }, most); took > most {
			t.Errorf("%s: %d bytes took %d bytes of memory, status %d", name, len(request), took, status)
		}
		if status >= 500 || refused && status < 400 && status != 0 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	for i, line := range lines {
		refused := i >= len(lines)-protected
		_ = w.sendBytes(requestBytes(line, "")) // opens and caches
		for name, fields := range hostileHeaders() {
			check(fmt.Sprintf("%.60s with %s", line, name), requestBytes(line, "", fields...), refused)
		}
		if len(line) < 1000 {
			for name, query := range hostileQueries() {
				at := line
				if strings.Contains(line, "?") {
					query = strings.Replace(query, "?", "&", 1)
				}
				check(fmt.Sprintf("%.60s with %s", line, name), requestBytes(at+query, ""), refused)
			}
		}
		waits := requestBytes(line, "", "Expect: 100-continue", "Content-Length: 1000000000")
		check(fmt.Sprintf("%.60s with a body that waits", line), waits, refused)
		chunks := append(requestBytes(line, "", "Transfer-Encoding: chunked"), strings.Repeat("1\r\na\r\n", 10<<10)+"0\r\n\r\n"...)
		check(fmt.Sprintf("%.60s with a chunked body", line), chunks, refused)
	}
	t.Logf("%d calls of %d routes", calls, len(lines))
}
