package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/testkit/await"
)

// keeping sends the responses on every connection in order, then closes the connection.
func keeping(t *testing.T, answers ...string) (u *modelServer, connections *atomic.Int64) {
	t.Helper()
	return scripted(t, func(_ int64, conn net.Conn, requests *bufio.Reader) {
		for _, answer := range answers {
			if !take(requests) {
				return
			}
			io.WriteString(conn, answer)
		}
	})
}

func inLength(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
}

func withField(field string) string {
	return strings.Replace(inLength(whole), "\r\n", "\r\n"+field+"\r\n", 1)
}

func inChunks(body, trailer string) string {
	return fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n",
		len(body), body, trailer)
}

// Calls reuse a connection. If the server closes it between two calls, no call fails.
func TestConnectionsAreReused(t *testing.T) {
	stream := eventStream(chunk("one"), last, used, done)
	u, connections := keeping(t,
		inLength(whole), inChunks(stream, ""), inLength(whole), inChunks(stream, "X-Trailer: a\r\n"),
		"HTTP/1.1 400 no\r\ncontent-length: 2\r\n\r\n{}", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"+inLength(whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	for round := range 3 {
		for i, status := range []int{200, 200, 200, 200, 400, 200} {
			request := plain
			if i == 1 || i == 3 {
				request = streamed
			}
			if a := w.chat(request); a.status != status || a.err != nil {
				t.Errorf("round %d, call %d: %d %s: %v", round, i, a.status, a.body, a.err)
			}
		}
		if n := connections.Load(); n != int64(round+1) {
			t.Errorf("%d connections after %d times as many calls as one takes", n, round+1)
		}
	}
}

func TestInvalidHTTPIsRejected(t *testing.T) {
	long, far := strings.Repeat("x", 10_000), strings.Repeat(" ", 5000)
	for name, c := range map[string]struct {
		answer string
		status int
	}{
		"no reason phrase":                       {strings.Replace(inLength(whole), "200 OK", "200", 1), 200},
		"lines that end with LF":                 {strings.Replace(inLength(whole), "\r\n", "\n", 4), 200},
		"field names in upper case":              {strings.Replace(inLength(whole), "Content-Length", "CONTENT-LENGTH", 1), 200},
		"a long field":                           {strings.Replace(inLength(whole), "\r\n", "\r\nX: "+long+"\r\n", 1), 200},
		"a body until the end of the connection": {"HTTP/1.1 200 OK\r\n\r\n" + whole, 200},
		"HTTP/1.0":                               {strings.Replace(inLength(whole), "HTTP/1.1", "HTTP/1.0", 1), 200},
		"chunks":                                 {inChunks(whole, ""), 200},
		"the same length twice":                  {strings.Replace(inLength(whole), "\r\n", fmt.Sprintf("\r\nContent-Length: %d\r\n", len(whole)), 1), 200},
		"two lengths":                            {withField("Content-Length: 3"), 502},
		"a negative length":                      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + whole, 502},
		"an unknown transfer coding":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + whole, 502},
		"chunks without a size":                  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 502},
		"truncated chunks":                       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{", 502},
		"chunks without an end":                  {strings.TrimSuffix(inChunks(whole, ""), "\r\n"), 502},
		"an endless trailer":                     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + strings.Repeat("X: "+long+"\r\n", 10), 502},
		"no content":                             {"HTTP/1.1 204 No Content\r\n\r\n", 502},
		"HTTP/2":                                 {"HTTP/2.0 200 OK\r\n\r\n" + whole, 502},
		"a status of four digits":                {"HTTP/1.1 2000 OK\r\n\r\n" + whole, 502},
		"endless interim responses":              {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100) + inLength(whole), 502},
		"an incomplete header":                   {"HTTP/1.1 200 OK\r\nContent-Le", 502},
		"an upgrade":                             {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + whole, 502},
		"a space before the colon":               {strings.Replace(inLength(whole), "Content-Length:", "Content-Length :", 1), 502},
		"a line without a colon":                 {withField("X"), 502},
		"a field on two lines":                   {withField("Transfer-Encoding:\r\n chunked"), 502},
		"chunked twice":                          {strings.Replace(inChunks(whole, ""), "\r\n", "\r\nTransfer-Encoding: chunked\r\n", 1), 502},
		"chunks with extensions":                 {strings.Replace(inChunks(whole, ""), "\r\n{", ";a=\"b\";c\r\n{", 1), 200},
		"a signed length":                        {strings.Replace(inLength(whole), "Content-Length: ", "Content-Length: +", 1), 502},
		"a signed chunk":                         {strings.Replace(inChunks(whole, ""), "\r\n\r\n", "\r\n\r\n+", 1), 502},
		"a signed status":                        {strings.Replace(inLength(whole), "200", "+200", 1), 502},
		"a header of small fields":               {withField(strings.Repeat("X: y\r\n", 20_000)), 502},
		"a length and chunks":                    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + inChunks(whole, "")[len("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"):], 200},
		"a short response":                       {inLength(whole)[:200], 502},
		"a carriage return in a field":           {withField("X: y\rContent-Length: 3"), 502},
		"two carriage returns":                   {withField("X: y\r"), 502},
		"a control character":                    {withField("X: \x00"), 502},
		"an invalid field name":                  {withField("X(y): z"), 502},
		"a version without a number":             {strings.Replace(inLength(whole), "HTTP/1.1", "HTTP/1.x", 1), 502},
		"a length and a vertical tab":            {strings.Replace(inLength(whole), "\r\n\r\n", "\v\r\n\r\n", 1), 502},
		"a second length far behind":             {strings.Replace(inLength(whole), "\r\n\r\n", far+"0\r\n\r\n", 1), 502},
		"a trailer":                              {inChunks(whole, "X: y\r\n"), 200},
		"a long trailer":                         {inChunks(whole, "X: "+long+"\r\n"), 502},
		"an invalid trailer":                     {inChunks(whole, "no field\r\n"), 502},
		"a trailer that ends with LF":            {inChunks(whole, "X: y\n"), 502},
		"a length with a leading zero":           {strings.Replace(inLength(whole), "Content-Length: ", "Content-Length: 0", 1), 502},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, _ := keeping(t, c.answer)
			w := newWorld(t, setup{upstreams: []*modelServer{u}})
			a := w.chat(plain)
			if a.status != c.status || c.status == 200 && a.body != asSmall(whole) {
				t.Errorf("got %d %s, want %d", a.status, a.body, c.status)
			}
		})
	}
}

// The request is too large for a connection's buffers.
func TestLargeRequestsAreSent(t *testing.T) {
	large := strings.Replace(plain, "one two", strings.Repeat("x", 8<<20), 1)
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{u}})
	if a := w.chat(large); a.status != 200 || len(u.seen()[0].body) < 8<<20 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	large = strings.Replace(streamed, "one two", strings.Repeat("x", 8<<20), 1)
	u.now(events(chunk("one"), last, used, done))
	if a := w.chat(large); a.body != eventStream(asSmall(chunk("one")), asSmall(last), done) {
		t.Errorf("got %s", a.body)
	}
	u.now(func(c *call) { c.stream(); c.write(eventStream(chunk("one"))); c.reset() })
	if a := w.chat(large); !strings.Contains(a.body, "upstream_error") {
		t.Errorf("got %s", a.body)
	}
}

// The server responds before it has read the whole request. The connection is not reused.
func TestEarlyResponseToLargeRequestIsUsed(t *testing.T) {
	large := strings.Replace(plain, "one two", strings.Repeat("x", 16<<20), 1)
	refusal := `{"error":{"message":"too long for me"}}`
	left := make(chan struct{})
	hasty, _ := scripted(t, func(_ int64, conn net.Conn, requests *bufio.Reader) {
		if _, err := http.ReadRequest(requests); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 400 x\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
		}
		<-left
	})
	t.Cleanup(func() { close(left) })
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{hasty}})
	for range 2 {
		if a := w.chat(large); a.status != 400 || !strings.Contains(a.body, "too long for me") {
			t.Errorf("got %d %s: %v", a.status, a.body, a.err)
		}
	}
	u, _ := keeping(t, inLength(whole), inLength(whole), inLength(whole))
	w = newWorld(t, setup{rows: longRow, upstreams: []*modelServer{u}})
	for range 3 {
		if a := w.chat(large); a.status != 200 || a.body != asSmall(whole) {
			t.Errorf("got %d %s: %v", a.status, a.body, a.err)
		}
	}
}

// If a caller disconnects while its large request is being sent, the connection is closed.
func TestDisconnectedCallerStopsLargeRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{{url: "http://" + listener.Addr().String() + "/v1"}}})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		large := strings.Replace(plain, "one two", strings.Repeat("x", 16<<20), 1)
		w.do(w.request(ctx, http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(large)))
	}()
	conn, err := listener.Accept()
	must(t, err)
	defer conn.Close()
	_, err = http.ReadRequest(bufio.NewReader(conn))
	must(t, err)
	leave()
	await.Receive(t, "ended", ended)
	if o := w.completed(1)[0]; o.Status != 499 {
		t.Errorf("observed %+v", o)
	}
	if got := w.outcomes(); len(got) != 1 || got[0] != "first: abandoned" {
		t.Errorf("the outcomes are %v", got)
	}
}
