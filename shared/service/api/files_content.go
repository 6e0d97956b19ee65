package api

import (
	"net/http"
	"path"
	"strings"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
)

func FileContent(s *service) []route {
	return within(credential.FileRoutes, []route{
		{
			method: http.MethodGet, path: "/v1/uploads/{file_id}", access: keyOrToken, queryToken: true,
			handle: s.showFileContent,
		},
		{
			method: http.MethodGet, path: "/v1/uploads/{file_id}/thumbnail", access: keyOrToken, queryToken: true, unlimited: true,
			handle: s.showFileThumbnail,
		},
	})
}

func (s *service) showFileContent(w http.ResponseWriter, r *http.Request, c call) error {
	f, err := s.Files.Get(r.Context(), c.who.Account(), r.PathValue("file_id"))
	if err == nil {
		err = batch.CheckResult(c.who, f)
	}
	if err != nil {
		return err
	}
	// Show only images and videos inline. Other types, even XML, could run scripts in this origin (WHATWG, "MIME
	// Sniffing").
	how := "attachment"
	shown := strings.HasPrefix(f.MIME, "image/") || strings.HasPrefix(f.MIME, "video/")
	if shown && !strings.HasSuffix(f.MIME, "+xml") {
		how = "inline"
	}
	extension := extensionOf(f.MIME)
	if extension == "" {
		extension = asciiName(path.Ext(f.Filename))
	}
	return s.sendBlob(w, r, stored{
		blob: f.Blob, size: f.Size, mime: f.MIME, disposition: disposition(how, stem(f), f.ID, extension),
		tag: f.MD5, modified: f.CreatedAt, gone: file.ErrNotFound.Message,
	})
}

func stem(f file.File) string { return strings.TrimSuffix(f.Filename, path.Ext(f.Filename)) }
