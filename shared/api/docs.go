package api

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

//go:embed docs
var docsSource embed.FS

// docsPage is the page that shows the OpenAPI document: one text that asks for
// nothing but the document beside it.
type docsPage struct{ text, policy string }

// newDocsPage puts the page together. Its policy lets it run its own script and
// style, which it knows by their hashes, call this service for "Try it", and
// show what such a call answers; and nothing else.
func newDocsPage() (docsPage, error) {
	page := docsPage{policy: "default-src 'none'; connect-src 'self'; img-src data: blob:; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
	html, err := fs.ReadFile(docsSource, "docs/page.html")
	if err != nil {
		return page, err
	}
	page.text = string(html)
	for _, part := range []struct{ kind, name string }{{"style", "docs/page.css"}, {"script", "docs/page.js"}} {
		source, err := fs.ReadFile(docsSource, part.name)
		if err != nil {
			return page, err
		}
		hash := sha256.Sum256(source)
		page.policy += "; " + part.kind + "-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
		page.text = strings.Replace(page.text, "{{"+part.kind+"}}", string(source), 1)
	}
	return page, nil
}

func (p docsPage) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(p.text)))
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Cache-Control", "no-cache")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(p.text)) // fails when the client has gone
}
