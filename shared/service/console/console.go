// Package console is the page at /console, on which people use the service with a
// browser: edit, look through files, chat, and see what was used. It is static
// files and one file of settings, so that any server of files can serve it: the
// one-machine server does, and in AWS a bucket behind CloudFront.
package console

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"cutroom/shared/service/console/theme"
)

//go:embed static
var static embed.FS

const (
	// Index is the file that the console's own address shows.
	Index = "index.html"
	// SettingsFile is where the page looks for its Settings, beside Index.
	SettingsFile = "config.json"
)

// File is one file of the console.
type File struct {
	// Name is its path relative to the console's address, such as "edit.js".
	Name, ContentType string
	Content           []byte
}

// Files gives all files but the settings, in the order of their names.
func Files() ([]File, error) {
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil, err
	}
	files := []File{}
	for _, entry := range entries {
		content, err := static.ReadFile(path.Join("static", entry.Name()))
		if err != nil {
			return nil, err
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
	// Not by mime.TypeByExtension, which reads tables that machines differ in.
	kind, known := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".json": "application/json", ".svg": "image/svg+xml",
	}[path.Ext(name)]
	if !known {
		return File{}, fmt.Errorf("the console's file %s is of no known type", name)
	}
	return File{name, kind, content}, nil
}

// Policy is the Content-Security-Policy of the console: its own files alone, no
// script or style within the page, and calls to the origins that are named, such
// as those of Settings, beside its own. Only the page of realtime sessions is
// framed, where it has the console's origin.
func Policy(origins ...string) string {
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "media-src 'self' blob:",
		strings.TrimSpace("connect-src 'self' " + strings.Join(origins, " ")),
		"frame-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
}
