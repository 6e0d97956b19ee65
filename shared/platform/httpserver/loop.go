package httpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"

	"cutroom/shared/platform/panics"
)

// loopBuffer is the size in bytes of a connection's buffer. Only requests whose head fits into it are served here.
const loopBuffer = 4 << 10

// leftEvery is how often the loop checks whether the clients of running requests have disconnected. It is also the
// pause after a failure to accept a connection.
const leftEvery = 100 * time.Millisecond

// loops serves plain requests with less work than net/http. It serves a POST with a Content-Length whose head has
// arrived completely and has no unusual byte. It passes a connection with any other request to net/http, together with
// the bytes that it has read.
type loops struct {
	net.Listener
	server *Server
	base   context.Context
	passed chan net.Conn
	closed chan struct{}

	// date is the Date field of responses with its line ending.
	date atomic.Pointer[string]

	// serving ends when the listener is closed and all connections have ended or been passed.
	serving  sync.WaitGroup
	mu       sync.Mutex
	open     map[*loopConn]struct{}
	stopping bool
}

func newLoops(s *Server, base context.Context) *loops {
	return &loops{
		server: s, base: base, passed: make(chan net.Conn),
		closed: make(chan struct{}), open: map[*loopConn]struct{}{},
	}
}

func (f *loops) serve(l net.Listener) net.Listener {
	f.Listener = l
	f.setDate()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping { // a Shutdown may already be waiting
		close(f.closed)
	} else {
		f.serving.Go(f.accept)
	}
	go f.watch()
	return f
}

// Accept returns the connections for net/http.
func (f *loops) Accept() (net.Conn, error) {
	select {
	case conn := <-f.passed:
		return conn, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *loops) accept() {
	for {
		conn, err := f.Listener.Accept()
		watched, ok := conn.(*watchedConn)
		switch {
		case errors.Is(err, net.ErrClosed):
			close(f.closed)
			return
		case err != nil:
			f.server.logger.Warn("cannot accept a connection; trying again", "error", err)
			time.Sleep(leftEvery)
		case !ok:
			f.pass(conn)
		default:
			c := newLoopConn(f, watched)
			f.add(c)
			f.serving.Go(func() {
				if !panics.Run(f.server.logger, "connection", c.serve) {
					conn.Close()
				}
			})
		}
	}
}

func (f *loops) pass(conn net.Conn) {
	select {
	case f.passed <- conn:
	case <-f.closed:
		conn.Close()
	}
}

func (f *loops) add(c *loopConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.stopping = f.stopping
	f.open[c] = struct{}{}
}

func (f *loops) remove(c *loopConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
}

// each calls a function for each open connection.
func (f *loops) each(do func(*loopConn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		do(c)
	}
}

// stop closes idle connections, and the others after their current requests. If cut is true, it also ends those.
func (f *loops) stop(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	for c := range f.open {
		c.stop(cut)
	}
}

// watch ends the contexts of requests whose clients have disconnected. It also sets the date.
func (f *loops) watch() {
	ticker := time.NewTicker(leftEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.setDate()
			f.each((*loopConn).checkClient)
		case <-f.base.Done():
			return
		}
	}
}

func (f *loops) setDate() {
	field := "Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n"
	f.date.Store(&field)
}

type loopConn struct {
	loops *loops
	conn  *watchedConn
	// buffer[from:to] has been read, but is not part of the current request's head.
	buffer   []byte
	from, to int
	out      []byte
	remote   string
	// header is the header of the current response. It is reused, because making a map allocates.
	header http.Header

	raw syscall.RawConn
	// readOnce reads into the slice into, with the results got and failed. writeOnce writes a part of unsent. They are
	// kept, because making such a value allocates.
	readOnce, writeOnce func(fd uintptr) (done bool)
	into, unsent        []byte
	got                 int
	failed              error

	mu sync.Mutex
	// call is the current call. arrived means that its request has been read completely. checked means that it was
	// running at the last check.
	call             *loopCall
	arrived, checked bool
	stopping         bool
}

func newLoopConn(f *loops, conn *watchedConn) *loopConn {
	c := &loopConn{loops: f, conn: conn, buffer: make([]byte, loopBuffer), header: make(http.Header, 8)}
	c.raw, _ = conn.tcp.SyscallConn() // fails only for a nil connection
	c.readOnce = func(fd uintptr) bool {
		c.got, c.failed = RawCall(syscall.SYS_READ, fd, c.into)
		return c.failed != syscall.EAGAIN
	}
	c.writeOnce = func(fd uintptr) bool {
		n, _ := RawCall(syscall.SYS_WRITE, fd, c.unsent) // if it fails, the next write fails too
		c.unsent = c.unsent[n:]
		return true
	}
	return c
}

func (c *loopConn) read(p []byte) (int, error) {
	c.into = p
	err := c.conn.ReadRaw(c.raw, c.readOnce)
	if c.into = nil; err != nil {
		return 0, err
	}
	return c.got, c.failed
}

func (c *loopConn) write(p []byte) (n int, err error) {
	c.unsent = p
	_ = c.raw.Write(c.writeOnce)
	if n = len(p) - len(c.unsent); n < len(p) {
		var more int
		more, err = c.conn.LazyConn.Write(c.unsent)
		n += more
	}
	c.unsent = nil
	return n, err
}

func (c *loopConn) serve() {
	defer c.loops.remove(c)
	c.remote = c.conn.RemoteAddr().String()
	ctx := withConn(c.loops.base, c.conn)
	for wait := headerTime; c.await(wait); wait = IdleTime {
		l := new(loopCall)
		head, ok := parseHead(c.buffer[c.from:c.to], l.values[:])
		if !ok {
			_ = c.conn.SetReadDeadline(time.Time{})
			c.conn.answering.Store(false)
			c.conn.read = bytes.Clone(c.buffer[c.from:c.to])
			c.loops.pass(c.conn)
			return
		}
		c.from += head.size
		if !c.answer(ctx, l, head) {
			break
		}
		c.conn.connections.note(c.conn, true)
	}
	c.conn.Close()
}

// await waits until a request begins to arrive. It returns false if the connection must be closed.
func (c *loopConn) await(wait time.Duration) bool {
	if c.from == c.to {
		if c.conn.SetReadDeadline(time.Now().Add(wait)) != nil || c.setCall(nil, false) {
			return false
		}
		n, err := c.read(c.buffer)
		if c.from, c.to = 0, n; n == 0 || err != nil {
			return false
		}
	} else if c.from > 0 {
		c.from, c.to = 0, copy(c.buffer, c.buffer[c.from:c.to])
	}
	c.conn.connections.note(c.conn, false)
	return true
}

func (c *loopConn) stop(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping = true; c.call == nil {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	} else if cut {
		c.call.cancel()
	}
}

func (c *loopConn) isStopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// setCall records that a call begins, that its request has been read completely, or, if it is nil, that it has ended.
func (c *loopConn) setCall(call *loopCall, arrived bool) (stopping bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.call, c.arrived, c.checked = call, arrived, false
	return c.stopping
}

// checkClient makes no system call for short requests.
func (c *loopConn) checkClient() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.arrived || !c.checked {
		c.checked = true
		return
	}
	var next [1]byte
	var n int
	var failed error
	err := c.raw.Control(func(fd uintptr) { n, _, failed = unix.Recvfrom(int(fd), next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) })
	if err != nil || n <= 0 && !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR) {
		c.call.cancel()
	}
}

// loopCall is a request with its response. It is the request's context, and takes its values from another one.
type loopCall struct {
	context.Context
	request http.Request
	url     url.URL
	body    loopBody
	writer  loopWriter
	// values is the memory for the values of the request's header, if it has few fields.
	values [usualFields]string

	mu sync.Mutex
	// done is nil until Done is called.
	done  chan struct{}
	err   error
	after []*afterEnd
	// first is the first element of after, and list is its array, because most calls have only one element.
	first afterEnd
	list  [1]*afterEnd
}

// afterEnd is a function that is called when a call's context ends.
type afterEnd struct {
	call *loopCall
	do   func()
}

// Stop prevents the call of the function. It returns false if the context has ended or Stop was called before.
func (a *afterEnd) Stop() bool {
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	before := len(a.call.after)
	a.call.after = slices.DeleteFunc(a.call.after, func(other *afterEnd) bool { return other == a })
	return len(a.call.after) < before
}

func (l *loopCall) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

func (l *loopCall) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// AfterFunc is used by package context.
func (l *loopCall) AfterFunc(f func()) (stop func() bool) { return l.afterFunc(f).Stop }

func (l *loopCall) afterFunc(f func()) Stopper {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := &l.first
	if own.call != nil {
		own = new(afterEnd)
	} else {
		l.after = l.list[:0]
	}
	own.call, own.do = l, f
	if l.err == nil {
		l.after = append(l.after, own)
	} else {
		go f()
	}
	return own
}

func (l *loopCall) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = context.Canceled
	if l.done != nil {
		close(l.done)
	}
	for _, each := range l.after {
		go each.do()
	}
	l.after = nil
}

// answer serves a request. It returns false if the connection must be closed.
func (c *loopConn) answer(ctx context.Context, l *loopCall, head loopHead) (keep bool) {
	l.Context, l.url.Path = ctx, head.path
	defer l.cancel()
	if c.setCall(l, false); ctx.Err() != nil {
		l.cancel()
	}
	w := &l.writer
	w.call, w.conn, w.header, w.length = l, c, c.header, -1
	l.body = loopBody{call: l, conn: c, left: head.length}
	l.request = http.Request{
		Method: http.MethodPost, URL: &l.url, RequestURI: head.path,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: head.header, Host: head.host,
		Body: &l.body, ContentLength: head.length, RemoteAddr: c.remote,
	}
	ended := c.run(l)
	w.closes = c.setCall(nil, false) || w.closes || l.body.left > 0
	if w.closes && w.err == nil {
		c.conn.refused.Store(true) // the client may still be sending
	}
	keep = ended && w.finish() == nil && !w.closes
	clear(c.header) // an idle connection must not keep the memory of a call
	return keep
}

func (c *loopConn) run(l *loopCall) (ended bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			c.loops.server.logger.Error("a request panicked", "panic", p)
		}
	}()
	c.loops.server.handle(l, &l.writer, &l.request)
	return true
}

type loopHead struct {
	path, host string
	header     http.Header
	length     int64
	// size is the length of the head, in bytes.
	size int
}

// usualFields is the number of header fields that most requests do not exceed.
const usualFields = 12

// parseHead accepts only heads that net/http and every proxy understand in the same way. It uses the memory of values if
// it suffices.
func parseHead(text []byte, values []string) (h loopHead, ok bool) {
	if h.length = -1; !bytes.HasPrefix(text, []byte("POST /")) {
		return h, false
	}
	end := bytes.Index(text, []byte("\r\n\r\n"))
	if end < 0 {
		return h, false
	}
	h.size = end + len("\r\n\r\n")
	line, rest, _ := strings.Cut(string(text[:h.size-len("\r\n")]), "\r\n")
	h.path, ok = strings.CutSuffix(line[len("POST "):], " HTTP/1.1")
	fields := strings.Count(rest, "\n")
	if !ok || !isPlainPath(h.path) || fields > maxFields {
		return h, false
	}
	h.header = make(http.Header, fields)
	if fields > len(values) {
		values = make([]string, fields) // one allocation for all fields
	}
	for i := range fields {
		end, colon := strings.IndexByte(rest, '\n'), strings.IndexByte(rest, ':')
		if colon < 0 || colon > end || rest[end-1] != '\r' {
			return h, false
		}
		name, valid := canonicalName(rest[:colon])
		value := rest[colon+1 : end-1]
		if !valid || !isPlain(value) {
			return h, false
		}
		rest, value = rest[end+1:], strings.Trim(value, " ")
		if !h.note(name, value) {
			return h, false
		}
		if before := h.header[name]; before != nil {
			h.header[name] = append(before, value)
		} else if name != "Host" {
			values[i] = value
			h.header[name] = values[i : i+1 : i+1]
		}
	}
	return h, h.length > 0 && h.host != ""
}

// note records the fields that say where a request ends and for which host it is. It returns false if net/http must
// serve the request.
func (h *loopHead) note(name, value string) bool {
	switch name {
	case "Host":
		known := h.host != ""
		h.host = value
		return !known && value != "" && httpguts.ValidHostHeader(value)
	case "Content-Length":
		known := h.length >= 0
		n, err := strconv.ParseUint(value, 10, 62)
		h.length = int64(n)
		return !known && err == nil && value[0] != '0' && value[0] != '+'
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Pragma", "Te", "Keep-Alive", "Proxy-Connection",
		"Http2-Settings":
		return false
	}
	return true
}

// canonicalName is textproto.CanonicalMIMEHeaderKey. It takes less time for names that are canonical already.
func canonicalName(name string) (canonical string, valid bool) {
	low := byte('A') // of the letters that are canonical here
	for i := range len(name) {
		switch c := name[i]; {
		case c-low < 26:
			low = 'a'
		case c == '-':
			low = 'A'
		default:
			return textproto.CanonicalMIMEHeaderKey(name), httpguts.ValidHeaderFieldName(name)
		}
	}
	return name, name != ""
}

func isPlain(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return true
}

func isPlainPath(path string) bool {
	for i := range len(path) {
		c := path[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '/' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return !strings.Contains(path, "//")
}

type loopBody struct {
	call   *loopCall
	conn   *loopConn
	left   int64
	failed bool
}

func (b *loopBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	c := b.conn
	if p = p[:min(int64(len(p)), b.left)]; c.from < c.to {
		n = copy(p, c.buffer[c.from:c.to])
		c.from += n
	} else {
		n, err = c.read(p)
	}
	if b.left -= int64(n); b.left == 0 && n > 0 {
		c.setCall(b.call, true)
		return n, io.EOF
	}
	if b.failed = err != nil; err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// hasArrived reports whether the unread part of the body is in the connection's buffer.
func (b *loopBody) hasArrived() bool { return b.left <= int64(b.conn.to-b.conn.from) }

func (b *loopBody) Close() error { return nil }
