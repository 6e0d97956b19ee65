package api

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cutroom/shared/service/console/theme"
)

//go:embed docs realtime
var pageSources embed.FS

type page struct{ text, policy string }

// pagePart matches a placeholder. It is compiled on first use, because few functions serve pages.
var pagePart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{[a-z.]+\}\}`) })

// newPage builds the page in a folder. In its page.html, {{theme.css}} stands for the style shared by all pages,
// {{name.css}} and {{name.js}} for files in the folder, and {{data}} for data as JSON.
//
// The page's Content-Security-Policy allows its scripts and styles by their hashes. directives adds
// further permissions.
func newPage(folder string, data any, directives ...string) (*page, error) {
	source, err := pageSources.ReadFile(folder + "/page.html")
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	text := pagePart().ReplaceAllFunc(source, func(part []byte) []byte {
		name := string(part[2 : len(part)-2])
		if name == "data" {
			return encoded // json.Marshal escapes <, which could end the element
		}
		content := []byte(theme.CSS())
		if name != "theme.css" {
			var failure error
			if content, failure = pageSources.ReadFile(folder + "/" + name); failure != nil {
				err = failure
				return nil
			}
		}
		directive := "script-src"
		if strings.HasSuffix(name, ".css") {
			directive = "style-src"
		}
		hash := sha256.Sum256(content)
		hashes[directive] += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
		return content
	})
	policy := append([]string{
		"default-src 'none'", "base-uri 'none'", "form-action 'none'",
		"style-src" + hashes["style-src"], "script-src" + hashes["script-src"],
	}, directives...)
	return &page{string(text), strings.Join(policy, "; ")}, err
}

func (p *page) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(p.text)))
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Cache-Control", "no-cache")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(p.text)) // fails if the client has disconnected
}
