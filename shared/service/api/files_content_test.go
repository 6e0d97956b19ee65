package api_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/credential"
)

// A stored file is served unchanged, and an HTML file cannot run scripts in the service's origin.
func TestFileContentIsSafe(t *testing.T) {
	w := newWorld(t, setup{})
	const undeclared = "application/octet-stream"
	for _, c := range []struct{ name, bytes, declared, mime, disposition string }{
		{"page.html", "<!doctype html><script>alert(1)</script>", undeclared, "text/html", "attachment; "},
		{"dot.gif", "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;", undeclared,
			"image/gif", "inline; "},
		{"drawing.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, undeclared,
			"image/svg+xml", "attachment; "},
		{"drawing.xml", `<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>`, "image/vnd.drawing+xml",
			"image/vnd.drawing+xml", "attachment; "},
		{"clip.xml", `<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>`, "Video/Clip+XML",
			"video/clip+xml", "attachment; "},
	} {
		body, contentType := multiform(part{"file", c.name, c.bytes})
		body = strings.Replace(body, undeclared, c.declared, 1)
		stored := w.stored(w.request("POST", "/v1/files", studio, strings.NewReader(body), "Content-Type: "+contentType))
		path := "/v1/uploads/" + stored.ID
		whole := w.get(path, studio)
		if whole.status != 200 || whole.body != c.bytes || whole.header.Get("ETag") != `"`+stored.MD5+`"` {
			t.Errorf("%s: %d with %q and %v", c.name, whole.status, whole.body, whole.header)
		}
		header := whole.header
		if !strings.HasPrefix(header.Get("Content-Type"), c.mime) || !strings.HasPrefix(header.Get("Content-Disposition"),
			c.disposition) || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is sent as %v", c.name, header)
		}
		if some := w.get(path, studio, "Range: bytes=1-3"); some.status != 206 || some.body != c.bytes[1:4] {
			t.Errorf("%s, a part: %d %q", c.name, some.status, some.body)
		}
		if same := w.get(path, studio, "If-None-Match: "+whole.header.Get("ETag")); same.status != 304 {
			t.Errorf("%s, again: %d", c.name, same.status)
		}
		if other := w.get(path, rival); other.status != 404 {
			t.Errorf("%s for another account: %d", c.name, other.status)
		}
		if a := w.request("DELETE", "/v1/files/"+stored.ID, studio, nil); a.status != 204 {
			t.Fatal(a.body)
		}
		if gone := w.get(path, studio); gone.status != 404 {
			t.Errorf("%s, deleted: %d", c.name, gone.status)
		}
	}
}

// A batch may use any model (docs/contract/batches.md#files). A key limited to models can read only
// the results of batches that it created. A client token limited to models cannot read any.
func TestLimitedKeyReadsOnlyItsBatchResults(t *testing.T) {
	w := newWorld(t, setup{})
	limited := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-2.5"}})
	results := func(key string) string {
		body, contentType := multiform(part{"file", "results.jsonl", "{}"})
		stored := w.stored(w.request("POST", "/v1/files", studio, strings.NewReader(body), "Content-Type: "+contentType))
		f, err := w.shelf.Get(t.Context(), "studio", stored.ID, w.now())
		if err != nil {
			t.Fatal(err)
		}
		copied := f.Blob + "-" + key
		if err := w.blobs.Copy(t.Context(), f.Blob, copied); err != nil {
			t.Fatal(err)
		}
		f.ID, f.Blob, f.Key, f.Purpose = strings.TrimSuffix(f.ID, f.ID[len(f.ID)-4:])+"0000", copied, key, batch.OutputPurpose
		if err := w.shelf.Create(t.Context(), f, 0); err != nil {
			t.Fatal(err)
		}
		return "/v1/uploads/" + f.ID
	}
	own, others := results(idOf(limited)), results("key_1")
	for _, c := range []struct {
		path, key string
		want      int
	}{
		{own, limited, 200}, {others, limited, 403}, {others, studio, 200}, {others, w.mint(studio, credential.Scope{}), 200},
		// A key limited to certain models can mint only tokens with the same limit.
		{own, w.mint(limited, credential.Scope{}), 403}, {own, w.mint(studio, credential.Scope{Models: []string{"gen-2.5"}}), 403},
	} {
		if a := w.get(c.path, c.key); a.status != c.want {
			t.Errorf("%s: %d %s, want %d", c.path, a.status, a.body, c.want)
		}
	}
}
