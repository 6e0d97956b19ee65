package upstream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/http/httpguts"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/trace"
)

const (
	// maxInterim limits the interim (1xx) responses before the final one.
	maxInterim = 8
	// sentTime is how long to wait for the rest of a request to be written when its response is already complete.
	sentTime = 10 * time.Millisecond
	// usualPieces is the number of pieces of a request with a few edits. A request with more takes an allocation.
	usualPieces = 8
	// maxCopied is the length in bytes of requests that are copied, so that a single write sends them.
	maxCopied = 4 << 10
)

var (
	errHeaderBreaks  = errors.New("a header field of the request contains a line break")
	errHeaderTooLong = errors.New("the header of the response is longer than 64 KiB")
	errNoHTTP        = errors.New("the response is not valid HTTP/1")
	errNotIdle       = errors.New("the idle connection was closed, or the server sent unexpected data on it")
)

// h1Conn is a connection to an upstream that serves one call at a time. It implements the parts of
// HTTP/1.1 (RFC 9112) that are needed for responses to a POST.
type h1Conn struct {
	conn      *httpserver.LazyConn
	transport *h1Transport
	raw       syscall.RawConn
	reader    *bufio.Reader
	// used is when the last call ended, or zero for a new connection.
	used time.Time

	// These fields are for the current call. head is how many more bytes of the head may be read, or -1 once it
	// has been read. until is the deadline for the first byte. silence limits each later read.
	answered   bool
	head       int
	until, end time.Time
	silence    time.Duration
	// start is the start of the heads of requests to target.
	target *url.URL
	start  []byte
	// requestHead is the request's head, and unsent are the pieces of the request that are not written yet.
	requestHead []byte
	pieces      [usualPieces][]byte
	unsent      net.Buffers
	// sent receives whether the rest of a request was written completely. It is nil if no rest is being written.
	sent  chan bool
	ended httpserver.Stopper

	mu          sync.Mutex
	interrupted bool

	// onEnd and step are the methods interrupt and sendAndRead. Making such a value allocates, so they are kept.
	onEnd func()
	step  func(fd uintptr) bool
	// into is the buffer of sendAndRead, whose results are got and failed.
	into   []byte
	got    int
	failed error
}

func newH1Conn(conn net.Conn, t *h1Transport) *h1Conn {
	c := &h1Conn{conn: &httpserver.LazyConn{Conn: conn}, transport: t}
	c.reader, c.onEnd, c.step = bufio.NewReader(c), c.interrupt, c.sendAndRead
	if socket, ok := conn.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn() // an error means that the connection is closed, so the next call fails
	}
	return c
}

func (c *h1Conn) drop() { _ = c.conn.Close() }

func (c *h1Conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupted = true
	_ = c.conn.SetDeadline(time.Unix(1, 0)) // this fails if the connection is closed
}

func (c *h1Conn) Read(p []byte) (int, error) {
	if c.head == 0 {
		return 0, errHeaderTooLong
	}
	if c.head > 0 {
		p = p[:min(len(p), c.head)]
	}
	if c.silence > 0 {
		c.until = time.Now().Add(c.silence)
		if c.until.After(c.end) {
			c.until = c.end
		}
		if err := c.setDeadline(); err != nil {
			return 0, err
		}
	}
	n, err := c.read(p)
	if c.head > 0 {
		c.head -= n
	}
	c.answered = c.answered || n > 0
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrSilent
	}
	return n, err
}

// read first sends the request, if it is not sent yet.
func (c *h1Conn) read(p []byte) (int, error) {
	if c.raw == nil {
		return c.conn.Read(p)
	}
	c.into = p
	err := c.conn.ReadRaw(c.raw, c.step)
	c.into, c.unsent = nil, nil
	if err != nil {
		return 0, err
	}
	return c.got, c.failed
}

// sendAndRead returns false if it must be called again once the connection is readable. Its first call reads from a
// kept connection too, although the response cannot have arrived yet. This shows whether the server has closed the
// connection or sent unexpected bytes, which would become the response.
func (c *h1Conn) sendAndRead(fd uintptr) (done bool) {
	var err error
	c.got, err = httpserver.RawCall(syscall.SYS_READ, fd, c.into)
	c.failed = err
	if len(c.unsent) > 0 {
		if err != syscall.EAGAIN && !c.used.IsZero() {
			c.got, c.failed = 0, errNotIdle
			return true
		}
		c.write(fd)
		c.sendLater()
	}
	return err != syscall.EAGAIN
}

func (c *h1Conn) setDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted {
		return context.Canceled
	}
	return c.conn.SetDeadline(c.until)
}

// call sends a request and reads the response's head. An error closes the connection.
func (c *h1Conn) call(ctx context.Context, now time.Time, target *url.URL, request Request) (Reply, error) {
	c.answered, c.head, c.silence = false, maxAnswerHeader, 0
	c.until, c.end = now.Add(request.FirstByte), now.Add(maxCallTime)
	if err := c.setDeadline(); err != nil {
		return Reply{}, err
	}
	c.ended = httpserver.AfterFunc(ctx, c.onEnd)
	r, err := c.exchange(target, request)
	if err != nil {
		c.ended.Stop()
		c.drop()
		c.awaitSent()
		return Reply{}, err
	}
	return r, nil
}

func (c *h1Conn) exchange(target *url.URL, request Request) (Reply, error) {
	if strings.ContainsAny(request.Secret, "\r\n") {
		return Reply{}, errHeaderBreaks
	}
	if c.target != target {
		c.target, c.start = target, appendStart(c.start[:0], target)
	}
	c.requestHead = appendFields(append(c.requestHead[:0], c.start...), request)
	c.unsent = request.Body.AppendPieces(append(c.pieces[:0], c.requestHead))
	if len(c.requestHead)+request.Body.Len() <= maxCopied {
		for _, piece := range c.unsent[1:] {
			c.requestHead = append(c.requestHead, piece...)
		}
		c.unsent = append(c.pieces[:0], c.requestHead)
	}
	if c.raw == nil {
		c.sendLater()
		c.unsent = nil
	}
	return c.receive()
}

// write writes pieces without blocking, because package net's connections are non-blocking. It ignores errors, because
// the next write fails too.
func (c *h1Conn) write(fd uintptr) {
	var n int
	if len(c.unsent) == 1 {
		n, _ = httpserver.RawCall(syscall.SYS_WRITE, fd, c.unsent[0])
	} else {
		n, _ = httpserver.RawWritev(fd, c.unsent)
	}
	for len(c.unsent) > 0 && n >= len(c.unsent[0]) {
		n -= len(c.unsent[0])
		c.unsent = c.unsent[1:]
	}
	if n > 0 {
		c.unsent[0] = c.unsent[0][n:]
	}
}

// sendLater writes the rest of the request concurrently, because the server may respond before it has read all of it.
func (c *h1Conn) sendLater() {
	if len(c.unsent) > 0 {
		c.sent = make(chan bool, 1)
		go send(c.unsent, c.conn, c.sent)
		c.unsent = c.unsent[:0]
	}
}

// send ignores the error, because the outcome depends only on the response.
func send(rest net.Buffers, to io.Writer, sent chan<- bool) {
	_, err := rest.WriteTo(to)
	sent <- err == nil
}

// awaitSent waits until the request's body is no longer in use. The connection must be closed first.
func (c *h1Conn) awaitSent() {
	if c.sent != nil {
		<-c.sent
		c.sent = nil
	}
}

// isSent reports whether the request has been written. It waits briefly for the writer.
func (c *h1Conn) isSent() bool {
	if c.sent == nil {
		return true
	}
	timer := time.NewTimer(sentTime)
	defer timer.Stop()
	select {
	case whole := <-c.sent:
		c.sent = nil
		return whole
	case <-timer.C:
		return false
	}
}

func (c *h1Conn) receive() (Reply, error) {
	for range maxInterim + 1 {
		r, err := c.readHead()
		if err != nil {
			return Reply{}, err
		}
		if r.Status == http.StatusSwitchingProtocols {
			return Reply{}, errSwitched
		}
		if r.Status >= http.StatusOK {
			c.head = -1
			return r, nil
		}
	}
	return Reply{}, errNoHTTP
}

// appendStart appends the part of a head that is the same for all requests to a target.
func appendStart(out []byte, target *url.URL) []byte {
	return fmt.Appendf(out, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept-Encoding: %s", target.RequestURI(),
		target.Host, userAgent[0], identityCoding[0])
}

func appendFields(out []byte, r Request) []byte {
	field := func(name, value string) { out = append(append(out, name...), value...) }
	field("\r\nContent-Type: ", cmp.Or(r.ContentType, jsonType[0]))
	if r.Stream {
		field("\r\nAccept: ", streamType[0])
	}
	switch {
	case r.Secret == "":
	case r.KeyHeader != "":
		field("\r\n"+r.KeyHeader+": ", r.Secret)
	default:
		field("\r\nAuthorization: Bearer ", r.Secret)
	}
	if r.Version != "" {
		field("\r\n"+versionHeader+": ", r.Version)
	}
	if r.Traceparent != "" {
		field("\r\n"+trace.Header+": ", r.Traceparent)
	}
	out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(r.Body.Len()), 10)
	return append(out, "\r\n\r\n"...)
}

// readHead reads a response's head the way http.ReadResponse does (see FuzzWire). It rejects ambiguous heads, such as
// heads with a folded field, because readers disagree about where such responses end (RFC 9112, sections 2.2 and 5).
func (c *h1Conn) readHead() (Reply, error) {
	line, err := c.readLine()
	if err != nil {
		return Reply{}, err
	}
	status, old, err := parseStatusLine(line)
	if err != nil {
		return Reply{}, err
	}
	r, body := Reply{Status: status, Length: -1}, &h1Body{conn: c, last: old}
	chunked := false
	for {
		line, err := c.readLine()
		if err != nil {
			return Reply{}, err
		}
		if len(line) == 0 {
			break
		}
		if err := readField(line, old, &r, body, &chunked); err != nil {
			return Reply{}, err
		}
	}
	if status < 200 {
		return r, nil
	}
	body.frame(&r, chunked)
	return r, nil
}

// parseStatusLine parses a response's first line, such as "HTTP/1.1 200 OK". old means HTTP/1.0.
func parseStatusLine(line string) (status int, old bool, err error) {
	if line == "HTTP/1.1 200 OK" { // the usual line
		return http.StatusOK, false, nil
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err = strconv.Atoi(code)
	old = version == "HTTP/1.0"
	if !old && version != "HTTP/1.1" || len(code) != 3 || err != nil || status < 100 {
		return 0, false, errNoHTTP
	}
	return status, old, nil
}

func readField(line string, old bool, r *Reply, body *h1Body, chunked *bool) error {
	name, value, ok := cutField(line)
	if !ok {
		return errNoHTTP
	}
	switch {
	case isField(name, "Content-Length"):
		n, err := strconv.ParseUint(value, 10, 62)
		octal := len(value) > 1 && value[0] == '0' // some readers would parse it as octal
		if err != nil || octal || r.Length >= 0 && r.Length != int64(n) {
			return errNoHTTP
		}
		r.Length = int64(n)
	case isField(name, "Transfer-Encoding"):
		// HTTP/1.0 has no chunked encoding, so the end of the response would be a guess.
		if *chunked || old || !strings.EqualFold(value, "chunked") {
			return errNoHTTP
		}
		*chunked = true
	case isField(name, "Connection"):
		body.last = body.last || strings.Contains(strings.ToLower(value), "close")
	case isField(name, "Content-Type") && r.ContentType == "":
		r.ContentType = contentType(value)
	case isField(name, "Content-Encoding") && r.Encoding == "":
		r.Encoding = strings.Clone(value)
	case isField(name, "Retry-After") && r.RetryAfter == "":
		r.RetryAfter = strings.Clone(value)
	case isField(name, "Date") && r.Status != 200 && r.Date == "":
		r.Date = strings.Clone(value)
	}
	return nil
}

func cutField(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	ok = ok && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
	return name, textproto.TrimString(value), ok
}

func isField(name, wanted string) bool {
	return len(name) == len(wanted) && (name == wanted || strings.EqualFold(name, wanted))
}

// contentType copies the value. It does not allocate for the two most common values.
func contentType(value string) string {
	switch value {
	case "application/json":
		return "application/json"
	case "text/event-stream":
		return "text/event-stream"
	}
	return strings.Clone(value)
}

// readLine reads a line of a head without its line ending, which may lack the carriage return (RFC
// 9112, section 2.2). The line is valid until the next read.
func (c *h1Conn) readLine() (string, error) {
	line, err := c.reader.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
		for err == bufio.ErrBufferFull {
			var more []byte
			more, err = c.reader.ReadSlice('\n')
			line = append(line, more...)
		}
	}
	return strings.TrimSuffix(strings.TrimSuffix(view(line), "\n"), "\r"), err
}

// view converts bytes to a string without copying. The bytes must not change while the string is in use.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
