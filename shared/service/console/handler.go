package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const Path = "/console"

type Config struct {
	Settings Settings
	// InferencePort is the gateway's port on the console's host. 0 means that Settings.InferenceURL is used.
	InferencePort int
}

type Console struct {
	config Config
	served map[string]*served
}

type served struct {
	File
	// zipped is nil if the file is not compressed.
	zipped []byte
	// tag is the ETag without its quotes.
	tag string
}

// New compresses the console's files and returns the console.
func New(c Config) (*Console, error) {
	files, err := Files()
	if err != nil {
		return nil, err
	}
	console := &Console{c, map[string]*served{}}
	for _, file := range files {
		s := newServed(file)
		s.compress()
		console.served[file.Name] = s
	}
	return console, nil
}

func newServed(file File) *served {
	sum := sha256.Sum256(file.Content)
	return &served{File: file, tag: hex.EncodeToString(sum[:16])}
}

// compress needs about 800 KB of memory.
func (s *served) compress() {
	// Neither call can fail: the level is valid, and writing to a buffer cannot fail.
	var zipped bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	_, _ = writer.Write(s.Content)
	_ = writer.Close()
	s.zipped = zipped.Bytes()
}

// Beside serves the console at its path, and everything else with the given handler. It redirects
// browsers from the service's root to the console.
func (c *Console) Beside(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		name, within := strings.CutPrefix(r.URL.Path, Path+"/")
		switch {
		case !reads:
			handler.ServeHTTP(w, r)
		case r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html"):
			redirect(w, r, "console/")
		case r.URL.Path == Path:
			redirect(w, r, "console/")
		case within && c.serve(w, r, name):
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// The redirect is relative, because a proxy may serve the service under a path prefix.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	r.Pattern = r.URL.Path // for the access log
	w.Header().Set("Location", to)
	w.Header().Set("Vary", "Accept")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// serve returns false if the file does not exist.
func (c *Console) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	if name == "" {
		name = Index
	}
	settings := c.settings(r)
	file := c.served[name]
	if name == SettingsFile {
		content, err := json.Marshal(settings)
		if err != nil {
			return false
		}
		file = newServed(File{name, "application/json", content})
	}
	if file == nil {
		return false
	}
	r.Pattern = Path + "/" // for the access log
	header := w.Header()
	header.Set("Content-Type", file.ContentType)
	header.Set("Content-Security-Policy", Policy(originsOf(settings)...))
	header.Set("Permissions-Policy", "camera=(self), microphone=()")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	// Browsers must revalidate, which usually yields a 304, so that files of two versions are never mixed.
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	content, tag := file.Content, `"`+file.tag+`"`
	if file.zipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content, tag = file.zipped, `"`+file.tag+`-gzip"`
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // fails if the client has disconnected
	}
	return true
}

// settings returns the settings, with URLs for the host in the browser's request.
func (c *Console) settings(r *http.Request) Settings {
	settings := c.config.Settings
	if c.config.InferencePort != 0 {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		settings.InferenceURL = "http://" + net.JoinHostPort(host, strconv.Itoa(c.config.InferencePort))
	}
	return settings
}

func originsOf(settings Settings) []string {
	var origins []string
	for _, text := range []string{settings.BaseURL, settings.InferenceURL} {
		if origin, ok := Origin(text); ok {
			origins = append(origins, origin)
		}
	}
	return origins
}

// Origin returns the origin of an http or https URL. ok is false if the host could end a directive
// of the content security policy.
func Origin(text string) (origin string, ok bool) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return "", false
	}
	for _, letter := range parsed.Host {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]", letter) {
			return "", false
		}
	}
	return parsed.Scheme + "://" + parsed.Host, true
}
