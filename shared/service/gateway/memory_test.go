package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/testkit/alloctest"
)

// allocates sends a request and returns how many bytes the process allocates for it.
func (w *world) allocates(method, path, key, body string, fields ...string) int {
	w.t.Helper()
	request := w.request(context.Background(), method, path, key, strings.NewReader(body), fields...)
	return alloctest.Of(func() {
		response, err := client.Do(request)
		if err != nil {
			return // the gateway may close the connection before the end
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	})
}

// filled returns head, as many pieces as fit into the bytes, and tail.
func filled(bytes int, head, piece, tail string) string {
	return head + strings.Repeat(piece, (bytes-len(head)-len(tail))/len(piece)) + tail
}

// numbered is filled with pieces that differ.
func numbered(bytes int, head, piece, tail string) string {
	var text strings.Builder
	text.WriteString(head)
	for n := 0; text.Len() < bytes-len(tail)-20; n++ {
		fmt.Fprintf(&text, piece, n)
	}
	return text.String() + tail
}

// perByte and connection bound what may be allocated: for each byte that is received, and
// for a call without any.
const perByte, connection = 20, 512 << 10

// Bodies of the cheapest elements take little more memory than their bytes.
func TestMemoryOfBodies(t *testing.T) {
	u := newUpstream(t, always(400, `{"error":{"message":"no"}}`))
	const most = 1 << 20
	bodies := map[string]string{}
	for name, c := range map[string][2]string{
		"numbers": {"0,", "0"}, "texts": {`"",`, `""`}, "objects": {"{},", "{}"}, "lists": {"[],", "[]"},
		"roles":      {`{"role":"user","content":""},`, `{"role":"user","content":""}`},
		"parts":      {`{"role":"user","content":[{"type":"text","text":""}]},`, `{"role":"user","content":""}`},
		"outputs":    {`{"type":"function_modelCalloutput","modelCallid":"a","output":""},`, `{"role":"user","content":""}`},
		"tools":      {`{"type":"function","function":{"name":"a"}},`, `{"type":"function","function":{"name":"a"}}`},
		"flat tools": {`{"type":"function","name":"a"},`, `{"type":"function","name":"a"}`},
	} {
		for _, field := range []string{"messages", "input", "prompt", "tools", "stop", "models", "documents", "system"} {
			bodies[field+" of "+name] = filled(most, `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"a"}],"input":"a","`+
				field+`_":0,"`+field+`":[`, c[0], c[1]+`]}`)
			if field == "messages" || field == "input" {
				bodies[field+" of "+name] = filled(most, `{"model":"small","max_tokens":9,"`+field+`":[`, c[0], c[1]+`]}`)
			}
		}
	}
	bodies["one message of parts"] = filled(most, `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":[`,
		`{"type":"text","text":""},`, `{"type":"text","text":""}]}]}`)
	bodies["members"] = numbered(most, `{"model":"small"`, `,"%x":0`, `}`)
	bodies["inner members"] = numbered(most, `{"model":"small","metadata":{"a":0`, `,"%x":0`, `}}`)
	bodies["deep"] = strings.Repeat("[", most)
	for _, row := range []string{oneRow, nativeRow} {
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: row})
		for _, path := range []string{"chat/completions", "completions", "messages", "messages/count_tokens", "responses", "embeddings",
			"rerank", "score"} {
			for name, body := range bodies {
				took := w.allocates(http.MethodPost, "/v1/"+path, studio, body)
				if took > perByte*len(body)+connection {
					t.Errorf("%s with %s: %d bytes took %d bytes of memory, %.1f for each", path, name, len(body), took,
						float64(took)/float64(len(body)))
				}
			}
		}
	}
}

// So do answers of model servers, whole and as events.
func TestMemoryOfAnswers(t *testing.T) {
	const most, event = 4 << 20, 2 << 20
	pieces := func(most int) map[string]string {
		return map[string]string{
			"choices":    filled(most, `{"choices":[`, "{},", `{}]}`),
			"messages":   filled(most, `{"choices":[`, `{"message":{}},`, `{}]}`),
			"nulls":      filled(most, `{"choices":[`, `0,`, `0]}`),
			"calls":      filled(most, `{"choices":[{"message":{"tool_calls":[`, `{},`, `{}]}}]}`),
			"functions":  filled(most, `{"choices":[{"message":{"tool_calls":[`, `{"id":"a","function":{"name":"a","arguments":""}},`, `{}]}}]}`),
			"deltas":     filled(most, `{"choices":[{"delta":{"tool_calls":[`, `{"index":0},`, `{}]}}]}`),
			"parts":      filled(most, `{"choices":[{"message":{"content":[`, `{},`, `{}]}}]}`),
			"models":     filled(most, `{"choices":[]`, `,"model":0`, `}`),
			"twice":      filled(most, `{"choices":[]`, `,"choices":[]`, `}`),
			"usage":      filled(most, `{"choices":[],"usage":{"prompt_tokens":1`, `,"cost":0`, `}}`),
			"usages":     filled(most, `{"choices":[]`, `,"usage":{}`, `}`),
			"content":    filled(most, `{"type":"message","content":[`, `{},`, `{}]}`),
			"output":     filled(most, `{"object":"response","output":[`, `{},`, `{}]}`),
			"data":       filled(most, `{"data":[`, `{},`, `{}]}`),
			"embeddings": filled(most, `{"data":[{"embedding":[`, `0,`, `0]}]}`),
			"errors":     filled(most, `{"error":{"a":[`, `0,`, `0]}}`),
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
	for _, row := range []string{oneRow, nativeRow} {
		u := newUpstream(t, always(200, "{}"))
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: row})
		for path, sent := range calls {
			check := func(name string, answered int, body string) {
				took := w.allocates(http.MethodPost, "/v1/"+path, studio, body)
				if took > perByte*answered+connection {
					t.Errorf("%s with %s: %d bytes took %d bytes of memory, %.1f for each", path, name, answered, took,
						float64(took)/float64(answered))
				}
			}
			for name, text := range pieces(most) {
				answered := []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
					len(text), text))
				u.now(func(c *call) { _, _ = c.Write(answered) })
				check(name, len(text), sent+"}")
			}
			for name, text := range pieces(event) {
				answered := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: " + text + "\n\n")
				u.now(func(c *call) { _, _ = c.Write(answered) })
				check("an event of "+name, len(text), sent+`,"stream":true}`)
			}
			lines := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + strings.Repeat("data: {}\n\n", most/10))
			u.now(func(c *call) { _, _ = c.Write(lines) })
			check("events", len(lines), sent+`,"stream":true}`)
		}
	}
}
