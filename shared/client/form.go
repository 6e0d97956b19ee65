package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
)

// Source is a file to send: bytes that can be read more than once, or a reference to a stored file.
type Source struct {
	Name string
	Size int64
	Open func() (io.ReadCloser, error)
	// Reference is the id of a stored file. If it is set, the other fields are empty.
	Reference string
}

// File fails if path is not a regular file.
func File(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	if !info.Mode().IsRegular() {
		return Source{}, fmt.Errorf("%s is not a file", path)
	}
	return Source{Name: filepath.Base(path), Size: info.Size(), Open: func() (io.ReadCloser, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		// The announced length cannot change. If the file grows during the upload, the added bytes are not sent. If
		// it shrinks, the request fails.
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(file, info.Size()), file}, nil
	}}, nil
}

type part struct {
	name, text string
	source     *Source
}

// formBody yields the same bytes on every read, so that the service recognizes a retry.
func formBody(parts []part, sent Progress) (*body, error) {
	// The writer produces the text between the files. The files themselves are separate pieces.
	var between bytes.Buffer
	writer := multipart.NewWriter(&between)
	var pieces []func() (io.ReadCloser, error)
	size := int64(0)
	cut := func() {
		text := between.String()
		between.Reset()
		size += int64(len(text))
		pieces = append(pieces, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
	}
	for _, part := range parts {
		if part.source == nil {
			if err := writer.WriteField(part.name, part.text); err != nil {
				return nil, err
			}
			continue
		}
		if part.source.Reference != "" {
			if err := writeReference(writer, part); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := writer.CreateFormFile(part.name, part.source.Name); err != nil {
			return nil, err
		}
		cut()
		size += part.source.Size
		pieces = append(pieces, part.source.Open)
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	cut()
	open := func() (io.ReadCloser, error) { return &chain{pieces: pieces}, nil }
	return &body{contentType: writer.FormDataContentType(), size: size, open: open, sent: sent}, nil
}

// writeReference writes a stored file's id in place of the bytes (docs/contract/media.md#forms).
func writeReference(writer *multipart.Writer, part part) error {
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition(part.name, "reference"))
	field, err := writer.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = io.WriteString(field, part.source.Reference)
	return err
}

// chain opens each piece only when it is reached.
type chain struct {
	pieces  []func() (io.ReadCloser, error)
	current io.ReadCloser
}

func (c *chain) Read(p []byte) (int, error) {
	for {
		if c.current == nil {
			if len(c.pieces) == 0 {
				return 0, io.EOF
			}
			opened, err := c.pieces[0]()
			if err != nil {
				return 0, err
			}
			c.current, c.pieces = opened, c.pieces[1:]
		}
		n, err := c.current.Read(p)
		if errors.Is(err, io.EOF) {
			err = c.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *chain) Close() error {
	if c.current == nil {
		return nil
	}
	defer func() { c.current = nil }()
	return c.current.Close()
}
