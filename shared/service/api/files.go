package api

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
)

const deleteTime = 10 * time.Second

func Files(s *service) []route {
	return within(credential.FileRoutes, []route{
		{method: http.MethodPost, path: "/v1/files", access: keyOrToken, handle: s.createFile},
		{method: http.MethodGet, path: "/v1/files", access: keyOnly, handle: s.inTurn(s.listFiles)},
		{method: http.MethodGet, path: "/v1/files/{file_id}", access: keyOrToken, handle: s.showFile},
		{method: http.MethodDelete, path: "/v1/files/{file_id}", access: keyOnly, handle: s.deleteFile},
		{method: http.MethodGet, path: "/v1/files/by-md5/{md5}", access: keyOnly, handle: s.findFile},
	})
}

// See docs/contract/media.md#file-reference. ExpiresAt is null for persistent files.
type fileBody struct {
	ID        string  `json:"id"`
	Filename  string  `json:"filename"`
	MIME      string  `json:"mime_type"`
	Size      int64   `json:"size_bytes"`
	MD5       string  `json:"md5"`
	CreatedAt *string `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
}

func newFileBody(f file.File) fileBody {
	return fileBody{f.ID, f.Filename, f.MIME, f.Size, f.MD5, timestamp(f.CreatedAt), timestamp(f.ExpiresAt)}
}

// NextCursor is null on the last page.
type pageBody struct {
	Files      []fileBody `json:"files"`
	NextCursor *string    `json:"next_cursor"`
}

func (s *service) listFiles(w http.ResponseWriter, r *http.Request, c call) error {
	account := c.who.Account()
	limit, after, found, err := readPage(r, account, s.Files.Cursors())
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return found
	}
	files, next, err := s.Files.List(r.Context(), account, after, limit)
	if err != nil {
		return err
	}
	page := pageBody{Files: make([]fileBody, len(files))}
	for i, f := range files {
		page.Files[i] = newFileBody(f)
	}
	if next != "" {
		page.NextCursor = &next
	}
	s.writeJSON(w, r, http.StatusOK, page)
	return nil
}

func (s *service) showFile(w http.ResponseWriter, r *http.Request, c call) error {
	f, err := s.Files.Get(r.Context(), c.who.Account(), r.PathValue("file_id"))
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, newFileBody(f))
	return nil
}

func (s *service) deleteFile(w http.ResponseWriter, r *http.Request, c call) error {
	// Ignore a disconnect, which could otherwise leave a blob without a record.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deleteTime)
	defer cancel()
	if err := s.Files.Delete(ctx, c.who.Account(), r.PathValue("file_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

const md5Pattern = "^[0-9a-fA-F]{32}$"

var md5Form = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(md5Pattern) })

func (s *service) findFile(w http.ResponseWriter, r *http.Request, c call) error {
	md5 := r.PathValue("md5")
	if !md5Form().MatchString(md5) {
		return problems{patternMismatch("md5", md5, md5Pattern).in("path")}
	}
	f, err := s.Files.FindMD5(r.Context(), c.who.Account(), strings.ToLower(md5))
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, newFileBody(f))
	return nil
}
