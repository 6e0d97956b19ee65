package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/testkit/servertest"
)

// The client and the model server of the gateway benchmarks implement only as much HTTP as they
// need, so that the proxy between them dominates the measurement.

// chatRequest is a chat request of about 2 KiB. Its last members and closing brace are added later.
var chatRequest = `{"model":"bench","messages":[{"role":"system","content":"` +
	strings.Repeat("Be brief and kind. ", 50) +
	`"},{"role":"user","content":"` + strings.Repeat("How are you today? ", 50) + `"}],"max_tokens":100`

// largePrompt is the length of a large chat's content, in bytes.
const largePrompt = 200 << 10

// largeRequest is a chat request with a long prompt. Its last members and closing brace are added later.
var largeRequest = `{"model":"bench","max_tokens":100,"messages":[{"role":"user","content":"` +
	strings.Repeat("Once upon a time there was a very long prompt. ", largePrompt/47) + `"}]`

// If a chat's "user" has one of these values, the model server responds with a stream: all chunks immediately, or
// single chunks at a steady rate.
const (
	burstUser, flowUser = "burst", "flow"
	burstChunks         = 2000
	flowEvery           = 10 * time.Millisecond
	flowChunks          = 500
)

const wholeAnswer = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"weights",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"I am fine, thank you, and how are you on this ` +
	`beautiful day?"},"finish_reason":"stop"}],"usage":{"prompt_tokens":400,"completion_tokens":16,"total_tokens":416,` +
	`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`

const (
	firstChunk = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"weights\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"fine\"},\"finish_reason\":null}]}\n\n"
	lastChunks = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"weights\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"weights\",\"choices\":[],\"usage\":{\"prompt_tokens\":400,\"completion_tokens\":1,\"total_tokens\":401}}\n\n" +
		"data: [DONE]\n\n"
)

type wire struct {
	conn   net.Conn
	reader *bufio.Reader
	// requests maps each kind of request to its bytes.
	requests map[string][]byte
}

const wireTime = 30 * time.Second

func dialWire(ctx context.Context, address string) (*wire, error) {
	return dialWireAs(ctx, address, servertest.Key)
}

func dialWireAs(ctx context.Context, address, key string) (*wire, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	request := func(path, body string) []byte {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			path, address, key, len(body), body)
	}
	const chat = "/v1/chat/completions"
	return &wire{conn, bufio.NewReader(conn), map[string][]byte{
		"whole":     request(chat, chatRequest+"}"),
		"stream":    request(chat, chatRequest+`,"stream":true}`),
		"large":     request(chat, largeRequest+"}"),
		"flow":      request(chat, chatRequest+`,"stream":true,"user":"`+flowUser+`"}`),
		"burst":     request(chat, chatRequest+`,"stream":true,"user":"`+burstUser+`"}`),
		"messages":  request("/v1/messages", chatRequest+`,"stream":true,"metadata":{"user_id":"`+burstUser+`"}}`),
		"responses": request("/v1/responses", `{"model":"bench","input":"Hello.","stream":true,"user":"`+burstUser+`"}`),
	}}, nil
}

func (w *wire) close() { w.conn.Close() }

// call sends a request and reads the entire response. first is the time until the first byte of the body.
func (w *wire) call(kind string) (first time.Duration, err error) {
	if err := w.conn.SetDeadline(time.Now().Add(wireTime)); err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := w.conn.Write(w.requests[kind]); err != nil {
		return 0, err
	}
	length, err := w.head()
	if err != nil {
		return 0, err
	}
	if _, err := w.reader.Peek(1); err != nil {
		return 0, err
	}
	first = time.Since(begun)
	if length >= 0 {
		_, err = w.reader.Discard(length)
		return first, err
	}
	for {
		n, err := w.chunk()
		if err != nil || n == 0 {
			return first, err
		}
	}
}

func (w *wire) open(kind string) error {
	if _, err := w.conn.Write(w.requests[kind]); err != nil {
		return err
	}
	if _, err := w.head(); err != nil {
		return err
	}
	_, err := w.chunk()
	return err
}

// head reads a response's header. length is -1 for a chunked body.
func (w *wire) head() (length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := w.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first && !bytes.Contains(line, []byte(" 200 ")):
			return 0, fmt.Errorf("the response is %q", line)
		case len(line) == 0:
			return length, nil
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}

// chunk reads a chunk and returns its length. After the last chunk, it also reads the trailer.
func (w *wire) chunk() (int, error) {
	line, err := w.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 32)
	if err != nil {
		return 0, err
	}
	if n > 0 {
		_, err := w.reader.Discard(int(n) + 2)
		return int(n), err
	}
	for {
		line, err := w.reader.ReadSlice('\n')
		if err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
			return 0, err
		}
	}
}

// wireCalls starts several clients that repeat a request for the given time. It returns the number of calls and the
// elapsed time.
func wireCalls(ctx context.Context, address, kind string, callers int,
	length time.Duration) (calls int, took time.Duration, err error) {
	running, ctx := errgroup.WithContext(ctx)
	counts := make([]int, callers)
	begun := time.Now()
	for i := range callers {
		running.Go(func() error {
			w, err := dialWire(ctx, address)
			if err != nil {
				return err
			}
			defer w.close()
			for ; time.Since(begun) < length && ctx.Err() == nil; counts[i]++ {
				if _, err := w.call(kind); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err = running.Wait()
	for _, n := range counts {
		calls += n
	}
	return calls, time.Since(begun), err
}

// modelServer responds immediately to every chat with the same words.
type modelServer struct {
	listener net.Listener
	serving  sync.WaitGroup
	// waiting is the number of responses being held.
	waiting atomic.Int64

	mu sync.Mutex
	// held is closed when responses may continue. It is nil if no responses are held.
	held chan struct{}
}

func newModelServer() (*modelServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &modelServer{listener: listener}
	m.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			m.serving.Go(func() {
				defer conn.Close()
				_ = m.serve(conn) // ends when its client disconnects
			})
		}
	})
	return m, nil
}

func (m *modelServer) address() string { return m.listener.Addr().String() }

// close closes the listener. Connections end when their clients disconnect.
func (m *modelServer) close() { m.listener.Close() }

// hold makes responses wait until release is called. Streams wait after their first chunk.
func (m *modelServer) hold() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make(chan struct{})
	m.held = held
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held = nil
		close(held)
	}
}

func (m *modelServer) serve(conn net.Conn) error {
	reader := bufio.NewReaderSize(conn, 8<<10)
	whole := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(wholeAnswer), wholeAnswer)
	begin := fmt.Appendf(nil,
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n",
		len(firstChunk), firstChunk)
	end := fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(lastChunks), lastChunks)
	var body []byte
	for {
		length, err := requestLength(reader)
		if err != nil {
			return err
		}
		body = slices.Grow(body[:0], length)[:length]
		if _, err := io.ReadFull(reader, body); err != nil {
			return err
		}
		// Search only the end of a request, because the options are there.
		asked := body[max(0, length-200):]
		if length == 0 {
			if _, err := io.WriteString(conn, modelList); err != nil {
				return err
			}
			continue
		}
		if !bytes.Contains(asked, []byte(`"stream":true`)) {
			m.wait()
			if _, err := conn.Write(whole); err != nil {
				return err
			}
			continue
		}
		if _, err := conn.Write(begin); err != nil {
			return err
		}
		if err := m.more(conn, asked); err != nil {
			return err
		}
		if _, err := conn.Write(end); err != nil {
			return err
		}
	}
}

// modelList is the response to every GET, because routers ask a model server for its models.
var modelList = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(modelListBody), modelListBody)

const modelListBody = `{"object":"list","data":[{"id":"bench","object":"model","created":1700000000,"owned_by":"bench"}]}`

// more writes the chunks of a stream between the first and the last.
func (m *modelServer) more(conn net.Conn, asked []byte) error {
	piece := fmt.Appendf(nil, "%x\r\n%s\r\n", len(firstChunk), firstChunk)
	switch {
	case bytes.Contains(asked, []byte(burstUser)):
		_, err := conn.Write(bytes.Repeat(piece, burstChunks))
		return err
	case bytes.Contains(asked, []byte(flowUser)):
		ticker := time.NewTicker(flowEvery)
		defer ticker.Stop()
		for range flowChunks {
			<-ticker.C
			if _, err := conn.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
	m.wait()
	return nil
}

func (m *modelServer) wait() {
	m.mu.Lock()
	held := m.held
	m.mu.Unlock()
	if held != nil {
		m.waiting.Add(1)
		defer m.waiting.Add(-1)
		<-held
	}
}

func requestLength(reader *bufio.Reader) (length int, err error) {
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}
