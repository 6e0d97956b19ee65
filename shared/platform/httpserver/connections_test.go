package httpserver_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

const perAddress = 1024

func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: await.Max}).DialContext(
		t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(await.Max)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func asks(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return false
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}

func TestNewConnectionReplacesIdleOne(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	other := dialFrom(t, "127.0.0.2", address)
	if !asks(t, other) {
		t.Fatal("the other address is not served")
	}
	first := dialFrom(t, "127.0.0.1", address)
	if !asks(t, first) {
		t.Fatal("the first connection is not served")
	}
	time.Sleep(200 * time.Millisecond) // until the server has noted that it is idle
	for i := range perAddress {
		if !asks(t, dialFrom(t, "127.0.0.1", address)) {
			t.Fatalf("connection %d is not served", i+2)
		}
	}
	if n, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the longest idle connection reads %d bytes, %v; want its end", n, err)
	}
	if !asks(t, other) {
		t.Error("the other address has lost its connection")
	}
}

// Unfinished requests use memory of at most a small multiple of their size.
func TestUnfinishedHeadersDoNotBlockOthers(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	head := "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 15_000)
	took := alloctest.Of(func() {
		for range perAddress + 10 {
			conn := dialFrom(t, "127.0.0.1", address)
			_, _ = io.WriteString(conn, head) // the server closes those above its limit
		}
		if !asks(t, dialFrom(t, "127.0.0.2", address)) {
			t.Error("another address is not served")
		}
	})
	if most := 6 * len(head) * (perAddress + 10); took > most {
		t.Errorf("the connections took %d bytes, more than %d", took, most)
	}
}

func TestAccountWithManyAddressesDoesNotBlockOthers(t *testing.T) {
	var known atomic.Int64
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "" {
			httpserver.SetAccount(r.Context(), "studio")
			known.Add(1)
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})})
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		for range perAddress {
			_, _ = io.WriteString(dialFrom(t, from, address),
				"POST / HTTP/1.1\r\nHost: a\r\nX-Api-Key: a\r\nContent-Length: 2\r\n\r\n.")
		}
	}
	await.Becomes(t, "uploads", 2*perAddress, func() int { return int(known.Load()) })
	if !asks(t, dialFrom(t, "127.0.0.1", address)) {
		t.Error("a third address is not served")
	}
}

// Slow senders use up all connections of their addresses. Uploads with a credential from those addresses continue.
func TestSlowUnknownSendersAreReplaced(t *testing.T) {
	known := make(chan struct{}, 1)
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "" {
			httpserver.SetAccount(r.Context(), "studio")
			known <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})})
	const unfinished = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
	uploads := []net.Conn{dialFrom(t, "127.0.0.2", address), dialFrom(t, "127.0.0.3", address)}
	for _, upload := range uploads {
		_, _ = io.WriteString(upload, unfinished+"X-Api-Key: a\r\n\r\n.")
		await.Receive(t, "an upload", known)
	}
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		for i := range perAddress + 10 {
			slow := unfinished
			if i%2 == 0 {
				slow += "\r\n." // sends a byte of the body too, not just part of the header
			}
			_, _ = io.WriteString(dialFrom(t, from, address), slow)
		}
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if !asks(t, dialFrom(t, from, address)) {
			t.Errorf("%s is not served", from)
		}
	}
	for i, upload := range uploads {
		_, _ = io.WriteString(upload, ".")
		if answer, err := http.ReadResponse(bufio.NewReader(upload), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("upload %d: %v, %v", i+1, answer, err)
		}
	}
}

// Realtime sessions limit the system's buffer, because frames would wait in it.
func TestUpgradedConnectionHasSendBuffer(t *testing.T) {
	limited := make(chan error, 1)
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrade := &httpserver.OverheadWriter{ResponseWriter: w, Burst: 1 << 20, PerSecond: 1}
		conn, _, err := upgrade.Hijack()
		if err == nil {
			defer conn.Close()
			err = upgrade.SetWriteBuffer(64 << 10)
		}
		limited <- err
	})})
	io.WriteString(dialFrom(t, "127.0.0.1", address), "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if err := await.Receive(t, "the upgrade", limited); err != nil {
		t.Error(err)
	}
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestUnreadResponseNeedsLittleKernelMemory(t *testing.T) {
	taken := make(chan int, 1)
	address, _ := start(t, httpserver.Config{Stall: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.LimitStall(struct{ wrapped }{wrapped{w}}, time.Second)
		sent := 0
		for n, err := 0, error(nil); err == nil; sent += n {
			n, err = w.Write(make([]byte, 64<<10))
		}
		taken <- sent
	})})
	io.WriteString(dialFrom(t, "127.0.0.1", address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if sent := await.Receive(t, "the end of the response", taken); sent > 256<<10 {
		t.Errorf("the kernel took %d KiB, want at most 256", sent>>10)
	}
}
