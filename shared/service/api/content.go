package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
)

func Content(s *service) []route {
	return within(credential.JobRoutes, []route{
		{
			method: http.MethodGet, path: "/v1/jobs/{id}/content", access: keyOrToken, queryToken: true, unlimited: true,
			handle: s.showContent,
		},
		{
			method: http.MethodGet, path: "/v1/jobs/{id}/thumbnail", access: keyOrToken, queryToken: true, unlimited: true,
			handle: s.showThumbnail,
		},
		{
			method: http.MethodGet, path: "/v1/jobs/{id}/preview", access: keyOrToken, queryToken: true, unlimited: true,
			handle: s.showPreview,
		},
		Shares(s)[0],
	})
}

// Shares is the part of Content that serves links to results. Callers of OpenAI's routes get such links.
func Shares(s *service) []route {
	return []route{{method: http.MethodGet, path: sharesPath + "{job_id}", access: public, handle: s.showShared}}
}

func (s *service) showContent(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	return s.sendResultOf(w, r, j)
}

func (s *service) sendResultOf(w http.ResponseWriter, r *http.Request, j job.Job) error {
	if err := s.Jobs.CheckResult(j); err != nil {
		return err
	}
	return s.sendBlob(w, r, resultOf(j, j.ResultName()))
}

func resultOf(j job.Job, name string) stored {
	return stored{
		blob: j.Result.Blob, size: j.Result.Size, mime: j.Result.MIME, disposition: dispositionOf(j, name),
		tag: j.Result.SHA256, modified: j.CompletedAt, gone: job.ErrResultExpired.Message,
	}
}

type stored struct {
	blob              string
	size              int64
	mime, disposition string
	// tag is the ETag without quotes.
	tag      string
	modified time.Time
	// gone is the message of the 404 response if the blob has just been deleted.
	gone string
}

// asked returns the number of bytes requested: the length of the range, 0 for HEAD, or else the full size.
func asked(r *http.Request, size int64) int64 {
	if r.Method == http.MethodHead {
		return 0
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return size
	}
	to, err := strconv.ParseInt(last, 10, 64)
	if err != nil || to < from {
		return size
	}
	return min(size, to-from+1)
}

// sendBlob responds with a blob or a range of it, or redirects to a signed URL.
func (s *service) sendBlob(w http.ResponseWriter, r *http.Request, what stored) error {
	header := w.Header()
	if s.Downloads != nil && (s.RedirectAbove == 0 || asked(r, what.size) > s.RedirectAbove) {
		signed, err := s.Downloads.SignDownload(r.Context(), what.blob, what.mime, what.disposition)
		if err != nil {
			return fmt.Errorf("sign a download: %w", err)
		}
		header.Set("Location", signed)
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	}
	header.Set("Content-Type", what.mime)
	header.Set("Content-Disposition", what.disposition)
	header.Set("ETag", `"`+what.tag+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "private, no-cache")
	if wanted := r.Header.Get("Range"); strings.Contains(wanted, ",") || !strings.HasPrefix(wanted, "bytes=") {
		// Only a single byte range is supported. For any other Range, send everything, as a server
		// always may (RFC 9110, 14.2).
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	} else if strings.TrimSpace(strings.TrimPrefix(wanted, "bytes=")) == "-0" {
		// http.ServeContent would send nothing for "bytes=-0", so request a range that it rejects.
		r = r.Clone(r.Context())
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", what.size))
	}
	content := &blobReader{ctx: r.Context(), blobs: s.Blobs, stored: what}
	defer content.close()
	answer := &contentWriter{ResponseWriter: w, service: s, request: r, content: content}
	http.ServeContent(answer, r, "", what.modified, content)
	return nil
}

type DownloadSigner interface {
	// SignDownload returns an absolute URL that is valid for a few minutes. Its response has the
	// given Content-Type and Content-Disposition.
	SignDownload(ctx context.Context, blob, contentType, disposition string) (url string, err error)
}

func describeResult(header http.Header, j job.Job) {
	header.Set("Content-Type", j.Result.MIME)
	header.Set("Content-Disposition", dispositionOf(j, j.ResultName()))
	header.Set("ETag", `"`+j.Result.SHA256+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
}

// See docs/contract/jobs.md#engine-report.
func describeOutcome(header http.Header, j job.Job) {
	result := j.Result
	if changed, known := j.Changed(); known {
		header.Set("X-Changed", strconv.FormatBool(changed))
	}
	if result.Engine != "" {
		header.Set("X-Engine", headerText(result.Engine))
	}
	if len(result.Understood) > 0 {
		parts := make([]string, len(result.Understood))
		for i, part := range result.Understood {
			parts[i] = strings.ReplaceAll(headerText(part), ",", "%2C")
		}
		header.Set("X-Understood", strings.Join(parts, ", "))
	}
	if result.Notice != "" {
		header.Set("X-Notice", headerText(result.Notice))
	}
}

func headerText(text string) string {
	var encoded strings.Builder
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' || b == '%' {
			fmt.Fprintf(&encoded, "%%%02X", b)
		} else {
			encoded.WriteByte(b)
		}
	}
	return encoded.String()
}

func dispositionOf(j job.Job, name string) string {
	return disposition("inline", name, j.ID, extensionOf(j.Result.MIME))
}

// extensionOf returns "" for an unknown type.
func extensionOf(mime string) string {
	kind, _ := media.Find(mime)
	return kind.Extension
}

// disposition returns a Content-Disposition (RFC 6266) with an ASCII name, plus the original name
// if it is not ASCII. replacement is used for names that contain no ASCII.
func disposition(how, name, replacement, extension string) string {
	plain := strings.Trim(asciiName(name), "-")
	if plain == "" {
		plain = replacement
	}
	value := fmt.Sprintf("%s; filename=%q", how, plain+extension)
	if plain != name {
		value += "; filename*=UTF-8''" + extendedValue(name) + extension
	}
	return value
}

func extendedValue(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// asciiName replaces characters other than ASCII letters, digits and "._-" with "-".
func asciiName(name string) string {
	plain := make([]byte, 0, len(name))
	for _, r := range name {
		isPlain := r == '.' || r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		switch {
		case isPlain:
			plain = append(plain, byte(r))
		case len(plain) == 0 || plain[len(plain)-1] != '-':
			plain = append(plain, '-')
		}
	}
	return string(plain)
}

// blobReader opens a blob for http.ServeContent once the requested range is known.
type blobReader struct {
	stored
	ctx    context.Context
	blobs  blob.Store
	offset int64
	open   io.ReadCloser
}

func (c *blobReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		c.offset = offset
	case io.SeekCurrent:
		c.offset += offset
	case io.SeekEnd:
		c.offset = c.size + offset
	}
	if c.offset < 0 {
		return 0, errors.New("seek to a position before the start")
	}
	return c.offset, nil
}

// begin returns fault.NotFound if the blob has just been deleted.
func (c *blobReader) begin(length int64) (err error) {
	c.open, err = c.blobs.Open(c.ctx, c.blob, c.offset, length)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "%s", c.gone)
	}
	return err
}

func (c *blobReader) Read(p []byte) (int, error) {
	if c.open == nil {
		return 0, errors.New("the blob was not opened")
	}
	return c.open.Read(p)
}

func (c *blobReader) close() {
	if c.open != nil {
		c.open.Close()
	}
}

// contentWriter opens the blob before http.ServeContent sends the header, so that an unreadable blob causes an
// error response rather than a truncated 200. It also rewrites ServeContent's errors.
type contentWriter struct {
	http.ResponseWriter
	service  *service
	request  *http.Request
	content  *blobReader
	replaced bool
}

func (w *contentWriter) WriteHeader(status int) {
	switch status {
	case http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed:
		w.replaced = true
		w.clear("Content-Range")
		w.service.writeDetail(w.ResponseWriter, w.request, status, http.StatusText(status))
		return
	case http.StatusOK, http.StatusPartialContent:
		if w.request.Method == http.MethodHead {
			break
		}
		length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
		if err == nil {
			err = w.content.begin(length)
		}
		if err != nil {
			w.replaced = true
			w.clear()
			w.service.fail(w.ResponseWriter, w.request, err)
			return
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// clear removes the header fields about the blob, except the given fields.
func (w *contentWriter) clear(but ...string) {
	for _, field := range []string{
		"Accept-Ranges", "Content-Disposition", "Content-Range", "Etag", "Last-Modified", "X-Content-Type-Options",
	} {
		if len(but) == 0 || but[0] != field {
			w.Header().Del(field)
		}
	}
}

func (w *contentWriter) Write(p []byte) (int, error) {
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
