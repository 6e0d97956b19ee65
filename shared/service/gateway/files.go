package gateway

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
)

// Batches configures files and batches (docs/contract/batches.md). Fields are required unless their
// comment says otherwise.
type Batches struct {
	Service *batch.Service
	Files   *file.Service
	Blobs   blob.Store
	Intake  *file.Intake
	// Detect returns a file's type from its first media.SniffLen bytes, as sniff.Any does.
	Detect func(head []byte) (mime string, known bool)
	// MaxUpload is the maximum size of a file in bytes.
	MaxUpload int64
	// Downloads signs download URLs for files larger than RedirectAbove bytes. nil disables redirects.
	Downloads interface {
		// SignDownload returns an absolute URL that is valid for a few minutes.
		SignDownload(ctx context.Context, blob, contentType, disposition string) (url string, err error)
	}
	RedirectAbove int64
}

const (
	maxForm      = 1 << 20
	maxFormParts = 100
	maxFormValue = 1 << 10
	// maxPartHeader limits a part's boundary and header, in bytes.
	maxPartHeader = 16 << 10
	afterwards    = 10 * time.Second
)

const userData = "user_data"

var purposes = []string{batch.InputPurpose, userData, "assistants", "vision", "fine-tune", "evals"}

// FilesAndBatches registers the routes for files and batches if [Config.Batches] is set.
func FilesAndBatches(g *Gateway) {
	if g.config.Batches == nil {
		return
	}
	const files, batches = "/v1/files", "/v1/batches"
	file := func(handle principalHandler) handler { return g.keyOnly(credential.FileRoutes, handle) }
	batch := func(handle principalHandler) handler { return g.keyOnly(credential.InferenceRoutes, handle) }
	g.routes(files, map[string]handler{http.MethodPost: file(g.createFile), http.MethodGet: file(g.inTurn(g.listFiles))})
	g.routes(files+"/{file_id}", map[string]handler{http.MethodGet: file(g.getFile), http.MethodDelete: file(g.deleteFile)})
	g.route(files+"/{file_id}/content", http.MethodGet, file(g.getFileContent))
	g.routes(batches, map[string]handler{http.MethodPost: batch(g.createBatch), http.MethodGet: batch(g.inTurn(g.listBatches))})
	g.route(batches+"/{batch_id}", http.MethodGet, batch(g.inTurn(g.getBatch)))
	g.route(batches+"/{batch_id}/cancel", http.MethodPost, batch(g.cancelBatch))
}

type principalHandler func(http.ResponseWriter, *http.Request, credential.Principal) error

// keyOnly is like authenticated, but requires a permanent key and applies the tier's request rate limit.
func (g *Gateway) keyOnly(group credential.RouteGroup, handle principalHandler) handler {
	return g.authenticated(group, func(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
		if who.Token != nil {
			return credential.ErrKeyRequired
		}
		rate := ratelimit.Rate{PerSecond: who.Tier.RequestsPerSecond, Burst: who.Tier.Burst}
		if g.config.Limiter != nil && rate.PerSecond > 0 {
			state, err := g.config.Limiter.Take(r.Context(), "requests/"+who.Account(), 1, rate)
			if err != nil {
				return err
			}
			if !state.Allowed {
				over := fault.New(fault.Limited, "The account exceeded its limit of %g requests per second.", rate.PerSecond)
				over.RetryAfter = max(state.RetryAfter, time.Second)
				return over
			}
		}
		return handle(w, r, who)
	})
}

type fileBody struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

func newFileBody(f file.File) fileBody {
	return fileBody{
		ID: f.ID, Object: "file", Bytes: f.Size, CreatedAt: f.CreatedAt.Unix(), ExpiresAt: unixOf(f.ExpiresAt),
		Filename: f.Filename, Purpose: purposeOf(f), Status: "processed",
	}
}

func purposeOf(f file.File) string {
	if f.Purpose == "" {
		return userData
	}
	return f.Purpose
}

func unixOf(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}

// createFile serves POST /v1/files. If it fails, it deletes the stored bytes.
func (g *Gateway) createFile(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	b := g.config.Batches
	upload, err := b.Intake.Begin(who.Account(), file.Allowance{Uploads: who.Tier.Uploads, Bytes: who.Tier.StoredBytes})
	if err != nil {
		return err
	}
	defer func() {
		if err := upload.End(r.Context()); err != nil { // if this fails, the reservation expires
			g.logError(r, "cannot release the reservation of an upload", err)
		}
	}()
	r.Body = http.MaxBytesReader(w, r.Body, b.MaxUpload+maxForm)
	form, err := g.readUpload(r, upload)
	keep := false
	defer func() {
		if !keep && form.file.Blob != "" {
			g.discard(r, form.file.Blob)
		}
	}()
	if err == nil {
		err = form.finish()
	}
	if err == nil { // the key may have been revoked during the upload
		err = g.config.Authenticator.Renew(r.Context(), who)
	}
	if err != nil {
		return err
	}
	upload.Arrived()
	form.file.Account, form.file.Key, form.file.Reserved = who.Account(), who.Key.ID, upload.Reservation()
	// The bytes are stored, so create the file even if the caller disconnects now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), afterwards)
	defer cancel()
	created, err := b.Files.Create(ctx, form.file, who.Tier.StoredBytes)
	if err != nil {
		keep = !fault.Is(err, fault.Limited) && !fault.Is(err, fault.StorageFull) // the file may have been recorded
		return err
	}
	keep = true
	upload.Recorded()
	return respond(w, newFileBody(created))
}

func (g *Gateway) discard(r *http.Request, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), afterwards)
	defer cancel()
	if err := g.config.Batches.Blobs.Delete(ctx, name); err != nil {
		g.logError(r, "cannot delete an uploaded blob", err)
	}
}

func (g *Gateway) logError(r *http.Request, message string, err error) {
	g.config.Logger.LogAttrs(r.Context(), slog.LevelError, message,
		slog.String("request_id", httpserver.RequestID(r.Context())), slog.Any("error", err))
}

var formFields = []string{"purpose", "expires_after[anchor]", "expires_after[seconds]"}

type uploadForm struct {
	file   file.File
	values map[string]string
}

// readUpload stores the file as it arrives. The returned form names the blob even if reading fails.
func (g *Gateway) readUpload(r *http.Request, upload *file.Upload) (uploadForm, error) {
	form := uploadForm{values: map[string]string{}}
	noForm := apierror.Invalid("", apierror.InvalidValue, "The body must be multipart/form-data with a boundary.")
	if httpserver.HasManyParameters(r.Header.Get("Content-Type")) {
		return form, noForm
	}
	source := &headerLimit{ReadCloser: r.Body}
	r.Body = source
	reader, err := r.MultipartReader()
	if err != nil {
		return form, noForm
	}
	for range maxFormParts {
		source.left = maxPartHeader
		part, err := reader.NextRawPart()
		source.left = -1
		if err == io.EOF { //nolint:errorlint // a wrapped EOF means an incomplete form
			return form, nil
		}
		if err != nil {
			return form, formError(err)
		}
		if httpserver.HasManyParameters(part.Header.Get("Content-Disposition")) {
			return form, apierror.Invalid("", apierror.InvalidValue, "The Content-Disposition of a part has too many parameters.")
		}
		if httpserver.PartName(part) == "file" && form.file.Blob == "" {
			if err := g.storePart(r, part, upload, &form.file); err != nil {
				return form, err
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFormValue+1))
		switch {
		case err != nil:
			return form, formError(err)
		case len(value) > maxFormValue:
			return form, apierror.Invalid(part.FormName(), apierror.InvalidValue, "The value of the field is too long.")
		}
		if name := part.FormName(); slices.Contains(formFields, name) {
			form.values[name] = string(value)
		}
	}
	return form, apierror.Invalid("", apierror.InvalidValue, "The form has more than %d parts.", maxFormParts)
}

func (g *Gateway) storePart(r *http.Request, part *multipart.Part, upload *file.Upload, f *file.File) error {
	b := g.config.Batches
	head := make([]byte, media.SniffLen)
	n, err := io.ReadFull(part, head)
	if head = head[:n]; err != nil && err != io.EOF && !(err == io.ErrUnexpectedEOF && n > 0) { //nolint:errorlint // ReadFull's own
		return formError(err)
	}
	if f.Blob, err = b.Files.NewBlob(); err != nil {
		return err
	}
	hash := md5.New()
	source := &uploadReader{source: io.TeeReader(io.MultiReader(bytes.NewReader(head), part), hash), left: b.MaxUpload}
	f.Size, err = b.Blobs.Put(r.Context(), f.Blob, upload.Reader(r.Context(), source))
	switch {
	case source.err != nil:
		return source.err
	case err != nil:
		return err
	}
	f.Filename, f.MD5 = httpserver.PartFile(part), hex.EncodeToString(hash.Sum(nil))
	f.MIME, _ = b.Detect(head)
	return nil
}

// headerLimit limits the bytes between the contents of two parts. left is how many more are allowed; negative means
// no limit. multipart.Reader's own limit is 10 MiB.
type headerLimit struct {
	io.ReadCloser
	left int
}

func (l *headerLimit) Read(p []byte) (int, error) {
	if l.left < 0 {
		return l.ReadCloser.Read(p)
	}
	if l.left == 0 {
		return 0, errors.New("the header of a part is too long")
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// uploadReader limits how many bytes of a file are read, and records its error.
type uploadReader struct {
	source io.Reader
	left   int64
	err    error
}

func (u *uploadReader) Read(p []byte) (int, error) {
	n, err := u.source.Read(p)
	if u.left -= int64(n); u.left < 0 {
		u.err = &apierror.Error{
			Status: http.StatusRequestEntityTooLarge, Type: apierror.InvalidRequest, Code: apierror.RequestTooLarge,
			Param: "file", Message: "The file exceeds the maximum size of an upload.",
		}
		return 0, u.err
	}
	if err != nil && err != io.EOF { //nolint:errorlint // a plain EOF is the end of the file
		u.err = formError(err)
	}
	return n, err
}

func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &apierror.Error{
			Status: http.StatusRequestEntityTooLarge, Type: apierror.InvalidRequest, Code: apierror.RequestTooLarge,
			Message: fmt.Sprintf("The request body is larger than %d bytes.", large.Limit),
		}
	}
	return bodyError(err)
}

func (f *uploadForm) finish() error {
	switch {
	case f.file.Blob == "":
		return apierror.Invalid("file", apierror.MissingParameter, "A file is required.")
	case f.file.Size == 0:
		return apierror.Invalid("file", apierror.InvalidValue, "The file is empty.")
	}
	purpose, given := f.values["purpose"]
	if !given {
		return apierror.Invalid("purpose", apierror.MissingParameter, "A purpose is required.")
	}
	if !slices.Contains(purposes, purpose) {
		return apierror.Invalid("purpose", apierror.InvalidValue, "The purpose must be one of %v.", purposes)
	}
	f.file.Purpose, f.file.Lifetime = purpose, batch.FileLifetime
	seconds, given := f.values["expires_after[seconds]"]
	if anchor, anchored := f.values["expires_after[anchor]"]; !given && !anchored {
		return nil
	} else if anchor != fileAnchor {
		return apierror.Invalid("expires_after[anchor]", apierror.InvalidValue, "The anchor must be %q.", fileAnchor)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		n = 0
	}
	f.file.Lifetime, err = fileLifetime("expires_after[seconds]", n)
	return err
}

const fileAnchor = "created_at"

func fileLifetime(param string, seconds int64) (time.Duration, error) {
	least, most := int64(batch.MinFileLifetime/time.Second), int64(file.MaxLifetime/time.Second)
	if seconds < least || seconds > most {
		return 0, apierror.Invalid(param, apierror.InvalidValue, "The value must be from %d to %d.", least, most)
	}
	return time.Duration(seconds) * time.Second, nil
}

func (g *Gateway) getFile(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	f, err := g.config.Batches.Files.Get(r.Context(), who.Account(), r.PathValue("file_id"))
	if err != nil {
		return err
	}
	return respond(w, newFileBody(f))
}

func (g *Gateway) getFileContent(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	f, err := g.config.Batches.Files.Get(r.Context(), who.Account(), r.PathValue("file_id"))
	if err != nil {
		return err
	}
	if err := batch.CheckResult(who, f); err != nil {
		return notAllowed(err)
	}
	if b := g.config.Batches; b.Downloads != nil && f.Size > b.RedirectAbove && r.Method != http.MethodHead {
		return g.redirectTo(w, r, f)
	}
	content, err := g.config.Batches.Blobs.Open(r.Context(), f.Blob, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return file.ErrNotFound
	}
	if err != nil {
		return err
	}
	defer content.Close()
	header := w.Header()
	// Browsers must not run the file as part of this origin.
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", contentDisposition)
	header.Set("X-Content-Type-Options", "nosniff")
	header["Cache-Control"] = noStore
	header.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if r.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(w, content); err != nil && r.Context().Err() == nil {
		g.logError(r, "cannot send a complete file", err)
	}
	return nil
}

const contentType, contentDisposition = "application/octet-stream", "attachment"

func (g *Gateway) redirectTo(w http.ResponseWriter, r *http.Request, f file.File) error {
	signed, err := g.config.Batches.Downloads.SignDownload(r.Context(), f.Blob, contentType, contentDisposition)
	if err != nil {
		return fmt.Errorf("sign a download: %w", err)
	}
	header := w.Header()
	header.Set("Location", signed)
	header["Cache-Control"] = noStore
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

func (g *Gateway) deleteFile(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	id := r.PathValue("file_id")
	if err := g.config.Batches.Files.Delete(r.Context(), who.Account(), id); err != nil {
		return err
	}
	return respond(w, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, "file", true})
}

const (
	maxFilePage                    = 10_000
	defaultBatchPage, maxBatchPage = 20, 100
	filePage                       = 1000
	// maxPageBytes limits the size of a page's items in bytes. The first item may exceed it.
	maxPageBytes = 1 << 20
)

// listBody is one page of a list (docs/contract/batches.md#lists).
type listBody struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`

	limit, bytes int
}

func newListBody(limit int) listBody {
	return listBody{Object: "list", Data: []json.RawMessage{}, limit: limit}
}

// add appends an item, or sets HasMore if the page is full.
func (l *listBody) add(id string, item any) error {
	text, err := encode(item)
	if err != nil {
		return err
	}
	l.bytes += len(text)
	if l.HasMore = len(l.Data) == l.limit || len(l.Data) > 0 && l.bytes > maxPageBytes; l.HasMore {
		return nil
	}
	if l.Data = append(l.Data, text); l.FirstID == nil {
		l.FirstID = &id
	}
	l.LastID = &id
	return nil
}

func (g *Gateway) listFiles(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	query := r.URL.Query()
	limit, err := pageLimit(query, maxFilePage, maxFilePage)
	if err != nil {
		return err
	}
	if order := query.Get("order"); order != "" && order != "desc" {
		return apierror.Invalid("order", apierror.InvalidValue, "order must be desc, because lists start with the newest file.")
	}
	after, purpose := query.Get("after"), query.Get("purpose")
	if after != "" && !file.IsReference(after) {
		return apierror.Invalid("after", apierror.InvalidValue, "after must be the id of a file.")
	}
	page := newListBody(limit)
	after, more, err := g.addFiles(r.Context(), who.Account(), &page, after, purpose)
	if err == nil && more {
		// The rest of a long list takes long, also if few files have the purpose.
		err = g.slowReads.Slowly(r.Context(), who.Account(), 2, func() (err error) {
			for err == nil && more {
				after, more, err = g.addFiles(r.Context(), who.Account(), &page, after, purpose)
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	return respond(w, page)
}

// addFiles adds the next files that follow after and have the purpose, or any purpose if it is empty. It returns where
// the rest begins, and whether the page needs it.
func (g *Gateway) addFiles(ctx context.Context, account string, page *listBody, after, purpose string) (string, bool, error) {
	files, more, err := g.config.Batches.Files.ListAfter(ctx, account, after, min(page.limit+1, filePage))
	if err != nil {
		return "", false, err
	}
	for _, f := range files {
		if after = f.ID; page.HasMore || purpose != "" && purpose != purposeOf(f) {
			continue
		}
		if err := page.add(f.ID, newFileBody(f)); err != nil {
			return "", false, err
		}
	}
	return after, more && !page.HasMore, nil
}

func pageLimit(query url.Values, otherwise, most int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return otherwise, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, apierror.Invalid("limit", apierror.InvalidValue, "limit must be from 1 to %d.", most)
	}
	return limit, nil
}
