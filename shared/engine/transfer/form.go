// Package transfer is for engines whose servers do not share a disk with this machine. It provides forms with files,
// downloads, and conversion of results to the format that the catalog promises.
package transfer

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"

	"cutroom/shared/platform/panics"
)

type Field struct{ Name, Value string }

type File struct {
	// Field is the form field's name, and Name is the file's. Neither may contain a quotation mark.
	Field, Name string
	Path, MIME  string
}

// Form generates the form while it is read. The caller must close it, which stops the writer.
func Form(fields []Field, files ...File) (body io.ReadCloser, contentType string) {
	read, write := io.Pipe()
	form := multipart.NewWriter(write)
	go func() {
		// The reader of the form gets the error unless the form was closed.
		_ = write.CloseWithError(fill(form, fields, files))
	}()
	return read, form.FormDataContentType()
}

func fill(form *multipart.Writer, fields []Field, files []File) (err error) {
	defer panics.Error(&err)
	for _, f := range fields {
		if err := form.WriteField(f.Name, f.Value); err != nil {
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

func copyFile(form *multipart.Writer, f File) error {
	source, err := os.Open(f.Path)
	if err != nil {
		return fmt.Errorf("transfer: %w", err)
	}
	defer source.Close()
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, f.Field, f.Name))
	head.Set("Content-Type", f.MIME)
	part, err := form.CreatePart(head)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, source)
	return err
}
