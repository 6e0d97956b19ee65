package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/await"
)

// underWay is an upload whose client keeps sending.
type underWay struct {
	w    *world
	conn net.Conn
	done chan struct{} // closed when the server stops reading
	sent int64
}

func formHead(path, key, field string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nx-api-key: " + key + "\r\n" +
		"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 400000000\r\n\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"" + field + "\"; filename=\"a\"\r\n\r\n" + movie
}

func (w *world) putHead(signed announced) string {
	path := strings.TrimPrefix(signed.Upload.URL, w.url)
	return fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path, signed.Size)
}

// announceHuge announces a file that is larger than anything the tests send.
func (w *world) announceHuge(key string) answer {
	w.t.Helper()
	return w.announce(key, `{"filename":"a","mime_type":"a/b","size_bytes":400000000,"md5":"`+hexMD5("")+`"}`)
}

// begin sends the head of a request, then pieces of the body until the server stops reading.
func (w *world) begin(head string) *underWay {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &underWay{w: w, conn: conn, done: make(chan struct{})}
	w.t.Cleanup(func() { conn.Close(); await.Receive(w.t, "u.done", u.done) })
	if _, err := io.WriteString(conn, head); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(u.done)
		piece := frames(64 << 10)
		for {
			n, err := conn.Write(piece)
			if u.sent += int64(n); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return u
}

func (u *underWay) answer() answer {
	u.w.t.Helper()
	u.conn.SetReadDeadline(time.Now().Add(await.Max))
	response, err := http.ReadResponse(bufio.NewReader(u.conn), nil)
	if err != nil {
		u.w.t.Fatalf("no response: %v", err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || !response.Close {
		u.w.t.Errorf("the response is truncated, or the connection stays open: %v", err)
	}
	u.conn.Close()
	return answer{response.StatusCode, response.Header, string(body)}
}

// onDisk returns the bytes of all blobs, including those still arriving.
func (w *world) onDisk() (bytes int64) {
	w.t.Helper()
	for _, name := range w.files() {
		if info, err := os.Stat(filepath.Join(w.root, name)); err == nil {
			bytes += info.Size()
		} else if !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	return bytes
}

// ways returns all ways to upload bytes. Each function returns the head of a request.
func (w *world) ways() map[string]func(key string) string {
	return map[string]func(string) string{
		"a file": func(key string) string { return formHead("/v1/files", key, "file") },
		"a job":  func(key string) string { return formHead("/v1/jobs/gen-2.5", key, "data") },
		"an image": func(key string) string {
			return strings.Replace(formHead("/v1/generate/gen-image-2", key, "data"), movie, picture(w.t), 1)
		},
		"a signed URL": func(key string) string { return w.putHead(w.announced(w.announceHuge(key))) },
	}
}

func TestConcurrentUploadsStayWithinStorage(t *testing.T) {
	const stored = 3_000_000
	w := newWorld(t, setup{stored: stored})
	token := w.mint(studio, credential.Scope{})
	there := w.keep(studio, strings.Repeat("x", stored/2))
	signed := w.announced(w.announce(token, fmt.Sprintf(`{"filename":"a","mime_type":"a/b","size_bytes":%d,"md5":%q}`,
		stored, hexMD5(""))))
	var uploads []*underWay
	for _, head := range []string{
		formHead("/v1/files", token, "file"), formHead("/v1/jobs/gen-2.5", token, "data"),
		strings.Replace(formHead("/v1/generate/gen-image-2", token, "data"), movie, picture(t), 1),
		w.putHead(signed),
	} {
		for range 5 {
			uploads = append(uploads, w.begin(head))
		}
	}
	most := int64(0)
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				most = max(most, w.onDisk())
			}
		}
	}()
	for _, u := range uploads {
		if a := u.answer(); a.status != 429 || a.header.Get("Retry-After") == "" ||
			!strings.Contains(a.detail(), "storage is full") {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	close(stop)
	await.Receive(t, "watched", watched)
	if most <= stored/2 || most > stored {
		t.Errorf("%d bytes were on the disk, of %d that may be", most, stored)
	}
	if a := w.request(http.MethodDelete, "/v1/files/"+there.ID, studio, nil); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	w.nothingStays()
	w.pass(file.SignedTime)
	w.keep(studio, strings.Repeat("x", stored)) // all storage is free again
}

func TestUploadsInProgressAreLimited(t *testing.T) {
	for says := range (&world{t: t}).ways() {
		w := newWorld(t, setup{uploads: 2, allUploads: 3})
		begin := w.ways()[says]
		refused := func(what, key string) {
			t.Helper()
			a := w.send(key, upload("file", "x"))
			if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); a.status != 429 || err != nil || seconds < 1 {
				t.Errorf("%s: %s: %d %s", says, what, a.status, a.body)
			}
		}
		held := func(n int) {
			t.Helper()
			eventually(t, "bytes of the uploads arrive", func() bool { return len(w.files()) == n })
		}
		first, second := w.begin(begin(studio)), w.begin(begin(studio))
		held(2)
		refused("the account's third", studio)
		third := w.begin(begin(rival))
		held(3)
		refused("the server's fourth", rival)
		for _, u := range []*underWay{first, second, third} {
			u.conn.Close()
		}
		w.nothingStays()
		w.keep(studio, "x")
		w.keep(rival, "x")
	}
}

// If an account fills the server with slow uploads, uploads from another account displace them
// until both accounts have equally many.
func TestSlowUploadsCannotBlockOtherAccounts(t *testing.T) {
	for says := range (&world{t: t}).ways() {
		w := newWorld(t, setup{uploads: 64, allUploads: 16})
		head := w.ways()[says]
		var hostile []*underWay
		for i := range 4 {
			secret := fmt.Sprintf("ck_hostile_%d", i)
			w.createKey(fmt.Sprintf("hostile-%d", i), secret)
			for range 4 {
				hostile = append(hostile, w.begin(head(secret)))
				eventually(t, "bytes arrive", func() bool { return len(w.files()) == len(hostile) })
			}
		}
		if a := w.send("ck_hostile_0", upload("file", "x")); a.status != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: more of a hostile account: %d %s", says, a.status, a.body)
		}
		others := []*underWay{w.begin(head(studio)), w.begin(head(studio)), w.begin(head(studio))}
		answers := make(chan int, len(hostile))
		for _, u := range hostile {
			go func() {
				if response, err := http.ReadResponse(bufio.NewReader(u.conn), nil); err == nil {
					answers <- response.StatusCode
				}
			}()
		}
		for range others {
			if status := await.Receive(t, "a hostile upload loses its place", answers); status != 429 {
				t.Errorf("%s: a hostile upload: %d", says, status)
			}
		}
		for _, u := range others {
			select {
			case <-u.done:
				t.Errorf("%s: the other account has lost its place", says)
			default:
			}
		}
		for _, u := range append(hostile, others...) {
			u.conn.Close()
		}
		w.nothingStays()
	}
}

// The limit is shared by all kinds of credentials and applies even if none of the files' bytes arrive.
func TestAnnouncedFilesAreLimited(t *testing.T) {
	w := newWorld(t, setup{uploads: 2, stored: 500_000_000})
	token := w.mint(studio, credential.Scope{})
	w.announced(w.announceHuge(token))
	signed := w.announced(w.announceHuge(studio))
	for _, key := range []string{studio, token} {
		if a := w.announceHuge(key); a.status != 429 || a.header.Get("Retry-After") == "" ||
			!strings.Contains(a.detail(), "announced files without bytes (2)") {
			t.Errorf("a third: %d %s", a.status, a.body)
		}
	}
	// Announced files reserve little storage until their bytes arrive.
	w.keep(studio, strings.Repeat("x", 2_000_000))
	w.announced(w.announceHuge(rival))
	w.pass(file.SignedTime - time.Minute)
	u := w.begin(w.putHead(signed))
	eventually(t, "bytes arrive", func() bool { return len(w.files()) == 2 })
	w.pass(time.Minute)
	// The file without bytes has expired. The other file remains because its bytes are arriving.
	w.announced(w.announceHuge(studio))
	if a := w.announceHuge(studio); a.status != 429 {
		t.Errorf("with the arriving file: %d %s", a.status, a.body)
	}
	u.conn.Close()
}

// An upload ends when its credential becomes invalid. The response gives the reason.
func TestUploadEndsWithItsCredential(t *testing.T) {
	for says := range (&world{t: t}).ways() {
		for ends, end := range map[string]func(w *world){
			"revoked": func(w *world) {
				id := credential.KeyID(credential.HashOf(studio))
				if _, err := w.keys.RevokeKey(t.Context(), audit.Operator(w.now()), id); err != nil {
					t.Fatal(err)
				}
				w.pass(credential.CacheAge)
			},
			"expired": func(w *world) { w.pass(time.Hour) },
		} {
			if says == "a signed URL" && ends == "expired" {
				continue // signed URLs expire anyway
			}
			w := newWorld(t, setup{stored: 1 << 40})
			token := w.mint(studio, credential.Scope{})
			again := w.announced(w.announceHuge(token))
			u := w.begin(w.ways()[says](token))
			eventually(t, "bytes arrive", func() bool { return len(w.files()) > 0 })
			end(w)
			if a := u.answer(); a.status != 401 || a.detail() == "" {
				t.Errorf("%s, %s: %d %s", says, ends, a.status, a.body)
			}
			w.nothingStays()
			if ends == "revoked" {
				if a := w.put(again.Upload.URL, strings.NewReader("x")); a.status != 401 {
					t.Errorf("the signed URL of a revoked key: %d %s", a.status, a.body)
				}
			}
		}
	}
}

func TestUploadsKeepDiskReserve(t *testing.T) {
	const room = 6 << 20
	var w *world
	var mu sync.Mutex
	w = newWorld(t, setup{free: func() (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		return room - w.onDisk(), nil
	}})
	var uploads []*underWay
	for i := range 10 {
		uploads = append(uploads, w.begin(formHead("/v1/files", []string{studio, rival}[i%2], "file")))
	}
	most := int64(0)
	for _, u := range uploads {
		most = max(most, w.onDisk())
		if a := u.answer(); a.status != 507 || !strings.Contains(a.detail(), "disk is full") {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if most > room {
		t.Errorf("%d bytes were on a disk with space for %d", most, room)
	}
	w.nothingStays()
	w.keep(studio, strings.Repeat("x", 1<<20))
	if a := w.get("/v1/files", studio); a.status != 200 {
		t.Errorf("reading: %d", a.status)
	}
}

// A retry gets the first request's response and uses no storage.
func TestRetriedUploadSucceedsInFullAccount(t *testing.T) {
	video := clip(t)
	w := newWorld(t, setup{stored: int64(len(video))})
	again := func(path, field, content, key string) answer {
		body, contentType := multiform(upload(field, content))
		header := []string{"Content-Type: " + contentType, "Idempotency-Key: " + key}
		return w.request(http.MethodPost, path, studio, strings.NewReader(body), header...)
	}
	job := again("/v1/jobs/gen-2.5", "data", video, "job")
	first := again("/v1/files", "file", video, "file")
	kept := len(w.files())
	for _, c := range []struct {
		path, field, key string
		first            answer
	}{{"/v1/jobs/gen-2.5", "data", "job", job}, {"/v1/files", "file", "file", first}} {
		a := again(c.path, c.field, video, c.key)
		if a.status != 200 || a.body != c.first.body || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s, first response %d %s", c.path, a.status, a.body, c.first.status, c.first.body)
		}
		if a := again(c.path, c.field, video, "another"); a.status != 429 {
			t.Errorf("%s under another key: %d %s", c.path, a.status, a.body)
		}
	}
	if a := again("/v1/files", "file", video[1:], "file"); a.status != 409 && a.status != 422 {
		t.Errorf("other bytes under the key: %d %s", a.status, a.body)
	}
	eventually(t, "nothing more is stored", func() bool { return len(w.files()) == kept })
}
