package api_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/service/api"
)

func (w *world) outcomeOfUpload(says string, a answer) outcome {
	w.t.Helper()
	o := outcome{says: says, status: a.status}
	if a.status == http.StatusUnprocessableEntity {
		for _, p := range w.problems(a) {
			if text, ok := p.Input.(string); ok {
				p.Input = shortened(text)
			}
			o.lines = append(o.lines, p)
		}
		return o
	}
	r := w.stored(a)
	life := any("persistent")
	if r.ExpiresAt != nil {
		created, _ := time.Parse(time.RFC3339, r.CreatedAt)
		expires, _ := time.Parse(time.RFC3339, *r.ExpiresAt)
		life = expires.Sub(created).Seconds()
	}
	o.lines = []any{map[string]any{"filename": r.Filename, "mime_type": r.MIME, "size_bytes": r.Size, "md5": r.MD5,
		"life": life}}
	return o
}

// See docs/contract/media.md#forms and docs/contract/media.md#files.
func TestUploadFormFollowsTheContract(t *testing.T) {
	w := newWorld(t, setup{maxUpload: 1 << 20})
	image := picture(t)
	bytes := upload("file", "\x00\x01\x02 some bytes")
	named := func(name string) part { return part{"file", name, "named"} }
	life := func(value string) []part { return []part{bytes, text("ttl_seconds", value)} }
	var outcomes []outcome
	for _, c := range []struct {
		says  string
		parts []part
	}{
		{"bytes of an unknown type", []part{bytes}},
		{"an image", []part{upload("file", image)}},
		{"text", []part{upload("file", "some text")}},
		{"a part without a file name", []part{text("file", "some text")}},
		{"a text like a reference is stored as bytes", []part{upload("file", "file_1")}},
		{"the maximum size", []part{upload("file", string(frames(1<<20)))}},
		{"one byte more than the maximum", []part{upload("file", string(frames(1<<20+1)))}},
		{"a path as name", []part{named("../../etc/passwd")}},
		{"a Windows path", []part{named(`C:\\Users\\me\\clip.mp4`)}},
		{"control characters in the name", []part{named("a\tb.txt")}},
		{"a control character that is invalid in headers", []part{named("a\x01b.txt")}},
		{"a name in any script", []part{named("Größe 東京 🎬.txt")}},
		{"the minimum lifetime", life("60")},
		{"the maximum lifetime", life("2592000")},
		{"no expiry", life("persistent")},
		{"an empty lifetime means the default", life("")},
		{"a lifetime that is too short", life("59")},
		{"a lifetime that is too long", life("2592001")},
		{"a negative lifetime", life("-60")},
		{"a fraction", life("60.5")},
		{"words", life("forever")},
		{"another case", life("Persistent")},
		{"a lifetime that is not text", life("\xff")},
		{"two lifetimes", []part{bytes, text("ttl_seconds", "60"), text("ttl_seconds", "61")}},
		{"the lifetime before the file", []part{text("ttl_seconds", "60"), bytes}},
		{"no file", []part{text("ttl_seconds", "60")}},
		{"a file that was not chosen", []part{unchosen("file")}},
		{"nothing", nil},
		{"an empty file", []part{upload("file", "")}},
		{"two files", []part{bytes, upload("file", "others")}},
		{"another field", []part{bytes, text("purpose", "edit"), upload("data", "x")}},
		{"several problems", []part{upload("file", ""), text("ttl_seconds", "x")}},
	} {
		before := len(w.files())
		o := w.outcomeOfUpload(c.says, w.send(studio, c.parts...))
		outcomes = append(outcomes, o)
		if o.status != http.StatusOK {
			eventually(t, c.says+": nothing stays", func() bool { return len(w.files()) == before })
		} else if len(w.files()) != before+1 {
			t.Errorf("%s: there are %d blobs more", c.says, len(w.files())-before)
		}
	}
	for _, c := range []struct{ says, contentType, body string }{
		{"no content type", "", "x"},
		{"urlencoded", "application/x-www-form-urlencoded", "file=x"},
		{"no boundary", "multipart/form-data", "x"},
		{"no form", "multipart/form-data; boundary=x", "x"},
		{"an empty body", "multipart/form-data; boundary=x", ""},
	} {
		outcomes = append(outcomes, w.outcomeOfUpload(c.says, w.request("POST", "/v1/files", studio,
			strings.NewReader(c.body), "Content-Type: "+c.contentType)))
	}
	golden(t, "files-upload", outcomes)

	a := w.request("POST", "/v1/files", studio, strings.NewReader(strings.Repeat("x", 3<<20)),
		"Content-Type: multipart/form-data; boundary=x")
	if a.status != 413 || a.detail() != "The request body is larger than 2097152 bytes. "+api.LargeUploads {
		t.Errorf("a body beyond the limit: %d %s", a.status, a.body)
	}
}

// See docs/contract/media.md#files.
func TestFileTypeIsDetected(t *testing.T) {
	w := newWorld(t, setup{})
	random := string([]byte{0, 1, 2, 3, 250, 251})
	for _, c := range []struct{ says, bytes, declared, want string }{
		{"an unchanged image", picture(t), "image/png", "image/png"},
		{"an image that was declared a text", picture(t), "text/plain", "image/png"},
		{"a video that was declared an image", clip(t), "image/png", "video/mp4"},
		{"a document of another kind", "%PDF-1.7\n", "video/mp4", "application/pdf"},
		{"bytes that tell nothing", random, "video/mp4", "video/mp4"},
		{"bytes of a type of their own", random, "application/x-cutroom", "application/x-cutroom"},
		{"parameters are no part of a type", "a,b", "text/csv; charset=utf-8", "text/csv"},
		{"a type is in lower case", random, "Application/X-Thing", "application/x-thing"},
		{"nothing declared, text", "some text", "", "text/plain"},
		{"nothing declared, bytes", random, "", "application/octet-stream"},
		{"nonsense declared", random, "nonsense", "application/octet-stream"},
		{"markup declared", random, "text/<b>", "application/octet-stream"},
	} {
		body := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
		if c.declared != "" {
			body += "Content-Type: " + c.declared + "\r\n"
		}
		body += "\r\n" + c.bytes + "\r\n--x--\r\n"
		r := w.stored(w.request("POST", "/v1/files", studio, strings.NewReader(body),
			"Content-Type: multipart/form-data; boundary=x"))
		if r.MIME != c.want {
			t.Errorf("%s: %s, want %s", c.says, r.MIME, c.want)
		}
		if bytes := content(t, filepath.Join(w.root, "files", filepath.Base(w.blobOf(r.ID)))); bytes != c.bytes {
			t.Errorf("%s: stored is %q", c.says, bytes)
		}
	}
}

func (w *world) blobOf(id string) string {
	w.t.Helper()
	f, err := w.shelf.Get(w.t.Context(), "studio", id, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return f.Blob
}

// Concurrent uploads cannot exceed a tier's storage (docs/contract/limits.md#tiers).
func TestStorageIsLimited(t *testing.T) {
	w := newWorld(t, setup{stored: 1000})
	var mu sync.Mutex
	var running sync.WaitGroup
	var kept []string
	for range 12 {
		running.Go(func() {
			a := w.send(studio, upload("file", strings.Repeat("x", 300)))
			mu.Lock()
			defer mu.Unlock()
			switch seconds := a.header.Get("Retry-After"); {
			case a.status == 200:
				kept = append(kept, w.stored(a).ID)
			case a.status != 429 || seconds == "" || seconds == "0" || !strings.Contains(a.detail(), "1000 bytes"):
				t.Errorf("got %d %s %v", a.status, a.body, a.header)
			}
		})
	}
	running.Wait()
	if len(kept) != 3 {
		t.Fatalf("%d files of 300 bytes were stored, want 3", len(kept))
	}
	eventually(t, "the bytes of rejected uploads are deleted", func() bool { return len(w.files()) == 3 })
	w.keep(rival, strings.Repeat("x", 900)) // another account's storage is separate
	if a := w.announce(studio, `{"filename":"a","mime_type":"a/b","size_bytes":101,"md5":"`+hexMD5("")+
		`"}`); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("an announcement beyond the limit: %d %s", a.status, a.body)
	}
	w.announced(w.announce(studio, `{"filename":"a","mime_type":"a/b","size_bytes":100,"md5":"`+hexMD5("")+`"}`))
	if a := w.send(studio, upload("file", "x")); a.status != 429 {
		t.Errorf("a second file with the announced one: %d", a.status)
	}
	if a := w.request("DELETE", "/v1/files/"+kept[0], studio, nil); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	w.keep(studio, strings.Repeat("x", 300), text("ttl_seconds", "60"))
	w.pass(61 * time.Second)
	w.keep(studio, strings.Repeat("x", 300)) // the expired file no longer counts
}

// brokenShelf returns err when a file is created. If err is Internal, it records the file first.
type brokenShelf struct {
	file.Store
	err error
}

func (s brokenShelf) Create(ctx context.Context, f file.File, limit int64) error {
	if fault.Is(s.err, fault.Internal) {
		if err := s.Store.Create(ctx, f, limit); err != nil {
			return err
		}
	}
	return s.err
}

// Bytes are deleted only if it is certain that their file was not recorded.
func TestBytesAreKeptIfRecordIsUncertain(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		stays  int
	}{
		{errors.New("the response was lost"), 500, 1},
		{fault.New(fault.StorageFull, "The disk is full."), 507, 0},
	} {
		w := newWorld(t, setup{shelf: func(s file.Store) file.Store { return brokenShelf{s, c.err} }})
		if a := w.send(studio, upload("file", "x")); a.status != c.status {
			t.Errorf("%v: %d %s", c.err, a.status, a.body)
		}
		if got := w.list(studio, ""); len(got.Files) != c.stays {
			t.Errorf("%v: %d files are listed", c.err, len(got.Files))
		}
		eventually(t, "the bytes are complete", func() bool { return len(w.files()) == c.stays })
	}
}
