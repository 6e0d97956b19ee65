package gateway_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// endlessly writes piece again and again until the gateway closes the connection.
func endlessly(head, piece string) func(*call) {
	return func(c *call) {
		io.WriteString(c, head)
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}
}

// slowly is like endlessly, but pauses for a few milliseconds after each piece.
func slowly(head, piece string) func(*call) {
	return func(c *call) {
		io.WriteString(c, head)
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
			select {
			case <-c.left:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

func raw(text string) func(*call) { return func(c *call) { io.WriteString(c, text) } }

// speech describes how an upstream speaks one dialect.
type speech struct {
	// whole is a complete response with the text "hello there".
	whole string
	// content is the name of the response's main array. prompted is the name of the prompt's token count.
	content, prompted string
	// The event last ends the text, used reports the token counts, and done ends the stream.
	chunk            func(text string) string
	last, used, done string
}

var inChat = speech{whole, "choices", "prompt_tokens", chunk, last, used, done}

// bomb is a 64 KiB gzip file that unpacks to 64 MiB. It repeats a gzip member of 1 MiB.
var bomb = sync.OnceValue(func() string {
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	z.Write(make([]byte, 1<<20))
	z.Close()
	return strings.Repeat(member.String(), 64)
})

func hostile(s speech) map[string]func(*call) {
	const ok, chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	const stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	body := func(text string) func(*call) {
		return raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, len(text), text))
	}
	long := strings.Repeat("x", 64<<10)
	with := func(old, new string) func(*call) { return body(strings.Replace(s.whole, old, new, 1)) }
	list := `"` + s.content + `":[`
	return map[string]func(*call){
		"nothing": raw(""), "a line break": raw("\r\n"), "no HTTP": raw("SSH-2.0-x\r\n"), "a TLS alert": raw("\x15\x03\x01\x00\x02\x02\x46"),
		"HTTP/0.9": raw(s.whole), "HTTP/2": raw("HTTP/2.0 200 OK\r\n\r\n"), "HTTP/1.": raw("HTTP/1. 200 OK\r\n\r\n"), "HTTP/9.9": raw("HTTP/9.9 200 OK\r\n\r\n" + s.whole),
		"a status in words": raw("HTTP/1.1 fine OK\r\n\r\n"), "a status of four digits": raw("HTTP/1.1 2000 OK\r\n\r\n"), "a status below 0": raw("HTTP/1.1 -20 OK\r\n\r\n"),
		"status 0": raw("HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n"), "status 99": raw("HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"),
		"status 600": raw("HTTP/1.1 600 x\r\nContent-Length: 0\r\n\r\n"), "status 999": raw("HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n"),
		"status 101": raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "status 204": raw("HTTP/1.1 204 x\r\n\r\n"),
		"status 205": raw("HTTP/1.1 205 x\r\nContent-Length: 0\r\n\r\n"), "status 206": raw("HTTP/1.1 206 x\r\nContent-Length: 0\r\n\r\n"), "status 304": raw("HTTP/1.1 304 x\r\n\r\n"),
		"a redirect":                    raw("HTTP/1.1 307 x\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"),
		"an endless status":             endlessly("HTTP/1.1 200 ", long),
		"an endless field":              endlessly("HTTP/1.1 200 OK\r\nX: ", long),
		"endless fields":                endlessly("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"),
		"endless 100s":                  endlessly("", "HTTP/1.1 100 Continue\r\n\r\n"),
		"endless 103s":                  endlessly("", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
		"slow fields":                   slowly("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"),
		"slow 102s":                     slowly("", "HTTP/1.1 102 Processing\r\n\r\n"),
		"a truncated header":            raw("HTTP/1.1 200 OK\r\nContent-Le"),
		"a header line without a colon": raw(ok + "hello\r\nContent-Length: 2\r\n\r\n{}"),
		"a field without name":          raw(ok + ": x\r\nContent-Length: 2\r\n\r\n{}"),
		"a name with a space":           raw(ok + "Content-Length : 2\r\n\r\n{}"),
		"a folded field":                raw(ok + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}"),
		"a NUL in a field":              raw(ok + "X: a\x00b\r\nContent-Length: 2\r\n\r\n{}"),
		"two lengths":                   raw(ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
		"a negative length":             raw(ok + "Content-Length: -2\r\n\r\n{}"),
		"a length in words":             raw(ok + "Content-Length: two\r\n\r\n{}"),
		"a length with a plus":          raw(ok + "Content-Length: +2\r\n\r\n{}"),
		"a huge length":                 raw(ok + "Content-Length: 99999999999999999999\r\n\r\n{}"),
		"a length above the body's":     raw(ok + "Content-Length: 4611686018427387903\r\n\r\n{}"),
		"a length below the body's":     raw(ok + "Content-Length: 20\r\n\r\n" + s.whole),
		"a length and chunks":           raw(ok + "Content-Length: 2\r\n" + chunked + "2\r\n{}\r\n0\r\n\r\n"),
		"an unknown coding":             raw(ok + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
		"two codings":                   raw(ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
		"a huge chunk":                  raw(ok + chunked + "ffffffffffffffff\r\n{}"),
		"a chunk size that overflows":   raw(ok + chunked + "fffffffffffffffff\r\n{}"),
		"a negative chunk size":         raw(ok + chunked + "-2\r\n{}\r\n0\r\n\r\n"),
		"an invalid chunk size":         raw(ok + chunked + "zz\r\n{}"),
		"an endless chunk extension":    endlessly(ok+chunked+"2;", long),
		"an endless chunk":              raw(ok + chunked + "2\r\n{}X0\r\n\r\n"),
		"endless tiny chunks":           endlessly(ok+chunked, "1\r\nx\r\n"),
		"an endless trailer":            endlessly(ok+chunked+fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(s.whole), s.whole), "X-A: b\r\n"),
		"endless trailer fields":        raw(ok + chunked + fmt.Sprintf("%x\r\n%s\r\n0\r\nContent-Length: 7\r\nRetry-After: 9\r\n\r\n", len(s.whole), s.whole)),
		"an endless response":           endlessly(ok+"\r\n", long),
		"a slow response":               slowly(ok+"\r\n", " "),
		"a gzip bomb":                   raw(ok + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb()), bomb())),
		"an HTML page":                  raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"),
		"an endless error":              endlessly("HTTP/1.1 400 x\r\n\r\n", long),
		"a slow error":                  slowly("HTTP/1.1 400 x\r\nContent-Length: 100000\r\n\r\n", " "),
		"an error with a gzip bomb":     raw("HTTP/1.1 400 x\r\nContent-Encoding: gzip\r\n\r\n" + bomb()),
		"a deeply nested error":         always(400, `{"error":`+strings.Repeat(`{"error":`, 5000)),
		"an error in invalid UTF-8":     always(422, "{\"error\":{\"message\":\"\xff\xfe\x00\",\"param\":\"\xff\",\"code\":\"\xc3\"}}"),
		"an error with false fields":    always(413, `{"error":{"message":5,"param":{},"code":[]}}`),

		"megabytes of brackets": body(strings.Repeat("[", 3<<20)), "a depth of megabytes in a stream": events(s.chunk("a"), strings.Repeat(`{"a":`, 800_000)),
		"an empty response": body(""), "null": body("null"), "a list": body("[]"), "a string": body(`"x"`), "a number": body("1e999"), "spaces": body(strings.Repeat(" ", 1<<20)),
		"an empty object": body("{}"), "half an object": body(`{"choices":[`), "two objects": body(s.whole + s.whole), "a NUL after it": body(s.whole + "\x00"),
		"100,000 open brackets":    body(strings.Repeat(`{"choices":[`, 50000)),
		"100,000 matched brackets": body(`{"choices":[{"message":{"content":` + strings.Repeat("[", 50000) + strings.Repeat("]", 50000) + `}}]}`),
		"invalid UTF-8":            with("hello there", "hello \xff\xc3\x28\xed\xa0\x80 there"),
		"a truncated character":    with("hello there", `\ud83d`), "a NUL": with("hello there", `\u0000`),
		"choices in an object": with(list, `"`+s.content+`":{},"x":[`), "choices of anything": with(list, list+`null,5,"x",[],{},`),
		"duplicate choices": with(list, list+`],`+list), "a model twice": with(`"model"`, `"model":"x","model":{},"model"`),
		"duplicate usage": with(`"usage"`, `"usage":{"`+s.prompted+`":1e15},"usage"`), "a message of text": with(`{"role":"assistant","content":"hello there"}`, `"hello"`),
		"an error string": body(`{"error":"no"}`), "an error of nothing": body(`{"error":{}}`), "an error beside choices": with(list, `"error":{"message":"x"},`+list),
		"an error with code 200": body(`{"error":{"code":200}}`), "an error that says 1e9": body(`{"error":{"code":1e9}}`), "an error that says -400": body(`{"error":{"code":-400}}`),
		"thousands of choices": with(list, list+strings.Repeat(`{},`, 1<<14)),

		"an empty stream": raw(stream + "Content-Length: 0\r\n\r\n"), "comments for ever": slowly(stream+"\r\n", ": x\n\n"), "a flood of comments": endlessly(stream+"\r\n", ": x\n\n"),
		"endless empty events": slowly(stream+"\r\n", "data:\n\n"), "names for ever": endlessly(stream+"\r\n", "event: ping\n\n"), "one line for ever": endlessly(stream+"\r\ndata: ", long),
		"only DONE": events(s.done), "DONE twice": events(s.chunk("a"), s.done, s.done), "more after DONE": events(s.chunk("a"), s.done, s.chunk("b")),
		"events that are not JSON": events("hello"), "a list in it": events("[]"), "a depth in it": events(strings.Repeat("[", 100000)), "null in it": events("null", s.done),
		"events in invalid UTF-8": events(strings.Replace(s.chunk("hello"), "hello", "\xff\xfe", 1), s.last, s.done), "an error in it": events(s.chunk("a"), `{"error":"x"}`),
		"endless usages":           slowly(stream+"\r\n", "data: "+used+"\n\n"),
		"choices that are numbers": events(`{"choices":5}`, `{"choices":[5,null,"x"]}`, `{"choices":{"a":1}}`, s.done),
		"endless event names":      raw(stream + "\r\nevent: " + strings.Repeat("error", 1000) + "\ndata: {}\n\n"),
		"endless carriage returns": raw(stream + "\r\n" + strings.Repeat("\r", 1<<16)), "a mark of order": raw(stream + "\r\n\ufeff\ufeffdata: " + s.last + "\n\n"),
	}
}

// Every caller gets a response in the contract's format within the row's timeouts.
func TestCallersSurviveHostileUpstreams(t *testing.T) {
	const rows = `
  - {id: small, routes: [chat], context_length: 1048576, max_output_length: 1000, timeouts: {first_byte: 200ms, idle: 100ms}, upstreams: [{name: first, url: URL0, model: weights}]}
`
	large := strings.Repeat("x", 40<<10) // too large to be sent before the response is read
	for name, answer := range hostile(inChat) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, answer)
			w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{u}})
			for _, request := range []string{plain, streamed, strings.Replace(plain, "one", large, 1),
				strings.Replace(streamed, "one", large, 1)} {
				a := w.chat(request)
				if a.err != nil || !utf8.ValidString(a.body) || a.header.Get("X-Request-Id") == "" {
					t.Fatalf("got %d %v %.300q: %v", a.status, a.header, a.body, a.err)
				}
				switch {
				case strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream"):
					checkStream(t, a)
				case a.status == 200:
					var body struct {
						Object, Model string
						Choices       []json.RawMessage
						Usage         *struct {
							Total int `json:"total_tokens"`
						}
					}
					if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Model != "small" || body.Usage == nil ||
						body.Usage.Total > 1<<21 {
						t.Errorf("got %.300s: %v", a.body, err)
					}
				default:
					checkError(t, a.status, []byte(a.body))
				}
			}
			// Later calls are not affected, except by a circuit breaker or a busy machine.
			u.now(always(200, whole))
			w.wait(5 * time.Minute)
			next := w.chat(plain)
			w.eventually("good responses", func() bool {
				if next.status != http.StatusGatewayTimeout {
					return true
				}
				w.wait(5 * time.Minute)
				next = w.chat(plain)
				return false
			})
			if a := next; a.status != 200 || a.body != asSmall(whole) {
				t.Errorf("afterwards: %d %s", a.status, a.body)
			}
		})
	}
}

func checkStream(t *testing.T, a answer) {
	t.Helper()
	all, ended := strings.CutSuffix(a.body, "data: [DONE]\n\n")
	if a.status != 200 || !ended {
		t.Errorf("status %d, stream without an end: %.300s", a.status, a.body)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(all, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		var object map[string]json.RawMessage
		if event != "" && event != ": keep-alive" && (!ok || json.Unmarshal([]byte(data), &object) != nil) {
			t.Errorf("invalid event %.300q", event)
		}
	}
}

func checkError(t *testing.T, status int, body []byte) {
	t.Helper()
	var refusal struct {
		Error *struct {
			Message, Type string
			Param, Code   *string
		}
	}
	if err := json.Unmarshal(body, &refusal); err != nil || status < 400 || status > 504 || refusal.Error == nil ||
		refusal.Error.Message == "" || refusal.Error.Type == "" {
		t.Errorf("status %d with %.300s: %v", status, body, err)
	}
}
