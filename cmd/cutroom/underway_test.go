package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// headerTime is how long the server waits for the header of a request. It hangs up without
// an answer where it has stood still for as long.
const headerTime = 10 * time.Second

// slowUpload is an upload that goes on for as long as the server takes anything.
type slowUpload struct {
	net.Conn
	begun time.Time
	// again opens another one.
	again func() slowUpload
}

// dribble opens an upload of a file and sends so many bytes, then at most 4 kB a second,
// until the server takes no more.
func dribble(t *testing.T, server *servertest.Server, key string, bytes int) slowUpload {
	t.Helper()
	begun := time.Now()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	t.Cleanup(func() { conn.Close(); patience.Receive(t, "stopped", stopped) })
	go func() {
		defer close(stopped)
		fmt.Fprintf(conn, "POST /v1/files HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\n"+
			"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 400000000\r\n\r\n"+
			"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n", key)
		for rest := make([]byte, bytes); ; rest = make([]byte, 200) {
			if _, err := conn.Write(rest); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return slowUpload{conn, begun, func() slowUpload { return dribble(t, server, key, bytes) }}
}

// answered returns the answer to an upload.
func answered(t *testing.T, conn slowUpload) (status int, body string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience.Max)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	hasHungUp := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	if hasHungUp && time.Since(conn.begun) >= headerTime {
		return answered(t, conn.again())
	}
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("the answer breaks off: %v", err)
	}
	conn.Close()
	return response.StatusCode, string(text)
}

// blobBytes is how many bytes of files there are, those that arrive counted in.
func blobBytes(t *testing.T, data string) (bytes int64) {
	t.Helper()
	for _, folder := range []string{".tmp", "files"} {
		entries, err := os.ReadDir(filepath.Join(data, "blobs", folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil { // else it has gone
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// TestUploadsUnderWay: a token that lives for seconds opens many uploads in an
// account of 1 MB. They hold no more than that, and end with the token; those that a
// crash ends leave nothing behind.
func TestUploadsUnderWay(t *testing.T) {
	t.Parallel()
	const stored, uploads = 1_000_000, 20
	data := t.TempDir()
	tiers := filepath.Join(t.TempDir(), "tiers.yaml")
	if err := os.WriteFile(tiers, fmt.Appendf(nil, "default: {stored_bytes: %d}\ndev: {}\n", stored), 0o600); err != nil {
		t.Fatal(err)
	}
	setting := "CUTROOM_TIERS=" + tiers
	server := start(t, data, setting)
	key := newKey(t, data, nil, "--account", "acme")
	client := &servertest.Client{URL: server.URL(), Key: key}
	mint := func(seconds int) string {
		t.Helper()
		var minted struct {
			APIKey string `json:"apiKey"`
		}
		body, _ := json.Marshal(map[string]int{"expiresIn": seconds})
		call(t, client, http.MethodPost, "/v1/client/tokens", body, "application/json", &minted)
		return minted.APIKey
	}

	// Many that send as much as they can, then one by one, few enough to stay within
	// the storage until their token ends.
	const untilTheEnd = 600 // seconds
	token := mint(untilTheEnd)
	var greedy []slowUpload
	for range uploads {
		greedy = append(greedy, dribble(t, server, token, 10_000_000))
	}
	for _, conn := range greedy {
		if held := blobBytes(t, data); held > stored {
			t.Errorf("%d bytes are held, of %d", held, stored)
		}
		if status, body := answered(t, conn); status != 429 {
			t.Errorf("a greedy upload: %d %s", status, body)
		}
	}
	for arrive, seconds := false, 15; !arrive; seconds = 30 {
		token = mint(seconds)
		ends := time.Now().Add(time.Duration(seconds) * time.Second)
		patient := []slowUpload{dribble(t, server, token, 300_000), dribble(t, server, token, 300_000)}
		eventually(t, "bytes arrive, or the token has ended while this machine stood still", func() bool {
			arrive = blobBytes(t, data) > 0
			return arrive || time.Now().After(ends)
		})
		for _, conn := range patient {
			if status, body := answered(t, conn); status != 401 {
				t.Errorf("with an expired token: %d %s", status, body)
			}
		}
		eventually(t, "nothing of them is left", func() bool { return blobBytes(t, data) == 0 })
	}

	broken := dribble(t, server, mint(untilTheEnd), 600_000)
	eventually(t, "bytes arrive", func() bool {
		if time.Since(broken.begun) > 2*headerTime {
			broken = broken.again()
		}
		return blobBytes(t, data) > 0
	})
	server.Kill()
	server = start(t, data, setting)
	client.URL = server.URL()
	if held := blobBytes(t, data); held > 0 {
		t.Errorf("%d bytes are left of an upload that a crash ended", held)
	}
	store(t, client, make([]byte, stored))
	stop(t, server)
}
