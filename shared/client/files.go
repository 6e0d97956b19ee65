package client

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// See docs/contract/media.md#file-reference.
type StoredFile struct {
	ID        string     `json:"id"`
	Filename  string     `json:"filename"`
	MIMEType  string     `json:"mime_type"`
	SizeBytes int64      `json:"size_bytes"`
	MD5       string     `json:"md5"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`

	Raw json.RawMessage `json:"-"`
}

func parseFile(raw json.RawMessage) (StoredFile, error) {
	file := StoredFile{Raw: raw}
	err := decode(raw, &file)
	return file, err
}

// PutFile stores a file. ttl is a number of seconds, "persistent", or "" for the default. It uploads large files to a
// signed URL. The callback `sent` receives the progress and may be nil.
func (c *Client) PutFile(ctx context.Context, source Source, ttl string, sent Progress) (StoredFile, error) {
	var parts []part
	if ttl != "" {
		parts = append(parts, part{name: "ttl_seconds", text: ttl})
	}
	form, err := formBody(append(parts, part{name: "file", source: &source}), sent)
	if err != nil {
		return StoredFile{}, err
	}
	answer, err := c.fetch(ctx, c.creating(c.media(http.MethodPost, "/v1/files", form)))
	if IsStatus(err, http.StatusRequestEntityTooLarge) {
		return c.PutLargeFile(ctx, source, ttl, sent)
	}
	if err != nil {
		return StoredFile{}, err
	}
	return parseFile(answer)
}

// PutLargeFile always uses a signed URL (docs/contract/media.md#large-uploads).
func (c *Client) PutLargeFile(ctx context.Context, source Source, ttl string, sent Progress) (StoredFile, error) {
	digest, err := digestOf(ctx, source)
	if err != nil {
		return StoredFile{}, err
	}
	kind, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(source.Name)))
	if err != nil {
		kind = "application/octet-stream" // the service detects the type from the bytes
	}
	announced := map[string]any{"filename": source.Name, "mime_type": kind, "size_bytes": source.Size, "md5": digest}
	if ttl != "" {
		announced["ttl_seconds"] = ttl
	}
	encoded, err := jsonBody(announced)
	if err != nil {
		return StoredFile{}, err
	}
	var promised struct {
		ID     string `json:"id"`
		Upload struct {
			Method  string            `json:"method"`
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"upload"`
	}
	if err := c.get(ctx, c.creating(c.media(http.MethodPost, "/v1/files", encoded)), &promised); err != nil {
		return StoredFile{}, err
	}
	if err := c.checkUpload(promised.Upload.Method, promised.Upload.URL); err != nil {
		return StoredFile{}, err
	}
	// The URL is already signed, so the key must not be sent.
	upload := call{
		method: http.MethodPut, url: promised.Upload.URL, header: http.Header{}, repeatable: true,
		body: &body{size: source.Size, open: source.Open, sent: sent},
	}
	for name, value := range promised.Upload.Headers {
		name = strings.ToLower(name)
		if !strings.HasPrefix(name, "content-") && !strings.HasPrefix(name, "x-amz-") && name != "if-none-match" {
			return StoredFile{}, fmt.Errorf("the server's upload needs the header %q, which uploads must not set", name)
		}
		upload.header.Set(name, value)
	}
	if _, err := c.fetch(ctx, upload); err != nil {
		return StoredFile{}, err
	}
	return c.File(ctx, promised.ID)
}

// checkUpload prevents a server from making this machine send requests other than uploads.
func (c *Client) checkUpload(method, to string) error {
	target, err := url.Parse(to)
	switch {
	case err != nil:
		return fmt.Errorf("the server's upload URL is invalid: %w", err)
	case method != http.MethodPut:
		return fmt.Errorf("the server's upload has the method %q instead of PUT", method)
	case target.Scheme != "https" && (target.Scheme != "http" || strings.HasPrefix(c.config.URL, "https:")):
		return fmt.Errorf("the server's upload URL starts with %s: although the server is %s; if a proxy is in front of it, "+
			"the proxy must set X-Forwarded-Proto", target.Scheme, c.config.URL)
	}
	return nil
}

// digestOf returns the MD5 in hex. It stops when the context ends, because a large file takes minutes to read.
func digestOf(ctx context.Context, source Source) (string, error) {
	content, err := source.Open()
	if err != nil {
		return "", err
	}
	defer content.Close()
	digest := md5.New()
	if _, err := io.Copy(digest, whileWanted{ctx, content}); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

type whileWanted struct {
	ctx     context.Context
	content io.Reader
}

func (w whileWanted) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.content.Read(p)
}

func filePath(id string) string { return "/v1/files/" + url.PathEscape(id) }

func (c *Client) File(ctx context.Context, id string) (StoredFile, error) {
	answer, err := c.fetch(ctx, c.media(http.MethodGet, filePath(id), nil))
	if err != nil {
		return StoredFile{}, err
	}
	return parseFile(answer)
}

func (c *Client) DeleteFile(ctx context.Context, id string) error {
	_, err := c.fetch(ctx, c.media(http.MethodDelete, filePath(id), nil))
	return err
}

// Files iterates over files, newest first, up to the limit. It stops after an error.
func (c *Client) Files(ctx context.Context, limit int) iter.Seq2[StoredFile, error] {
	return func(yield func(StoredFile, error) bool) {
		for raw, err := range c.list(ctx, "/v1/files", "files", url.Values{}, limit) {
			var file StoredFile
			if err == nil {
				file, err = parseFile(raw)
			}
			if !yield(file, err) || err != nil {
				return
			}
		}
	}
}
