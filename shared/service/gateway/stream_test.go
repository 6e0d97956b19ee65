package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
)

var reported = usage.Counts{Requests: 1, PromptTokens: 11, CompletionTokens: 5}

// counted returns the gateway's own count for the prompt "one two" and a reply of n tokens.
func counted(n int64) usage.Counts {
	return usage.Counts{Requests: 1, PromptTokens: 6, CompletionTokens: n, Estimated: 1}
}

const (
	streamFailed = `{"error":{"message":"The model server failed.","type":"api_error","param":null,` +
		`"code":"upstream_error"}}`
	tooLargeEvent = `{"error":{"message":"The model server failed: an event of the stream is too large: it has more than 33554432 bytes.",` +
		`"type":"api_error","param":null,"code":"upstream_error"}}`
	noDetails = `,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}`
	// The last chunks for a caller that asked for the usage.
	usedChunk = `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"small","choices":[],"usage":{` +
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0},` +
		`"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}}`
	estimatedChunk = `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"small","choices":[],` +
		`"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8` + noDetails + `}}`
)

// usualStream is an upstream's stream, and seenUsual is the stream that the caller receives.
var (
	usualStream = []string{chunk("hel"), chunk("lo"), last, used, done}
	seenUsual   = eventStream(asSmall(chunk("hel")), asSmall(chunk("lo")), asSmall(last), done)
)

func text(text string) func(*call) {
	return func(c *call) { c.stream(); c.write(text); c.end() }
}

func everyByte(text string) func(*call) {
	return func(c *call) {
		c.stream()
		for i := range len(text) {
			c.write(text[i : i+1])
		}
		c.end()
	}
}

// streamCase is an upstream's stream, the stream that the caller receives, and the metered usage.
type streamCase struct {
	name     string
	upstream func(*call)
	request  string
	want     string
	counts   usage.Counts
}

func runStreams(t *testing.T, cases []streamCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, c.upstream)}})
			a := w.chat(c.request)
			if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || a.err != nil {
				t.Fatalf("%d %s: %v", a.status, a.header, a.err)
			}
			if a.body != c.want {
				t.Errorf("got\n%s\nwant\n%s", a.body, c.want)
			}
			r := w.recorded(1)[0]
			if r.Counts != c.counts || r.Account != "studio" || r.Model != "small" || !strings.HasPrefix(r.Key, "key_") {
				t.Errorf("recorded %+v, want %+v", r, c.counts)
			}
			if got, want := a.trailer.Get("X-Tokens-Used"), tokens(c.counts); got != want {
				t.Errorf("the trailer reports %q tokens, want %q", got, want)
			}
		})
	}
}

func TestStreamsAreForwarded(t *testing.T) {
	crlf := strings.ReplaceAll(eventStream(usualStream...), "\n", "\r\n")
	runStreams(t, []streamCase{
		{"a usual stream", events(usualStream...), streamed, seenUsual, reported},
		{"the caller asked for the usage", events(usualStream...), asking, strings.Replace(seenUsual, "data: [DONE]", "data: "+usedChunk+"\n\ndata: [DONE]", 1), reported},
		{"text over the caller's limit without a usage", events(chunk("one two three four five"), last, done),
			strings.Replace(streamed, `{`, `{"max_tokens":2,`, 1),
			eventStream(asSmall(chunk("one two three four five")), asSmall(last), done), counted(2)},
		{"one byte at a time", everyByte(eventStream(usualStream...)), streamed, seenUsual, reported},
		{"one byte at a time, in lines that end with CR and LF", everyByte(crlf), streamed, seenUsual, reported},
		{"split within a character", func(c *call) {
			c.stream()
			one := eventStream(chunk("héllo wörld"))
			cut := strings.Index(one, "ö") + 1
			c.write(one[:cut])
			c.write(one[cut:])
			c.write(eventStream(last, used, done))
			c.end()
		}, streamed, eventStream(asSmall(chunk("héllo wörld")), asSmall(last), done), reported},
		{"in one piece", text(eventStream(usualStream...)), streamed, seenUsual, reported},
		{"lines that end with CR", text(strings.ReplaceAll(eventStream(usualStream...), "\n", "\r")), streamed, seenUsual, reported},
		{"a byte order mark", text("\ufeff" + eventStream(usualStream...)), streamed, seenUsual, reported},
		{"comments and other fields", text(": hi\n\nevent: message\nid: 3\nretry: 10\n: between\ndata:" + chunk("hel") + "\n\n: ping\n\n" + eventStream(usualStream[1:]...)),
			streamed, seenUsual, reported},
		{"data on several lines", text("data: {\"id\":\"c1\",\ndata: \"model\":\"weights\",\ndata: \"choices\":[]}\n\n" + eventStream(last, used, done)),
			streamed, eventStream(`{"id":"c1", "model":"small", "choices":[]}`, asSmall(last), done), reported},
		{"no final line end", text(strings.TrimRight(eventStream(usualStream...), "\n")), streamed, seenUsual, reported},
		{"no [DONE]", events(usualStream[:4]...), streamed, seenUsual, reported},
		{"no [DONE] and no final line end", text(strings.TrimRight(eventStream(usualStream[:4]...), "\n")), streamed, seenUsual, reported},
		{"[DONE] twice", events(append(usualStream, done)...), streamed, seenUsual, reported},
		{"more after [DONE]", events(append(usualStream, chunk("more"))...), streamed, seenUsual, reported},
		{"ended by the connection", func(c *call) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+
				eventStream(chunk("hel"), chunk("lo"), last))
		}, streamed, seenUsual, counted(1)},
	})
}

func TestStreamUsageIsMetered(t *testing.T) {
	runStreams(t, []streamCase{
		{"no usage", events(chunk("one"), chunk(" two"), last, done), streamed, eventStream(asSmall(chunk("one")), asSmall(chunk(" two")), asSmall(last), done), counted(2)},
		{"no usage, but the caller asked for it", events(chunk("one"), chunk(" two"), last, done), asking,
			eventStream(asSmall(chunk("one")), asSmall(chunk(" two")), asSmall(last), estimatedChunk, done), counted(2)},
		{"early usage", events(used, chunk("hel"), chunk("lo"), last, done), streamed, seenUsual, reported},
		{"early usage, and the caller asked for it", events(used, chunk("hel"), chunk("lo"), last, done), asking,
			strings.Replace(seenUsual, "data: [DONE]", "data: "+usedChunk+"\n\ndata: [DONE]", 1), reported},
		{"text after the last usage",
			events(strings.Replace(used, `"completion_tokens":5`, `"completion_tokens":1`, 1), chunk("a b"), chunk(" c d"),
				last, done), streamed,
			eventStream(asSmall(chunk("a b")), asSmall(chunk(" c d")), asSmall(last), done),
			usage.Counts{Requests: 1, PromptTokens: 11, CompletionTokens: 4, Estimated: 1}},
		{"a malformed usage",
			events(chunk("one"), strings.Replace(last, `"choices"`, `"usage":{"prompt_tokens":"x"},"choices"`, 1), done),
			streamed,
			eventStream(asSmall(chunk("one")), asSmall(strings.Replace(last, `"choices"`, `"usage":null,"choices"`, 1)), done),
			counted(1)},
		{"usage on the last chunk",
			events(chunk("one"),
				strings.Replace(last, `"choices"`, `"usage":{"prompt_tokens":11,"completion_tokens":5},"choices"`, 1), done),
			asking,
			eventStream(asSmall(chunk("one")), asSmall(strings.Replace(last, `"choices"`,
				`"usage":null,"choices"`, 1)), `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"small",`+
				`"usage":{"total_tokens":16,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0},`+
				`"prompt_tokens":11,"completion_tokens":5},"choices":[]}`, done), reported},
		{"usage on the last chunk that the caller did not ask for",
			events(chunk("one"), strings.Replace(last, `"choices"`, `"usage":{"prompt_tokens":11,"completion_tokens":5},"choices"`, 1), done),
			streamed, eventStream(asSmall(chunk("one")), asSmall(strings.Replace(last, `"choices"`, `"usage":null,"choices"`, 1)), done), reported},
		{"all of the stream in one chunk", events(`{"model":"weights","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},`+
			`{"index":0,"id":"b","function":{"name":"g"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":11,"completion_tokens":5}}`, done), asking,
			eventStream(`{"model":"small","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},`+
				`{"index":1,"id":"b","function":{"name":"g"}}]},`+
				`"finish_reason":"tool_calls"}],"usage":null}`, `{"model":"small","choices":[],"usage":{"total_tokens":16,`+
				`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0},`+
				`"prompt_tokens":11,"completion_tokens":5}}`, done), reported},
		{"a chunk without a model", events(`{"choices":[]}`, last, used, done), streamed, eventStream(`{"model":"small","choices":[]}`, asSmall(last), done), reported},
		{"reasoning and tool calls count", events(
			`{"model":"weights","choices":[{"delta":{"reasoning_content":"let me see"}}]}`,
			`{"model":"weights","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"look ","arguments":"{\"a\": `+
				`1}"}}]},"finish_reason":"tool_calls"}]}`, done), streamed,
			eventStream(`{"model":"small","choices":[{"delta":{"reasoning_content":"let me see"}}]}`,
				`{"model":"small","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"look ","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}`, done),
			counted(5)},
	})
}

func TestBrokenStreamsEndWithAnError(t *testing.T) {
	runStreams(t, []streamCase{
		{"a truncated stream", func(c *call) { c.stream(); c.write(eventStream(chunk("one"), chunk(" two"))); c.reset() },
			streamed,
			eventStream(asSmall(chunk("one")), asSmall(chunk(" two")), streamFailed, done), counted(2)},
		{"truncated within an event",
			func(c *call) { c.stream(); c.write(eventStream(chunk("one")) + "data: {\"id\""); c.reset() }, streamed,
			eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"the connection ends early", func(c *call) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+eventStream(chunk("one")))
		}, streamed, eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"an error in the stream",
			events(chunk("one"), `{"error":{"message":"secret internals","code":500}}`, chunk("two"), done), streamed,
			eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"a caller's error in the stream", events(chunk("one"), `{"error":{"message":"too long","code":400}}`, done), streamed,
			eventStream(asSmall(chunk("one")),
				`{"error":{"message":"too long","type":"invalid_request_error","param":null,"code":null}}`, done), counted(1)},
		{"an event named error", text(eventStream(chunk("one")) + "event: error\ndata: {\"message\":\"x\"}\n\n"),
			streamed,
			eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"a chunk that is not JSON", events(chunk("one"), `{"id":`, done), streamed, eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"a chunk that is not an object", events(chunk("one"), `7`, done), streamed, eventStream(asSmall(chunk("one")), streamFailed, done), counted(1)},
		{"an endless event", func(c *call) {
			c.stream()
			c.write(eventStream(chunk("one")) + "data: ")
			for piece := strings.Repeat("x", 64<<10); c.write(piece) == nil; {
			}
		}, streamed, eventStream(asSmall(chunk("one")), tooLargeEvent, done), counted(1)},
		{"an endless comment", func(c *call) {
			c.stream()
			c.write(eventStream(chunk("one")) + ": ")
			for piece := strings.Repeat("x", 64<<10); c.write(piece) == nil; {
			}
		}, streamed, eventStream(asSmall(chunk("one")), tooLargeEvent, done), counted(1)},
	})
}

func tokens(c usage.Counts) string {
	text, _ := json.Marshal(c.PromptTokens + c.CompletionTokens)
	return string(text)
}

func TestFailureBeforeFirstChunkIsNotBilled(t *testing.T) {
	for name, c := range map[string]struct {
		upstream func(*call)
		status   int
		code     string
	}{
		"an error as the first event":     {events(`{"error":{"message":"overrun","code":500}}`, done), 502, "upstream_error"},
		"a rejection as the first event":  {events(`{"error":{"message":"too long","code":400}}`, done), 400, ""},
		"an error as JSON":                {always(200, `{"error":{"message":"no"}}`), 502, "upstream_error"},
		"a rejection as JSON":             {always(200, `{"error":{"message":"no","code":422}}`), 422, ""},
		"a response that is not a stream": {always(200, whole), 502, "upstream_error"},
		"an empty response":               {events(), 502, "upstream_error"},
		"only [DONE]":                     {events(done), 502, "upstream_error"},
		"only comments":                   {func(c *call) { c.stream(); c.write(": x\n\n: y\n\n"); c.end() }, 502, "upstream_error"},
		"a reset before the header":       {func(c *call) { c.reset() }, 502, "upstream_error"},
		"a reset after the header":        {func(c *call) { c.stream(); c.reset() }, 502, "upstream_error"},
		"a response that is not HTTP":     {func(c *call) { io.WriteString(c, "SSH-2.0-x\r\n") }, 502, "upstream_error"},
		"a huge header":                   {func(c *call) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n") }, 502, "upstream_error"},
		"HTML":                            {func(c *call) { c.stream(); c.write("<html>\n\n"); c.end() }, 502, "upstream_error"},
		"a redirect":                      {func(c *call) { io.WriteString(c, "HTTP/1.1 302 x\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n") }, 502, "upstream_error"},
		"an endless line": {func(c *call) {
			c.stream()
			for c.write(strings.Repeat("x", 64<<10)) == nil {
			}
		}, 502, "upstream_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, c.upstream)}})
			a := w.chat(streamed)
			var body struct {
				Error struct{ Code string }
			}
			if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != c.status || body.Error.Code != c.code {
				t.Errorf("%d %s: %v, want %d %s", a.status, a.body, err, c.status, c.code)
			}
			if a.header.Get("X-Tokens-Used") != "" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("the header is %v", a.header)
			}
			w.completed(1)
			w.recorded(0)
		})
	}
}

func TestChunksAreForwardedImmediately(t *testing.T) {
	next := make(chan bool)
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, func(c *call) {
		c.stream()
		for range 3 {
			c.write(eventStream(chunk("x")))
			<-next
		}
		c.write(eventStream(last, used, done))
		c.end()
	})}})
	response := w.open(t.Context(), streamed)
	reader := bufio.NewReader(response.Body)
	for range 3 {
		for _, want := range []string{"data: " + asSmall(chunk("x")) + "\n", "\n"} {
			if line, err := reader.ReadString('\n'); err != nil || line != want {
				t.Fatalf("got %q: %v", line, err)
			}
		}
		next <- true
	}
}

func TestFirstChunkDoesNotWaitForTheNext(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, text(eventStream(chunk("x"), chunk("y"), last, used, done)))}})
	got, err := io.ReadAll(w.startStream(64 << 10))
	must(t, err)
	first := eventStream(asSmall(chunk("x")))
	if want := fmt.Sprintf("\r\n\r\n%x\r\n%s\r\n", len(first), first); !strings.Contains(string(got), want) {
		t.Errorf("the first chunk is not sent on its own: %q", got)
	}
}

// Comments are sent until the first chunk arrives. Later failures are reported within the stream.
func TestSilentStreamGetsKeepAlives(t *testing.T) {
	for name, waiting := range map[string]func(*call){
		"before the upstream's header": func(*call) {},
		"after the upstream's header":  func(c *call) { c.stream() },
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan bool)
			u := newUpstream(t, func(c *call) {
				waiting(c)
				<-release
				if strings.HasPrefix(name, "before") {
					c.stream()
				}
				c.write(eventStream(chunk("one"), last, used, done))
				c.end()
			})
			w := newWorld(t, setup{upstreams: []*modelServer{u}, keepAlive: 5 * time.Millisecond})
			for _, fails := range []bool{false, true} {
				response := w.open(t.Context(), streamed)
				reader := bufio.NewReader(response.Body)
				for range 3 {
					if line, err := reader.ReadString('\n'); err != nil || line != ": keep-alive\n" {
						t.Fatalf("got %q: %v", line, err)
					}
					reader.ReadString('\n')
				}
				release <- true
				rest, err := io.ReadAll(reader)
				if err != nil {
					t.Fatal(err)
				}
				text := strings.ReplaceAll(string(rest), ": keep-alive\n\n", "")
				want := eventStream(asSmall(chunk("one")), asSmall(last), done)
				if fails {
					want = eventStream(`{"error":{"message":"The model server failed.","type":"api_error","param":null,`+
						`"code":"upstream_error"}}`, done)
				}
				if text != want {
					t.Errorf("got %q, want %q", text, want)
				}
				u.now(func(c *call) { waiting(c); <-release; c.reset() })
			}
			w.recorded(1)
		})
	}
}

// The gateway reads only as much as fits into its buffers and the socket buffers. The socket
// buffers are small in this test, except where the gateway reads.
func TestSlowReaderSlowsUpstreamDown(t *testing.T) {
	const socket = 4 << 10
	kernel, err := os.ReadFile("/proc/sys/net/ipv4/tcp_rmem")
	receiving := 256 << 10 // default of other systems, plus a margin
	if err == nil {
		receiving, err = strconv.Atoi(strings.Fields(string(kernel))[1])
		must(t, err)
	}
	piece := eventStream(chunk(strings.Repeat("x", 1000)))
	var wrote atomic.Int64
	standstill, handled := make(chan struct{}), make(chan struct{})
	w := newWorld(t, setup{socketBuffer: socket, upstreams: []*modelServer{newUpstream(t, func(c *call) {
		defer close(handled)
		c.Conn.(*net.TCPConn).SetWriteBuffer(socket)
		c.stream()
		for wrote.Load() < 1<<30 {
			c.SetWriteDeadline(time.Now().Add(time.Second))
			if c.write(piece) != nil {
				break
			}
			wrote.Add(int64(len(piece)))
		}
		close(standstill)
		io.Copy(io.Discard, c) // until the gateway closes the connection
	})}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.(*net.TCPConn).SetReadBuffer(socket))
	fmt.Fprintf(conn,
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", studio,
		len(streamed), streamed)
	_, err = io.ReadFull(conn, make([]byte, 100))
	must(t, err)
	await.Receive(t, "standstill", standstill) // an upstream write has timed out
	if most := int64(receiving + 256<<10); wrote.Load() > most {
		t.Errorf("the gateway read %d KiB for a caller that reads nothing, want at most %d", wrote.Load()>>10, most>>10)
	}
	conn.Close()
	await.Receive(t, "handled", handled)
	if r := w.recorded(1)[0]; r.Estimated != 1 || r.CompletionTokens == 0 {
		t.Errorf("recorded %+v", r)
	}
}

// The upstream has sent everything, but the caller reads slowly or not at all. Another call takes the slot before the
// rest has been read.
func TestSlowReaderYieldsItsSlot(t *testing.T) {
	for name, c := range map[string]struct {
		chunks, size int
		reads        bool
	}{"reads slowly": {4000, 1000, true}, "reads a large event slowly": {1, 4 << 20, true}, "reads nothing": {4000, 1000, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{socketBuffer: 4096, rows: narrowRow, upstreams: []*modelServer{newUpstream(t, func(to *call) {
				if !strings.Contains(to.body, `"stream":true`) {
					always(200, whole)(to)
					return
				}
				to.stream()
				piece := eventStream(chunk("x"), chunk(strings.Repeat("x", c.size)))
				for range c.chunks {
					if to.write(piece) != nil {
						return
					}
				}
			})}})
			conn := w.startStream(4096)
			go func() {
				for err := error(nil); c.reads && err == nil; time.Sleep(200 * time.Millisecond) {
					_, err = io.ReadFull(conn, make([]byte, 4096))
				}
			}()
			other := w.chatAs(t.Context(), studio, "a0") // it waits in the queue for up to a minute
			if got := await.Receive(t, "the other call", other); got.status != 200 {
				t.Errorf("the other call: got %+v", got)
			}
			if r := w.recorded(2); r[0].Estimated+r[1].Estimated != 1 || r[0].CompletionTokens == 0 {
				t.Errorf("recorded %+v", r)
			}
		})
	}
}

// The caller reads slowly at first, and then waits for the upstream when another call takes the slot. The call to the
// upstream ends, and the caller gets an error.
func TestStreamThatLosesItsSlotEndsWithAnError(t *testing.T) {
	t.Parallel()
	const socket, large = 4096, 256 << 10
	sent, ended := make(chan bool, 1), make(chan bool, 1)
	w := newWorld(t, setup{socketBuffer: socket, rows: narrowRow, upstreams: []*modelServer{newUpstream(t, func(to *call) {
		if !strings.Contains(to.body, `"stream":true`) {
			always(200, whole)(to)
			return
		}
		to.stream()
		_ = to.write(eventStream(chunk("x"), chunk(strings.Repeat("x", large))))
		sent <- true
		<-to.left
		ended <- true
	})}})
	conn := w.startStream(socket)
	await.Receive(t, "the end of the large event", sent)
	time.Sleep(5500 * time.Millisecond)              // the first send is blocked
	_, err := io.ReadFull(conn, make([]byte, large)) // from now on, the gateway waits for the upstream
	must(t, err)
	other := w.chatAs(t.Context(), studio, "a0")
	await.Receive(t, "the end of the call to the upstream", ended)
	if got := await.Receive(t, "the other call", other); got.status != 200 {
		t.Errorf("the other call: got %+v", got)
	}
	if rest, err := io.ReadAll(conn); err != nil || !strings.Contains(string(rest), "read too slowly") {
		t.Errorf("the stream ends with %q, %v", rest[max(0, len(rest)-300):], err)
	}
}

// startStream starts a stream and reads its first 100 bytes.
func (w *world) startStream(socket int) net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(w.t, err)
	w.t.Cleanup(func() { conn.Close() })
	must(w.t, conn.(*net.TCPConn).SetReadBuffer(socket))
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", studio, len(streamed), streamed)
	_, err = io.ReadFull(conn, make([]byte, 100))
	must(w.t, err)
	return conn
}
