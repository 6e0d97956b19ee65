package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

// allocates posts a body and returns how many bytes the process allocates for it.
func (w *world) allocates(path, body string) int {
	w.t.Helper()
	return alloctest.Of(func() {
		request := w.request(context.Background(), http.MethodPost, path, studio, strings.NewReader(body))
		response, err := client.Do(request)
		if err != nil {
			return // the gateway may close the connection early
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	})
}

// A call may allocate perByte bytes per received byte, plus a fixed number of bytes, the constant connection.
const perByte, connection = 20, 512 << 10

// fieldsOf lists the fields of a route that may have many elements.
var fieldsOf = map[string]string{
	"chat/completions": "messages tools stop models", "completions": "prompt stop models", "messages": "messages tools system models",
	"messages/count_tokens": "messages tools system", "responses": "input tools models", "embeddings": "input", "rerank": "documents",
	"score": "documents",
}

// The bodies consist of the smallest elements.
func TestBodiesUseLittleMemory(t *testing.T) {
	u := newUpstream(t, always(400, `{"error":{"message":"no"}}`))
	const most = 128 << 10
	bodies := map[string]string{}
	for name, c := range map[string][2]string{
		"numbers": {"0,", "0"}, "texts": {`"",`, `""`}, "objects": {"{},", "{}"}, "lists": {"[],", "[]"},
		"roles":      {`{"role":"user","content":""},`, `{"role":"user","content":""}`},
		"parts":      {`{"role":"user","content":[{"type":"text","text":""}]},`, `{"role":"user","content":""}`},
		"outputs":    {`{"type":"function_call_output","call_id":"a","output":""},`, `{"role":"user","content":""}`},
		"tools":      {`{"type":"function","function":{"name":"a"}},`, `{"type":"function","function":{"name":"a"}}`},
		"flat tools": {`{"type":"function","name":"a"},`, `{"type":"function","name":"a"}`},
	} {
		for _, field := range []string{"messages", "input", "prompt", "tools", "stop", "models", "documents", "system"} {
			bodies[field+" of "+name] = alloctest.Filled(most, `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"a"}],"input":"a","`+
				field+`_":0,"`+field+`":[`, c[0], c[1]+`]}`)
			if field == "messages" || field == "input" {
				bodies[field+" of "+name] = alloctest.Filled(most, `{"model":"small","max_tokens":9,"`+field+`":[`, c[0], c[1]+`]}`)
			}
		}
	}
	bodies["one message of parts"] = alloctest.Filled(most, `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":[`,
		`{"type":"text","text":""},`, `{"type":"text","text":""}]}]}`)
	bodies["members"] = alloctest.Numbered(most, `{"model":"small"`, `,"%x":0`, `}`)
	bodies["inner members"] = alloctest.Numbered(most, `{"model":"small","metadata":{"a":0`, `,"%x":0`, `}}`)
	bodies["deep"] = strings.Repeat("[", most)
	worlds := []*world{
		newWorld(t, setup{upstreams: []*modelServer{u}, rows: oneRow}), newWorld(t, setup{upstreams: []*modelServer{u}, rows: nativeRow}),
	}
	for i, path := range []string{"chat/completions", "completions", "messages", "messages/count_tokens", "responses", "embeddings",
		"rerank", "score"} {
		for j, name := range slices.Sorted(maps.Keys(bodies)) {
			// To routes without the field, it is an unknown field like any other.
			if field, _, found := strings.Cut(name, " of "); found && !strings.Contains(fieldsOf[path], field) && (i+j)%6 > 0 {
				continue
			}
			body := bodies[name]
			most := perByte*len(body) + connection
			if took := worlds[(i+j)%2].allocates("/v1/"+path, body); took > most {
				t.Errorf("%s with %s: %d bytes took %d bytes of memory, %.1f for each", path, name, len(body), took,
					float64(took)/float64(len(body)))
			}
		}
	}
}

func TestResponsesUseLittleMemory(t *testing.T) {
	const most = 512 << 10
	pieces := func() map[string]string {
		return map[string]string{
			"choices":    alloctest.Filled(most, `{"choices":[`, "{},", `{}]}`),
			"messages":   alloctest.Filled(most, `{"choices":[`, `{"message":{}},`, `{}]}`),
			"nulls":      alloctest.Filled(most, `{"choices":[`, `0,`, `0]}`),
			"calls":      alloctest.Filled(most, `{"choices":[{"message":{"tool_calls":[`, `{},`, `{}]}}]}`),
			"functions":  alloctest.Filled(most, `{"choices":[{"message":{"tool_calls":[`, `{"id":"a","function":{"name":"a","arguments":""}},`, `{}]}}]}`),
			"arguments":  alloctest.Filled(most, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"a","arguments":{"a":"`, `\\`, `"}}}]}}]}`),
			"deltas":     alloctest.Filled(most, `{"choices":[{"delta":{"tool_calls":[`, `{"index":0},`, `{}]}}]}`),
			"parts":      alloctest.Filled(most, `{"choices":[{"message":{"content":[`, `{},`, `{}]}}]}`),
			"models":     alloctest.Filled(most, `{"choices":[]`, `,"model":0`, `}`),
			"twice":      alloctest.Filled(most, `{"choices":[]`, `,"choices":[]`, `}`),
			"usage":      alloctest.Filled(most, `{"choices":[],"usage":{"prompt_tokens":1`, `,"cost":0`, `}}`),
			"prompts":    alloctest.Filled(most, `{"choices":[],"usage":{"completion_tokens":1`, `,"prompt_tokens":6`, `,"prompt_tokens":5}}`),
			"details":    alloctest.Filled(most, `{"choices":[],"usage":{"completion_tokens":1`, `,"prompt_tokens_details":{}`, `,"prompt_tokens":5}}`),
			"usages":     alloctest.Filled(most, `{"choices":[]`, `,"usage":{}`, `}`),
			"content":    alloctest.Filled(most, `{"type":"message","content":[`, `{},`, `{}]}`),
			"output":     alloctest.Filled(most, `{"object":"response","output":[`, `{},`, `{}]}`),
			"data":       alloctest.Filled(most, `{"data":[`, `{},`, `{}]}`),
			"embeddings": alloctest.Filled(most, `{"data":[{"embedding":[`, `0,`, `0]}]}`),
			"errors":     alloctest.Filled(most, `{"error":{"a":[`, `0,`, `0]}}`),
			"deep":       strings.Repeat(`{"choices":`, most/12),
		}
	}
	calls := map[string]string{
		"chat/completions": `{"model":"small","messages":[{"role":"user","content":"a"}]`,
		"completions":      `{"model":"small","prompt":"a"`,
		"messages":         `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"a"}]`,
		"responses":        `{"model":"small","input":"a"`,
		"embeddings":       `{"model":"small","input":"a"`,
		"rerank":           `{"model":"small","query":"a","documents":["a"]`,
	}
	const head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
	answers, streams := map[string]string{}, map[string]string{
		"empty events": head + "text/event-stream\r\n\r\n" + strings.Repeat("data: {}\n\n", most/10),
	}
	for name, text := range pieces() {
		answers[name] = head + fmt.Sprintf("application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	for name, text := range pieces() {
		streams[name+" in an event"] = head + "text/event-stream\r\n\r\ndata: " + text + "\n\n"
	}
	for row, paths := range map[string][]string{
		oneRow: {"chat/completions", "completions", "messages", "responses"}, nativeRow: {"messages", "responses", "embeddings", "rerank"},
	} {
		for _, path := range paths {
			check := func(name, answered, body string) {
				// Routes read only the fields of their upstream's dialect.
				kind, _, _ := strings.Cut(name, " in ")
				ofChat, ofBoth := strings.Contains(answered, `"choices"`), []string{"choices", "errors", "empty events"}
				if ofChat != (row == oneRow) && !slices.Contains(ofBoth, kind) {
					return
				}
				// Use a new server each time, because a server that failed is not called for a while.
				u := newUpstream(t, func(c *call) { _, _ = io.WriteString(c, answered) })
				w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: row})
				defer w.stop()
				took := w.allocates("/v1/"+path, body)
				if asked := len(u.seen()); asked == 0 || took > perByte*len(answered)+connection {
					t.Errorf("%s with %s: %d answers of %d bytes took %d bytes of memory, %.1f for each", path, name, asked,
						len(answered), took, float64(took)/float64(len(answered)))
				}
			}
			for name, answered := range answers {
				check(name, answered, calls[path]+"}")
			}
			if path != "embeddings" && path != "rerank" {
				for name, answered := range streams {
					check(name, answered, calls[path]+`,"stream":true}`)
				}
			}
		}
	}
}

func TestFormsUseLittleMemory(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	const most = 1 << 20
	const part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n"
	const stored = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	for name, body := range map[string]string{
		"parts":            alloctest.Filled(most, "", part, "--x--\r\n"),
		"bare parts":       alloctest.Filled(most, "", "--x\r\n\r\n\r\n", "--x--\r\n"),
		"headers":          alloctest.Filled(most, "--x\r\n", "a:\r\n", "\r\n\r\n--x--\r\n"),
		"parameters":       alloctest.Filled(most, "--x\r\nContent-Disposition: form-data", ";a=b", "\r\n\r\n\r\n--x--\r\n"),
		"other parameters": alloctest.Numbered(15<<10, "--x\r\nContent-Disposition: form-data", ";%x=b", "\r\n\r\n\r\n--x--\r\n"),
		"lines":            alloctest.Filled(most, "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n", "\r\n-", "\r\n--x--\r\n"),
		"preamble":         alloctest.Filled(most, "", "\r\n-", "\r\n--x--\r\n"),
		"files":            alloctest.Filled(most, "", stored+"\r\n", "--x--\r\n"),
		"lines of a file":  alloctest.Filled(most, stored, "\r\n-", "\r\n--x--\r\n"),
	} {
		most := perByte*len(body) + connection
		took := alloctest.Least(func() {
			request := w.request(t.Context(), http.MethodPost, "/v1/files", studio, strings.NewReader(body),
				"Content-Type: multipart/form-data; boundary=x")
			response, err := client.Do(request)
			if err != nil {
				return // the gateway may close the connection early
			}
			if response.Body.Close(); response.StatusCode != 200 && response.StatusCode != 400 {
				t.Errorf("%s: status %d", name, response.StatusCode)
			}
		}, most)
		if took > most {
			t.Errorf("%s: %d bytes took %d bytes of memory, %.1f for each", name, len(body), took, float64(took)/float64(len(body)))
		}
	}
}

// Part headers stay in memory until the whole form has been read, so long names are rejected.
func TestLongPartHeaderIsRejected(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	for length, status := range map[int]int{10 << 10: 200, 20 << 10: 400} {
		body := "--x\r\nContent-Disposition: form-data; name=\"" + strings.Repeat("a", length) + "\"\r\n\r\nv\r\n" +
			"--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n" +
			"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{}\r\n--x--\r\n"
		a := w.do(w.request(t.Context(), http.MethodPost, "/v1/files", studio, strings.NewReader(body),
			"Content-Type: multipart/form-data; boundary=x"))
		if a.status != status {
			t.Errorf("a name of %d bytes: %d %s", length, a.status, a.body)
		}
	}
}

const answered, rejected = "HTTP/1.1 200", "HTTP/1.1 429"

// leaveUnread sends a request on n connections, reads each response up to a matching line, and counts the matches.
func (w *world) leaveUnread(n, buffer int, request, body string, until *regexp.Regexp) map[string]int {
	w.t.Helper()
	seen := make(chan string, n)
	for range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		must(w.t, err)
		w.t.Cleanup(func() { conn.Close() })
		must(w.t, conn.(*net.TCPConn).SetReadBuffer(buffer))
		fmt.Fprintf(conn, "%s\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", request, studio, len(body), body)
		go func() {
			lines, found := bufio.NewReader(conn), ""
			for line, err := "", error(nil); err == nil && found == ""; found = until.FindString(line) {
				line, err = lines.ReadString('\n')
			}
			seen <- found
		}()
	}
	got := map[string]int{}
	for range n {
		got[await.Receive(w.t, "a response", seen)]++
	}
	return got
}

// A list stays in memory until its caller reads it. Each list is about a megabyte.
func TestUnreadListsUseLimitedMemory(t *testing.T) {
	const batches, connections, pageBytes = 60, 60, 1100 << 10
	w := newWorld(t, setup{batches: true, socketBuffer: 4096})
	text := strings.Repeat("<", 256) + strings.Repeat("\x01", 256)
	for i := range batches {
		b := batch.Batch{ID: fmt.Sprintf("batch_%03d", i), Account: "studio", Key: credential.KeyID(credential.HashOf(studio)), Status: batch.Validating,
			Metadata: map[string]string{}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
		for j := range 16 {
			b.Metadata[fmt.Sprint(j)] = text
		}
		must(t, w.batches.Create(t.Context(), b, 0, 0))
	}
	seen, after := 0, ""
	for more := true; more; {
		page := w.get("/v1/batches?limit=100&after="+after, studio)
		if len(page.body) > pageBytes || strings.Contains(page.body, `\u003c`) {
			t.Errorf("a page has %d bytes, want at most %d without escaped HTML", len(page.body), pageBytes)
		}
		list := page.object(t)
		seen += len(list["data"].([]any))
		after, more = list["last_id"].(string), list["has_more"].(bool)
	}
	if seen != batches {
		t.Errorf("the pages have %d batches, want %d", seen, batches)
	}
	before := heap()
	got := w.leaveUnread(connections, 4096, "GET /v1/batches?limit=100 HTTP/1.1", "", regexp.MustCompile("^HTTP/1.1 (200|429)"))
	if held, most := heap()-before, 100; held > most {
		t.Errorf("%d unread lists hold %d MiB, want at most %d", got[answered], held, most)
	}
	if got[answered] != 16 || got[rejected] != connections-16 {
		t.Errorf("the statuses are %v, want 16 lists and 429 for the others", got)
	}
	if a := w.get("/v1/batches", rival); a.status != http.StatusOK {
		t.Errorf("another account got %d %s", a.status, a.body)
	}
}

// Long events use at most the account's share of the memory. Other accounts are still served.
func TestUnfinishedEventsUseLimitedMemory(t *testing.T) {
	const streams = 48
	unfinished := "data: " + strings.Repeat("y", 3900<<10)
	handled := make(chan bool, streams)
	u := newUpstream(t, func(c *call) {
		if !strings.Contains(c.body, `"stream":true`) {
			c.json(200, whole)
			return
		}
		c.stream()
		c.write(unfinished)
		handled <- true
		<-c.left
	})
	w := newWorld(t, setup{upstreams: []*modelServer{u}, bodyWait: 100 * time.Millisecond})
	before := heap()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answers := make(chan answer, streams)
	for range streams {
		request := w.request(ctx, http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(streamed))
		go func() { answers <- w.do(request) }()
	}
	for range streams {
		await.Receive(t, "an event to arrive", handled)
	}
	if held := heap() - before; held > 100 {
		t.Errorf("%d unfinished events hold %d MiB, want at most 100", streams, held)
	}
	for range streams - 10 { // the last ten fit into memory
		if a := await.Receive(t, "a response", answers); a.status != http.StatusTooManyRequests {
			t.Fatalf("a stream without memory got %d %q, want 429", a.status, a.body)
		}
	}
	if a := await.Receive(t, "the other account's response", w.chatAs(ctx, rival, "one")); a.status != http.StatusOK {
		t.Errorf("another account got %d %s", a.status, a.body)
	}
}

// Unread responses use at most the account's share of the memory, including all their copies.
func TestUnreadResponsesUseLimitedMemory(t *testing.T) {
	const calls, socket = 80, 64 << 10
	text := strings.Repeat("x", 1000<<10)
	stream := eventStream(append(slices.Repeat([]string{chunk(text[:8000])}, 125), last, used, done)...)
	for name, c := range map[string]struct{ path, body, started string }{
		"chat":       {"chat/completions", `{"model":"small","messages":[{"role":"user","content":"a"}]}`, answered},
		"translated": {"responses", `{"model":"small","input":"a"}`, answered},
		"streamed":   {"responses", `{"model":"small","input":"a","stream":true}`, "event: response.output_text.done"},
	} {
		u := newUpstream(t, func(c *call) {
			if strings.Contains(c.body, `"stream":true`) {
				c.stream()
				c.write(stream)
				return
			}
			c.json(200, `{"choices":[{"message":{"content":"`+text+`"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
		})
		w := newWorld(t, setup{upstreams: []*modelServer{u}, bodyWait: 100 * time.Millisecond, socketBuffer: socket})
		before := heap()
		until := regexp.MustCompile("^(" + c.started + "|" + rejected + "|event: response.failed)")
		got := w.leaveUnread(calls, socket, "POST /v1/"+c.path+" HTTP/1.1", c.body, until)
		if held := heap() - before; held > 140 || got[c.started] < 10 {
			t.Errorf("%s: %d unread responses hold %d MiB, want at least 10 in at most 140", name, got[c.started], held)
		}
		if a := await.Receive(t, "the other account's response", w.chatAs(t.Context(), rival, "one")); a.status != http.StatusOK {
			t.Errorf("%s: another account got %d %.100s", name, a.status, a.body)
		}
		w.stop()
	}
}
