package httpserver_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

func takeAll() (http.Handler, <-chan error) {
	results := make(chan error, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		results <- err
		if err != nil {
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}), results
}

func drip(conn net.Conn, every time.Duration) {
	for {
		if _, err := io.WriteString(conn, "."); err != nil {
			return
		}
		time.Sleep(every)
	}
}

// The body is slow but never pauses for too long, or it never ends.
func TestSlowBodyIsCutOff(t *testing.T) {
	for says, c := range map[string]struct {
		config httpserver.Config
		head   string
	}{
		"a byte now and then": {
			httpserver.Config{Grace: 200 * time.Millisecond}, "Content-Length: 100000\r\n\r\n",
		},
		"no end": {
			// The bytes are sent fast enough for these limits.
			httpserver.Config{Slowest: 1, Longest: 200 * time.Millisecond}, "Content-Length: 100000\r\n\r\n",
		},
		"no end, with chunks": {
			httpserver.Config{Slowest: 1, Longest: 200 * time.Millisecond}, "Transfer-Encoding: chunked\r\n\r\n100000\r\n",
		},
	} {
		handler, results := takeAll()
		c.config.Handler, c.config.DrainTime = handler, 50*time.Millisecond
		address, _ := start(t, c.config)
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+c.head)
		go drip(conn, 5*time.Millisecond)
		if err := await.Receive(t, "results", results); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: got %v, want a timeout", says, err)
		}
		if answer, _ := io.ReadAll(conn); !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%s: got %.40q, want the handler's 408", says, answer)
		}
	}
}

// The sender is fast enough on average. Time that the handler spends does not count.
func TestBodyMayPause(t *testing.T) {
	t.Parallel()
	busytest.Try(t, time.Second, func(grace time.Duration) error {
		handler, results := takeAll()
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body.Read(make([]byte, 1))
			time.Sleep(2 * grace)
			handler.ServeHTTP(w, r)
		})
		// 8 pieces, each of slowest x grace bytes, arrive with pauses of grace / 5.
		const slowest = 100
		piece := strings.Repeat(".", int(slowest*grace/time.Second))
		address, _ := start(t, httpserver.Config{Handler: slow, Slowest: slowest, Grace: grace})
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 8*len(piece))
		for range 8 {
			io.WriteString(conn, piece)
			time.Sleep(grace / 5)
		}
		return <-results
	})
}
