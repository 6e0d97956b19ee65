// Package console contains the web console at /console: static files and a settings file for any
// file server, such as the server itself or a bucket behind CloudFront.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"cutroom/shared/service/console/theme"
)

//go:embed static
var static embed.FS

const (
	// Index is the file served at the console's URL.
	Index = "index.html"
	// SettingsFile is the name of the file that contains the page's Settings. It is in the same folder as Index.
	SettingsFile = "config.json"
	// boot must run even if no other file loads.
	boot = "boot.js"
)

// bootScript returns the inline script of Index. The policy allows it by its hash.
func bootScript() []byte {
	content, _ := static.ReadFile("static/" + boot) // embedded, so it always exists
	return content
}

type File struct {
	// Name is the path relative to the console's URL, such as "edit.js".
	Name, ContentType string
	Content           []byte
}

// Files returns all files except the settings, ordered by name.
func Files() ([]File, error) {
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil, err
	}
	files := []File{}
	for _, entry := range entries {
		if entry.Name() == boot {
			continue
		}
		content, err := static.ReadFile(path.Join("static", entry.Name()))
		if err != nil {
			return nil, err
		}
		if entry.Name() == Index {
			content = bytes.ReplaceAll(content, []byte("{{"+boot+"}}"), bootScript())
		}
		file, err := newFile(entry.Name(), content)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	look, err := newFile("theme.css", []byte(theme.CSS()))
	return append(files, look), err
}

func newFile(name string, content []byte) (File, error) {
	// mime.TypeByExtension depends on the machine's configuration.
	kind, known := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
		".jpg": "image/jpeg", ".mp4": "video/mp4",
	}[path.Ext(name)]
	if !known {
		return File{}, fmt.Errorf("the console's file %s has an unknown extension", name)
	}
	return File{name, kind, content}, nil
}

// Policy returns the console's Content-Security-Policy. It allows connections only to the console's own origin and
// the given origins (such as those in Settings), and no inline script except the one in Index. The console may frame
// only the realtime page, and only if both have the same origin.
func Policy(origins ...string) string {
	hash := sha256.Sum256(bootScript())
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'", "style-src 'self'",
		"img-src 'self' blob:", "media-src 'self' blob:",
		strings.TrimSpace("connect-src 'self' " + strings.Join(origins, " ")),
		"frame-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
}
