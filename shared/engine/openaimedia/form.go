package openaimedia

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"

	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/platform/contain"
)

// field is a field of a form.
type field struct{ name, value string }

// file is a file of a form.
type file struct {
	name  string
	input *engine.Input
}

// stream returns a multipart form that is generated while it is read, so that
// no file is held in memory. The caller closes it, which ends the goroutine
// that writes it.
func stream(fields []field, files []file) (body io.ReadCloser, contentType string) {
	read, write := io.Pipe()
	form := multipart.NewWriter(write)
	go func() {
		// The reader of the form receives the error; after a close nobody does.
		_ = write.CloseWithError(fill(form, fields, files))
	}()
	return read, form.FormDataContentType()
}

func fill(form *multipart.Writer, fields []field, files []file) (err error) {
	defer contain.Error(&err)
	for _, f := range fields {
		if err := form.WriteField(f.name, f.value); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := copyFile(form, f); err != nil {
			return err
		}
	}
	return form.Close()
}

func copyFile(form *multipart.Writer, f file) error {
	source, err := os.Open(f.input.Path)
	if err != nil {
		return fmt.Errorf("openaimedia: %w", err)
	}
	defer source.Close()
	kind, _ := media.Find(f.input.MIME)
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s%s"`, f.name, f.name, kind.Extension))
	head.Set("Content-Type", f.input.MIME)
	part, err := form.CreatePart(head)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, source)
	return err
}
