package api_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

type announced struct {
	reference
	Upload struct {
		Method, URL string
		Headers     map[string]string
		ExpiresAt   string `json:"expires_at"`
	}
}

func (w *world) announce(key, body string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/v1/files", key, strings.NewReader(body), "Content-Type: application/json")
}

func (w *world) announced(a answer) announced {
	w.t.Helper()
	var got announced
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK ||
		got.Upload.Method != http.MethodPut {
		w.t.Fatalf("not announced: %d %s", a.status, a.body)
	}
	return got
}

func (w *world) announceBytes(key, bytes string) announced {
	w.t.Helper()
	return w.announced(w.announce(key, fmt.Sprintf(`{"filename":"film.mp4","mime_type":"video/mp4","size_bytes":%d,`+
		`"md5":%q}`, len(bytes), hexMD5(bytes))))
}

func (w *world) put(signed string, body io.Reader) answer {
	w.t.Helper()
	return w.request(http.MethodPut, strings.TrimPrefix(signed, w.url), "", body)
}

// isUnknown asserts that no client route returns the file.
func (w *world) isUnknown(key string, r reference) {
	w.t.Helper()
	for _, path := range []string{"/v1/files/" + r.ID, "/v1/files/by-md5/" + r.MD5} {
		if a := w.get(path, key); a.status != 404 {
			w.t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := w.request(http.MethodDelete, "/v1/files/"+r.ID, key, nil); a.status != 404 {
		w.t.Errorf("delete: %d %s", a.status, a.body)
	}
	if slices.Contains(w.list(key, "").ids(), r.ID) {
		w.t.Error("the file is listed")
	}
	if problems := w.problems(w.post("gen-2.5", key, text("data", r.ID))); len(problems) != 1 ||
		problems[0].Input != r.ID {
		w.t.Errorf("a job accepts it: %v", problems)
	}
}

// The file exists once all its bytes have arrived (docs/contract/media.md#large-uploads).
func TestSignedURLUploadsFile(t *testing.T) {
	w := newWorld(t, setup{maxUpload: 1000}) // maxUpload does not apply here
	video := clip(t)
	before := time.Now().UTC()
	signed := w.announceBytes(studio, video)
	if !strings.HasPrefix(signed.Upload.URL, w.url+"/v1/uploads/"+signed.ID+"?") || signed.Upload.Headers == nil ||
		signed.Size != int64(len(video)) || signed.MD5 != hexMD5(video) {
		t.Errorf("announced is %+v", signed)
	}
	until, err := time.Parse(time.RFC3339, signed.Upload.ExpiresAt)
	if err != nil || until.Before(before.Add(file.SignedTime-2*time.Second)) ||
		until.After(time.Now().Add(file.SignedTime)) {
		t.Errorf("the URL expires at %s: %v", signed.Upload.ExpiresAt, err)
	}
	w.isUnknown(studio, signed.reference)

	w.pass(10 * time.Minute)
	a := w.put(signed.Upload.URL, strings.NewReader(video))
	if a.status != 200 || a.body != "" || a.header.Get("ETag") != `"`+hexMD5(video)+`"` {
		t.Fatalf("got %d %q %v", a.status, a.body, a.header)
	}
	got := w.stored(w.get("/v1/files/"+signed.ID, studio))
	want := signed.reference
	expires, _ := time.Parse(time.RFC3339, *got.ExpiresAt)
	if remaining := expires.Sub(w.now()); remaining > file.DefaultLifetime ||
		remaining < file.DefaultLifetime-time.Minute {
		t.Errorf("its lifetime does not start with the upload: %s remain", remaining)
	}
	got.ExpiresAt, want.ExpiresAt = nil, nil
	if got != want {
		t.Errorf("the file is %+v, announced as %+v", got, want)
	}
	if ids := w.list(studio, "").ids(); !slices.Equal(ids, []string{signed.ID}) {
		t.Errorf("the list is %v", ids)
	}
	if found := w.stored(w.get("/v1/files/by-md5/"+signed.MD5, studio)); found.ID != signed.ID {
		t.Errorf("by-md5 returns %s", found.ID)
	}
	w.accepted(w.post("gen-2.5", studio, text("data", signed.ID)))
	if a := w.get("/v1/files/"+signed.ID, rival); a.status != 404 {
		t.Errorf("another account reads it: %d", a.status)
	}

	if a := w.put(signed.Upload.URL, strings.NewReader(video)); a.status != 409 ||
		a.detail() != "The file's bytes have already been uploaded." {
		t.Errorf("once more: %d %s", a.status, a.body)
	}
	if a := w.request(http.MethodDelete, "/v1/files/"+signed.ID, studio, nil); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	if a := w.put(signed.Upload.URL, strings.NewReader(video)); a.status != 404 {
		t.Errorf("after its deletion: %d %s", a.status, a.body)
	}
}

// The URL stays valid until the correct bytes arrive.
func TestSignedURLRejectsWrongBytes(t *testing.T) {
	w := newWorld(t, setup{})
	right := string(frames(300 << 10))
	signed := w.announceBytes(studio, right)
	other := "X" + right[1:]
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) } // a body of unknown length
	for _, c := range []struct {
		says string
		body io.Reader
		want string
	}{
		{"too few", strings.NewReader(right[1:]), "The body has 307199 bytes instead of the announced 307200."},
		{"none", nil, "The body has 0 bytes instead of the announced 307200."},
		{"too many", strings.NewReader(right + "x"), "The body has 307201 bytes instead of the announced 307200."},
		{"too few, of unknown length", chunked(right[1:]), "The body has 307199 bytes instead of the announced 307200."},
		{"too many, of unknown length", chunked(right + "x"),
			"The body is longer than the announced 307200 bytes."},
		{"others", strings.NewReader(other), "The body's MD5 is " + hexMD5(other) + " instead of the announced " + hexMD5(right) + "."},
	} {
		problems := w.problems(w.put(signed.Upload.URL, c.body))
		if len(problems) != 1 || problems[0].Msg != "Value error, "+c.want || problems[0].Type != "value_error" ||
			!slices.Equal(problems[0].Loc, []string{"body"}) {
			t.Errorf("%s: %+v", c.says, problems)
		}
		w.nothingStays()
		w.isUnknown(studio, signed.reference)
	}
	part := func(w *world, signed announced, conn net.Conn) {
		path, _ := strings.CutPrefix(signed.Upload.URL, w.url)
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(right), right[:200<<10])
	}
	if a, err := w.raw(func(conn *net.TCPConn) {
		part(w, signed, conn)
		conn.CloseWrite()
	}); err != nil || a.status != 422 {
		t.Errorf("ends: %d %s: %v", a.status, a.body, err)
	}
	w.nothingStays()
	busytest.Try(t, time.Second, func(stall time.Duration) error {
		w := newWorld(t, setup{stall: stall})
		signed := w.announceBytes(studio, right)
		a, err := w.raw(func(conn *net.TCPConn) { part(w, signed, conn) })
		if err != nil || a.status != 408 {
			return fmt.Errorf("stops: %d %s: %v", a.status, a.body, err)
		}
		w.nothingStays()
		return nil
	})
	if a := w.put(signed.Upload.URL, strings.NewReader(right)); a.status != 200 {
		t.Errorf("the right bytes: %d %s", a.status, a.body)
	}
	w.stored(w.get("/v1/files/"+signed.ID, studio))
	if a := w.put(signed.Upload.URL, strings.NewReader(other)); a.status != 409 {
		t.Errorf("others afterwards: %d %s", a.status, a.body)
	}
	if content(t, w.root+"/"+w.blobOf(signed.ID)) != right {
		t.Error("the stored file differs from the announced one")
	}
}

func TestUnsignedURLIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	signed, other := w.announceBytes(studio, "bytes"), w.announceBytes(studio, "bytes")
	parsed, err := url.Parse(signed.Upload.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	expires, _ := strconv.ParseInt(query.Get("expires"), 10, 64)
	with := func(name, value string) string {
		changed, _ := url.ParseQuery(parsed.RawQuery)
		changed.Set(name, value)
		return parsed.Path + "?" + changed.Encode()
	}
	const invalid, expired = "The signature of the URL is invalid.", "The URL has expired."
	refuse := func(says, path, want string) {
		t.Helper()
		if a := w.put(path, strings.NewReader("bytes")); a.status != 403 || a.detail() != want {
			t.Errorf("%s: %d %s", says, a.status, a.body)
		}
	}
	refuse("nothing", parsed.Path, invalid)
	refuse("no signature", with("signature", ""), invalid)
	refuse("another signature", with("signature", strings.ToLower(query.Get("signature"))), invalid)
	refuse("a longer life", with("expires", fmt.Sprint(expires+1)), invalid)
	refuse("another spelling of the time", with("expires", "+"+query.Get("expires")), invalid)
	refuse("words as time", with("expires", "later"), invalid)
	refuse("another file", strings.Replace(signed.Upload.URL, signed.ID, other.ID, 1)[len(w.url):], invalid)
	refuse("an unknown file", strings.Replace(signed.Upload.URL, signed.ID, "file_unknown", 1)[len(w.url):], invalid)
	if a := w.request("POST", parsed.RequestURI(), studio, strings.NewReader("bytes")); a.status != 405 ||
		a.header.Get("Allow") != "GET, HEAD, PUT" {
		t.Errorf("another method: %d %s", a.status, a.body)
	}
	w.nothingStays()
	w.pass(file.SignedTime)
	refuse("too late", parsed.RequestURI(), expired)
	w.isUnknown(studio, signed.reference)
}

// A client that times out and retries may upload the same bytes twice concurrently.
func TestSignedURLSurvivesConcurrentUploads(t *testing.T) {
	w := newWorld(t, setup{stored: 100 << 20})
	bytes := string(frames(2 << 20))
	signed := w.announceBytes(studio, bytes)
	var running sync.WaitGroup
	statuses := make([]int, 4)
	for i := range statuses {
		running.Go(func() {
			sent := bytes
			if i%2 == 1 {
				sent = strings.Repeat("x", len(bytes))
			}
			statuses[i] = w.put(signed.Upload.URL, strings.NewReader(sent)).status
		})
	}
	running.Wait()
	for i, status := range statuses {
		if right := i%2 == 0; right && status != 200 && status != 409 || !right && status != 422 && status != 409 {
			t.Errorf("request %d: %d", i, status)
		}
	}
	if content(t, w.root+"/"+w.blobOf(signed.ID)) != bytes || len(w.files()) != 1 {
		t.Errorf("the file is incomplete or not the only one: %v", w.files())
	}
	await.Becomes(t, "the stored bytes", int64(len(bytes)), func() int64 {
		counted, err := w.shelf.StoredBytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return counted
	})
}

func TestAnnouncementsAreValidated(t *testing.T) {
	w := newWorld(t, setup{})
	hash := strings.Repeat("0123456789abcdef", 2)
	valid := map[string]any{"filename": "film.mp4", "mime_type": "video/mp4", "size_bytes": 5_000_000_000, "md5": hash}
	with := func(name string, value any) string {
		changed := map[string]any{}
		for name, value := range valid {
			changed[name] = value
		}
		changed[name] = value
		text, _ := json.Marshal(changed)
		return string(text)
	}
	without := func(name string) string { return with(name, nil) }
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"the largest file", with("", nil)},
		{"a lifetime", with("ttl_seconds", 60)},
		{"a lifetime as text", with("ttl_seconds", "2592000")},
		{"no expiry", with("ttl_seconds", "persistent")},
		{"a null lifetime means the default", with("ttl_seconds", nil)},
		{"a path as name", with("filename", "/home/me/film.mp4")},
		{"upper case", with("md5", strings.ToUpper(hash))},
		{"a type in upper case", with("mime_type", "Video/MP4")},
		{"an integer with a fraction of zeros", `{"filename":"a","mime_type":"a/b","size_bytes":1.0,"md5":"` + hash + `"}`},
		{"no name", without("filename")},
		{"no type", without("mime_type")},
		{"no size", without("size_bytes")},
		{"no MD5", without("md5")},
		{"an empty name", with("filename", "")},
		{"a name that is too long", with("filename", strings.Repeat("é", 4097))},
		{"a name that is a number", with("filename", 7)},
		{"a type without a slash", with("mime_type", "video")},
		{"a type with parameters", with("mime_type", "text/plain; charset=utf-8")},
		{"an empty file", with("size_bytes", 0)},
		{"a negative size", with("size_bytes", -1)},
		{"too large", with("size_bytes", 5_000_000_001)},
		{"far too large", `{"filename":"a","mime_type":"a/b","size_bytes":1e300,"md5":"` + hash + `"}`},
		{"half a byte", with("size_bytes", 0.5)},
		{"a size as text", with("size_bytes", "1000")},
		{"true as size", with("size_bytes", true)},
		{"an MD5 that is too short", with("md5", hash[1:])},
		{"an MD5 of other digits", with("md5", strings.Repeat("g", 32))},
		{"a lifetime that is too short", with("ttl_seconds", 59)},
		{"a lifetime that is too long", with("ttl_seconds", "2592001")},
		{"half a second", with("ttl_seconds", 60.5)},
		{"words as lifetime", with("ttl_seconds", "forever")},
		{"a list as lifetime", with("ttl_seconds", []int{60})},
		{"several problems", `{"filename":[],"mime_type":"","size_bytes":{},"md5":"x","ttl_seconds":false}`},
		{"nothing", `{}`},
		{"null", `null`},
		{"no body", ``},
		{"a list", `[]`},
		{"no JSON", `{"filename":`},
		{"no UTF-8", "{\"filename\":\"\xff\"}"},
		{"data after the JSON", `{} {}`},
	} {
		outcomes = append(outcomes, w.outcomeOfUpload(c.says, w.announce(studio, c.body)))
	}
	golden(t, "files-announcement", outcomes)
	if a := w.announce(studio, `{"filename":"`+strings.Repeat("x", 2<<20)+`"}`); a.status != 413 {
		t.Errorf("a huge announcement: %d %.100s", a.status, a.body)
	}
	w.nothingStays()

	body := with("", nil)
	a := w.request("POST", "/v1/files", studio, strings.NewReader(body), "Content-Type: application/json; charset=utf-8",
		"X-Forwarded-Proto: https")
	if got := w.announced(a).Upload.URL; !strings.HasPrefix(got, "https://"+w.address+"/v1/uploads/") {
		t.Errorf("behind a proxy the URL is %s", got)
	}
}

func TestLargeFileNeedsLittleMemory(t *testing.T) {
	const size = 96 << 20
	w := newWorld(t, setup{})
	w.keep(studio, "x") // warms up the database
	piece := frames(1 << 20)
	sum := md5.New()
	for range size / len(piece) {
		sum.Write(piece)
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	signed := w.announced(w.announce(studio, fmt.Sprintf(`{"filename":"a","mime_type":"a/b","size_bytes":%d,"md5":%q}`,
		size, hash)))
	const before = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	const after = "\r\n--x--\r\n"
	for says, c := range map[string]struct{ head, before, after string }{
		"form": {fmt.Sprintf("POST /v1/files HTTP/1.1\r\nx-api-key: %s\r\nContent-Type: multipart/form-data; boundary=x\r\n",
			studio), before, after},
		"URL": {"PUT " + strings.TrimPrefix(signed.Upload.URL, w.url) + " HTTP/1.1\r\n", "", ""},
	} {
		runtime.GC()
		idle, most := heap(), uint64(0)
		a, err := w.raw(func(conn *net.TCPConn) {
			fmt.Fprintf(conn, "%sHost: x\r\nContent-Length: %d\r\n\r\n%s", c.head, len(c.before)+size+len(c.after), c.before)
			for range size / len(piece) {
				if _, err := conn.Write(piece); err != nil {
					t.Fatal(err)
				}
				most = max(most, heap())
			}
			io.WriteString(conn, c.after)
		})
		if err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s: %v", says, a.status, a.body, err)
		}
		if most > idle+32<<20 {
			t.Errorf("%s: an upload of %d MiB took the heap from %d to %d MiB", says, size>>20, idle>>20, most>>20)
		}
	}
	files := w.list(studio, "").Files
	if len(files) != 3 || files[0].MD5 != hash || files[1].MD5 != files[0].MD5 && files[2].MD5 != files[0].MD5 {
		t.Errorf("the files are %+v", files)
	}
}
