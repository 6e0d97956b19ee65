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
	"testing"
	"time"

	"cutroom/shared/testkit/servertest"
)

// dribble opens an upload of a file and sends so many bytes, then a few now and
// then, until the server takes no more.
func dribble(t *testing.T, server *servertest.Server, key string, bytes int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-stopped })
	go func() {
		defer close(stopped)
		fmt.Fprintf(conn, "POST /v1/files HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\n"+
			"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 400000000\r\n\r\n"+
			"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n", key)
		for rest := make([]byte, bytes); ; rest = make([]byte, 1<<10) {
			if _, err := conn.Write(rest); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return conn
}

// answered returns the answer to an upload.
func answered(t *testing.T, conn net.Conn) (status int, body string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
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
	token := mint(60)
	var greedy []net.Conn
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
	// Each sends 20 kB a second at most.
	token = mint(15)
	patient := []net.Conn{dribble(t, server, token, 100_000), dribble(t, server, token, 100_000)}
	eventually(t, "bytes arrive", func() bool { return blobBytes(t, data) > 0 })
	for _, conn := range patient {
		if status, body := answered(t, conn); status != 401 {
			t.Errorf("with an expired token: %d %s", status, body)
		}
	}
	eventually(t, "nothing of them is left", func() bool { return blobBytes(t, data) == 0 })

	dribble(t, server, mint(60), 600_000)
	eventually(t, "bytes arrive", func() bool { return blobBytes(t, data) > 0 })
	server.Kill()
	server = start(t, data, setting)
	client.URL = server.URL()
	if held := blobBytes(t, data); held > 0 {
		t.Errorf("%d bytes are left of an upload that a crash ended", held)
	}
	store(t, client, make([]byte, stored))
	stop(t, server)
}
