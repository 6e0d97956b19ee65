package httpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

const upload = 500 << 20

var reject = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	const body = `{"detail":"no"}`
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(http.StatusUnauthorized)
	io.WriteString(w, body)
})

// net/http itself rejects unknown expectations. That must not keep the connection open longer.
func TestRejectedExpectationClosesConnection(t *testing.T) {
	busytest.Try(t, 500*time.Millisecond, func(stall time.Duration) error {
		address, _ := start(t, httpserver.Config{Handler: reject, Stall: stall})
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(await.Max)); err != nil {
			return err
		}
		// The second request arrives before the response to the first.
		fmt.Fprint(conn,
			"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: more\r\n\r\n")
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), "HTTP/1.1 417 ") ||
			strings.Count(string(answer), "X-Request-Id: ") != 2 {
			return fmt.Errorf("%q, %v", answer, err)
		}
		return nil
	})
}

func TestRejectionReachesSendingClient(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: reject})
	for name, c := range map[string]struct {
		header string
		chunk  func([]byte) []byte
		end    string
	}{
		"declared length": {
			header: fmt.Sprintf("Content-Length: %d\r\n", upload),
			chunk:  func(p []byte) []byte { return p },
		},
		"chunked": {
			header: "Transfer-Encoding: chunked\r\n",
			chunk:  func(p []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p) },
			end:    "0\r\n\r\n",
		},
		"asked for 100 Continue but did not wait": {
			header: fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", upload),
			chunk:  func(p []byte) []byte { return p },
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			before := allocated()
			chunk := c.chunk(make([]byte, 1<<20))
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n", c.header)
			for range upload >> 20 {
				if _, err := conn.Write(chunk); err != nil {
					t.Fatalf("aborted while sending: %v", err)
				}
			}
			io.WriteString(conn, c.end)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("the response was lost: %v", err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != 401 || string(body) != `{"detail":"no"}` || !answer.Close {
				t.Errorf("got %d %q close=%v: %v", answer.StatusCode, body, answer.Close, err)
			}
			if used := allocated() - before; used > 16<<20 {
				t.Errorf("%d MiB were allocated for a rejected request", used>>20)
			}
		})
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestRejectionReplacesContinue(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: reject})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", upload)
	all, err := io.ReadAll(conn) // ends when the server closes the connection
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 401 ") || strings.Contains(string(all), "100 Continue") {
		t.Errorf("got %q: %v", all, err)
	}
}

func TestContinueIsSentWhenBodyIsRead(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	})})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn,
		"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q: %v", line, err)
	}
	io.WriteString(conn, "hello")
	if rest, err := io.ReadAll(reader); err != nil || !strings.HasSuffix(string(rest), "\r\n\r\nhello") {
		t.Errorf("got %q: %v", rest, err)
	}
}

func TestSmallRejectedRequestKeepsConnection(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: reject})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 2 {
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != 401 || answer.Close {
			t.Errorf("got %d close=%v", answer.StatusCode, answer.Close)
		}
	}
}

// The response arrives long before the stall timeout.
func TestSmallUnfinishedRequestIsRejected(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: reject, Stall: time.Hour, DrainTime: time.Second})
	for name, drip := range map[string]bool{"silent": false, "dripping": true} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n")
			if drip {
				go func() {
					for {
						if _, err := io.WriteString(conn, "."); err != nil {
							return
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			conn.SetReadDeadline(time.Now().Add(await.Max)) // the stall timeout is an hour
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 401 || !answer.Close || len(body) == 0 {
				t.Errorf("got %d close=%v %q, %v", answer.StatusCode, answer.Close, body, err)
			}
		})
	}
}

func TestDrainingIsLimited(t *testing.T) {
	log := newLog()
	address, _ := start(t, httpserver.Config{
		Handler: reject, Logger: log.logger(), DrainBytes: 1 << 20, DrainTime: 100 * time.Millisecond,
	})
	for name, send := range map[string]func(net.Conn){
		"a client that never stops sending": func(conn net.Conn) {
			for chunk := make([]byte, 1<<20); ; {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		},
		"a client that stops midway": func(conn net.Conn) { conn.Write(make([]byte, 100_000)) },
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n")
		send(conn)
		if text := log.wait(t, 1); !strings.Contains(text, `"status":401`) {
			t.Errorf("%s: %s", name, text)
		}
		conn.Close()
	}
}

// The clients run with their default settings.
func TestRejectionReachesCurlAndPython(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: reject})
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, upload); err != nil {
		t.Fatal(err)
	}
	const python = `
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1])
c.request("POST", "/", open(sys.argv[2], "rb"), {"Content-Length": sys.argv[3]})
r = c.getresponse()
print(r.read().decode() + str(r.status), end="")
`
	for name, command := range map[string][]string{
		"curl":                 {"curl", "-sS", "-w", "%{http_code}", "-F", "data=@" + file, "http://" + address},
		"curl without waiting": {"curl", "-sS", "-w", "%{http_code}", "-H", "Expect:", "-F", "data=@" + file, "http://" + address},
		"python":               {"python3", "-c", python, address, file, fmt.Sprint(upload)},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
			if err != nil || string(output) != `{"detail":"no"}401` {
				t.Errorf("got %q: %v", output, err)
			}
		})
	}
}
