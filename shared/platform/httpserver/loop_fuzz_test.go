package httpserver

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"testing"
)

// FuzzLoopReadsLikeNetHTTP checks that the loop serves only requests that net/http reads in the same way, and in which
// the framing parser finds no fault.
func FuzzLoopReadsLikeNetHTTP(f *testing.F) {
	const start = "POST /v1/chat/completions HTTP/1.1\r\nHost: x.example:80\r\n"
	for _, rest := range []string{
		"Content-Length: 2\r\n\r\n{}", "content-length:2\r\nAuthorization: Bearer x\r\nA: 1\r\na: 2\r\n\r\n{}POST / HTTP/1.1\r\n",
		"Content-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}", "Content-Length: 2\r\r\n\r\n{}", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"Content-Length: 02\r\n\r\n{}", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Content-Length : 2\r\n\r\n{}",
		"Content-Length: 2\n\r\n{}", "Content-Length: 2\r\n X: y\r\n\r\n{}", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"Content-Length: 2\r\nX:\r\n\r\n{}", "Host: y\r\nContent-Length: 2\r\n\r\n{}", "Content-Length: +2\r\n\r\n{}", "Content-Length: 2\r\nA:\tb\r\n\r\n{}",
	} {
		f.Add([]byte(start + rest))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkHead(t, text) })
}

// TestLoopReadsLikeNetHTTP checks generated heads, of which the loop serves about a third.
func TestLoopReadsLikeNetHTTP(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("LOOP_HEADS"))
	count = max(count, 20_000)
	random := rand.New(rand.NewPCG(1, 2))
	served := 0
	for range count {
		if checkHead(t, generatedHead(random)) {
			served++
		}
	}
	if t.Logf("the loop serves %d of %d", served, count); served < count/10 {
		t.Errorf("the loop serves only %d of %d heads", served, count)
	}
}

func generatedHead(random *rand.Rand) []byte {
	pick := func(usual string, odd ...string) string {
		if random.IntN(60) > 0 {
			return usual
		}
		return odd[random.IntN(len(odd))]
	}
	usual := []string{
		"Host: x", "host:y.example:8080", "Content-Length: 7", "content-length:  12 ", "Authorization: Bearer ck_x", "Accept: */*",
		"User-Agent: a/1 (b; c)", "Connection: keep-alive", "X-A: 1", "x-a: 2", "X-Empty:", "Accept-Encoding: gzip, br", "cOOKIE: a=b",
		"Content-Type: application/json", "Traceparent: 00-1-2-01", "X-Forwarded-For: 1.2.3.4", "Origin: https://a", "_x!#$%&'*+.^`|~: y",
	}
	odd := []string{
		"Transfer-Encoding: chunked", "transfer-encoding:identity", "Expect: 100-continue", "Upgrade: h2c", "Connection: close",
		"Connection: keep-alive, upgrade", "Content-Length: 0", "Content-Length: 07", "Content-Length: +7", "Content-Length: 7, 7",
		"Content-Length: 7\t", "Content-Length: 99999999999999999999", "Host: a b", "Host: ", "Host:\x00", "X Y: z", " X: folded",
		"\tX: folded", "X : y", ": y", "X", "X: \x80", "X: \r", "X: a\rb", "X: a\nb", "X\n: y", "Trailer: X", "Pragma: no-cache", "TE: trailers",
		"Content-Length\x00: 7", "Content-Length: 0x7", "Content_Length: 7", "Proxy-Connection: close", "\xffHost: x", "Host: [::1]:80",
	}
	text := pick("POST", "GET", "post", "PRI", "POST ", "\r\nPOST", "POSTX") + " " +
		pick("/v1/chat/completions", "*", "//a", "/a//b", "/a?b", "/a%20b", "/a b", "/\x80", "http://h/a", "a", "/a#b", "/../a", "/.", "/a\x00") +
		pick(" HTTP/1.1", " HTTP/1.0", " HTTP/1.10", "  HTTP/1.1", " HTTP/2.0", "", " HTTP/1.1 ", "\tHTTP/1.1") + pick("\r\n", "\n", "\r", "\r\r\n", " \r\n")
	lines := []string{"Host: x", "Content-Length: 7"}
	for range random.IntN(6) {
		lines = append(lines, usual[random.IntN(len(usual))])
	}
	if random.IntN(3) == 0 {
		lines = append(lines, odd[random.IntN(len(odd))])
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if random.IntN(10) == 0 {
		lines = lines[1:]
	}
	for _, line := range lines {
		text += line + pick("\r\n", "\n", "\r", "\r\r\n", "\n\r\n", "\r\n\r\n")
	}
	made := []byte(text + pick("\r\n", "\n", "\r", "\r\r\n", ""))
	if random.IntN(5) == 0 { // any single byte
		made[random.IntN(len(made))] = byte(random.IntN(256))
	}
	return made
}

// checkHead reports whether the loop serves a request.
func checkHead(t *testing.T, text []byte) (served bool) {
	head, ok := parseHead(text, nil)
	if !ok || head.length > 1<<20 {
		return false
	}
	text = append(text, make([]byte, head.length)...)
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", text, err)
	}
	r.Header.Del("Host")
	if r.Method != http.MethodPost || r.URL.Path != head.path || r.URL.RawQuery != "" || r.URL.Host != "" || r.Host != head.host ||
		r.ContentLength != head.length || r.Close || len(r.TransferEncoding) > 0 || r.Proto != "HTTP/1.1" {
		t.Fatalf("of %q net/http reads %+v, the loop %+v", text, r, head)
	}
	if !reflect.DeepEqual(r.Header, head.header) {
		t.Fatalf("of %q net/http reads the header %q, the loop %q", text, r.Header, head.header)
	}
	body, err := io.ReadAll(r.Body)
	end := head.size + int(head.length)
	if err != nil || !bytes.Equal(body, text[head.size:end]) {
		t.Fatalf("of %q net/http reads the body %q, %v", text, body, err)
	}
	var framing framing
	if n, err := framing.follow(text[:end]); n != end || err != nil || framing.part != startLine || len(framing.line) > 0 {
		t.Fatalf("the framing of %q is at fault: %v", text, err)
	}
	return true
}
