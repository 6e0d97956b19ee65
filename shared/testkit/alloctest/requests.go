package alloctest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
)

// Serve serves a handler as the services do, until the test ends, and returns the address.
func Serve(t testing.TB, handler http.Handler) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httpserver.New(httpserver.Config{
		Handler: handler, Logger: slog.New(slog.DiscardHandler), Loop: os.Getenv("CUTROOM_NET_HTTP") == "",
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Shutdown(context.Background())
		if err := await.Receive(t, "served", served); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// Send sends the bytes of a request on a new connection. It returns the response's status and size,
// or zeros without a response.
func Send(t testing.TB, address string, request []byte) (status, received int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(await.Max)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(request) // the server may respond before it has read everything
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, 0
	}
	defer response.Body.Close()
	size, _ := io.Copy(io.Discard, response.Body)
	return response.StatusCode, int(size)
}

// Request returns the bytes of a request. If body is "", the request has no body.
func Request(line, body string, fields ...string) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", line)
	for _, field := range fields {
		text.WriteString(field + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body))
	}
	text.WriteString("\r\n" + body)
	return text.Bytes()
}

// Filled returns head, then as many pieces as fit into the given number of bytes, then tail.
func Filled(bytes int, head, piece, tail string) string {
	return head + strings.Repeat(piece, (bytes-len(head)-len(tail))/len(piece)) + tail
}

// Numbered is like Filled, but piece is a format string for the piece's number, so all pieces differ.
func Numbered(bytes int, head, piece, tail string) string {
	var text strings.Builder
	text.WriteString(head)
	for n := 0; text.Len() < bytes-len(tail)-20; n++ {
		fmt.Fprintf(&text, piece, n)
	}
	return text.String() + tail
}

// Headers returns header fields of callers without a valid credential, by name. They are as large
// as a header may be. credential is the text before a credential, such as "x-api-key: ".
func Headers(credential string) map[string][]string {
	const most = 60 << 10
	jwt := func(header, claims string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + strings.Repeat("A", 86)
	}
	const alg = `{"alg":"EdDSA","typ":"JWT"}`
	headers := map[string][]string{
		"nothing":      nil,
		"header lines": strings.Split(strings.TrimSuffix(Numbered(most, "", "a%x:\n", ""), "\n"), "\n"),
		"same lines":   strings.Split(strings.TrimSuffix(Filled(most, "", "a:\n", ""), "\n"), "\n"),
		"cookies":      {Numbered(most, "Cookie: a=b", "; a%x=b", "")},
		"ranges":       {Filled(most, "Range: bytes=0-0", ",0-0", "")},
		"etags":        {Filled(most, "If-None-Match: \"a\"", ",\"\"", "")},
		"accepts":      {Filled(most, "Accept: a/b", ",*/*", "")},
		"languages":    {Filled(most, "Accept-Language: a", ",a", "")},
		"encodings":    {Filled(most, "Accept-Encoding: gzip", ",a", "")},
		"hops":         {Filled(most, "X-Forwarded-For: 1.1.1.1", ",1.1.1.1", "")},
		"forwarded":    {Filled(most, "Forwarded: for=a", ",for=a", "")},
		"origin":       {Filled(most, "Origin: https://a", "a", ""), "Access-Control-Request-Method: GET"},
		"media type":   {Numbered(most, "Content-Type: multipart/form-data; boundary=x", ";a%x=b", "")},
		"traces":       {Filled(most, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ntracestate: a=b", ",a=b", "")},
		"baggage":      {Numbered(most, "baggage: a=b", ",a%x=b", "")},
		"both schemes": {Filled(most, "Authorization: Bearer ", "a.", "")},
	}
	for name, secret := range map[string]string{
		"long key":        Filled(most, "ck_", "a", ""),
		"junk key":        "ck_" + strings.Repeat("a", 40),
		"junk token":      "ek_" + strings.Repeat("a", 40),
		"long token":      Filled(most, "ek_", "a", ""),
		"deep token":      jwt(alg, strings.Repeat("[", 40<<10)),
		"token of dots":   Filled(most, "a", ".a", ""),
		"token header":    jwt(Filled(40<<10, `{"alg":"EdDSA","crit":[`, `"",`, `""]}`), "{}"),
		"token of lists":  jwt(alg, Filled(40<<10, `{"aud":[`, `"",`, `""]}`)),
		"token of claims": jwt(alg, Numbered(40<<10, `{"a":0`, `,"%x":0`, `}`)),
		// These are the longest tokens that the service may decode.
		"short deep token":      jwt(alg, strings.Repeat("[", 11<<10)),
		"short token of models": jwt(alg, Filled(11<<10, `{"permissions":{"models":[`, `"",`, `""]}}`)),
		"short token of lists":  jwt(alg, Filled(11<<10, `{"aud":[`, `"",`, `""]}`)),
		"short token of claims": jwt(alg, Numbered(11<<10, `{"a":0`, `,"%x":0`, `}`)),
		"short token header":    jwt(Filled(11<<10, `{"alg":"EdDSA","crit":[`, `[],`, `0]}`), "{}"),
		"short header claims":   jwt(Numbered(11<<10, `{"alg":"EdDSA"`, `,"%x":0`, `}`), "{}"),
		"short header objects":  jwt(Filled(11<<10, `{"alg":"EdDSA","crit":[`, `{"":0},`, `0]}`), "{}"),
	} {
		headers[name] = []string{credential + secret}
	}
	return headers
}

// Queries returns queries of callers without a valid credential, by name. They can be appended to a path.
func Queries() map[string]string {
	const most = 60 << 10
	return map[string]string{
		"no query": "", "pairs": Filled(most, "?", "&", ""), "names": Numbered(most, "?a", "&%x", ""),
		"same names": Filled(most, "?a", "&a=", ""), "a signature": "?" + Filled(most, "signature=", "a", ""),
		"a cursor": "?cursor=" + Filled(most, "", "A", ""), "escapes": Filled(most, "?api_key=", "%20", ""),
		"a token": "?api_key=ek_" + strings.Repeat("a", 40),
	}
}

// anonymousSlack is how much memory a call without a credential may use, in addition to 20 bytes per byte received.
const anonymousSlack = 128 << 10

// CheckAnonymous sends hostile requests without a valid credential for each line, such as "GET /v1/jobs", and returns
// the number of requests. The test fails if a request uses more than 20 bytes of memory per byte received plus 128
// KiB, or gets a 5xx status. If rejected is true, all requests must get a 4xx status. With more than 12 lines, each
// is sent with only a third of the header fields and queries, because all routes read them in the same way.
func CheckAnonymous(t testing.TB, address, credential string, rejected bool, lines ...string) (sent int) {
	t.Helper()
	check := func(name string, request []byte) {
		t.Helper()
		sent++
		status, size := 0, 0
		most := perByte*len(request) + anonymousSlack
		if took := Least(func() { status, size = Send(t, address, request) }, most); took > most {
			t.Errorf("%s: %d bytes took %d bytes of memory, status %d, %d bytes returned", name, len(request), took, status, size)
		}
		if status >= 500 || rejected && status < 400 && status != 0 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	headers := Headers(credential)
	names := slices.Sorted(maps.Keys(headers))
	queries := Queries()
	queryNames := slices.Sorted(maps.Keys(queries))
	for i, line := range lines {
		Send(t, address, Request(line, "")) // opens connections and fills caches
		for j, name := range names {
			if len(lines) > 12 && (i+j)%3 > 0 {
				continue
			}
			check(fmt.Sprintf("%.60s with %s", line, name), Request(line, "", headers[name]...))
		}
		if len(line) < 1000 {
			for j, name := range queryNames {
				if len(lines) > 12 && (i+j)%3 > 0 {
					continue
				}
				query := queries[name]
				if strings.Contains(line, "?") {
					query = strings.Replace(query, "?", "&", 1)
				}
				check(fmt.Sprintf("%.60s with %s", line, name), Request(line+query, ""))
			}
		}
		waits := Request(line, "", "Expect: 100-continue", "Content-Length: 1000000000")
		check(fmt.Sprintf("%.60s with a body that waits", line), waits)
		chunks := append(Request(line, "", "Transfer-Encoding: chunked"), strings.Repeat("1\r\na\r\n", 10<<10)+"0\r\n\r\n"...)
		check(fmt.Sprintf("%.60s with a chunked body", line), chunks)
	}
	return sent
}

// CheckUnread sends requests that have no valid credential and whose bodies stop after the first
// byte. Each must get the status, which shows that the server does not wait for the body.
func CheckUnread(t testing.TB, address string, status int, lines ...string) {
	t.Helper()
	for _, line := range lines {
		for _, begun := range []string{
			"Content-Length: 1000\r\n\r\na", "Content-Length: 1000000000\r\n\r\na", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
		} {
			request := fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", line, begun)
			if got, _ := Send(t, address, []byte(request)); got != status {
				t.Errorf("%.80s with the first byte of a body (%.24q): status %d, want %d", line, begun, got, status)
			}
		}
	}
}
