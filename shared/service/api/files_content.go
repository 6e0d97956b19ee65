package api

import (
	"fmt"
	"net/http"
	"strings"

	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media"
)

// FileContent is the group that serves the content of stored files, for pages that
// browse them.
func FileContent(s *service) []route {
	return []route{{
		method: http.MethodGet, path: "/v1/uploads/{file_id}", access: keyOrToken, queryToken: true,
		handle: s.showFileContent,
	}}
}

// showFileContent is GET /v1/uploads/{file_id} (docs/extensions.md, "Stored
// files").
func (s *service) showFileContent(w http.ResponseWriter, r *http.Request, c call) error {
	f, err := s.Files.Get(r.Context(), c.who.Account(), r.PathValue("file_id"))
	if err != nil {
		return err
	}
	// Anything but an image or a video could be a page that runs scripts in this
	// origin. So could XML, whatever its type (WHATWG, "MIME Sniffing", "XML MIME
	// type").
	disposition := "attachment"
	shown := strings.HasPrefix(f.MIME, "image/") || strings.HasPrefix(f.MIME, "video/")
	if shown && !strings.HasSuffix(f.MIME, "+xml") {
		disposition = "inline"
	}
	name := f.ID
	if kind, ok := media.Find(f.MIME); ok {
		name += kind.Extension
	}
	return s.sendBlob(w, r, stored{
		blob: f.Blob, size: f.Size, mime: f.MIME, disposition: fmt.Sprintf("%s; filename=%q", disposition, name),
		tag: f.MD5, modified: f.CreatedAt, gone: file.ErrNotFound.Message,
	})
}
