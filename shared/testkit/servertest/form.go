package servertest

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
)

type Form []Part

// Part is one part of a form: a text or, if it has a file name, a file.
type Part struct {
	Name, FileName string
	// Content can be sent only once. Size is its length in bytes.
	Content io.Reader
	Size    int64
}

func Text(name, value string) Part {
	return Part{Name: name, Content: strings.NewReader(value), Size: int64(len(value))}
}

func File(name, fileName string, content []byte) Part {
	return Part{Name: name, FileName: fileName, Content: bytes.NewReader(content), Size: int64(len(content))}
}

// Encode returns the form's body as a stream, with its length and content type.
func (f Form) Encode() (body io.Reader, length int64, contentType string) {
	// The writer produces only the text between the contents. The contents are read separately and
	// never held in memory.
	var between bytes.Buffer
	writer := multipart.NewWriter(&between)
	var pieces []io.Reader
	cut := func() {
		length += int64(between.Len())
		pieces = append(pieces, strings.NewReader(between.String()))
		between.Reset()
	}
	for _, part := range f {
		// Neither call can fail, because a buffer accepts everything.
		if part.FileName != "" {
			_, _ = writer.CreateFormFile(part.Name, part.FileName)
		} else {
			_, _ = writer.CreateFormField(part.Name)
		}
		cut()
		pieces = append(pieces, part.Content)
		length += part.Size
	}
	_ = writer.Close()
	cut()
	return io.MultiReader(pieces...), length, writer.FormDataContentType()
}
