package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/httpserver"
)

const (
	// maxParts includes parts with unknown names.
	maxParts = 100
	// maxPartHeader limits the size of a boundary and a part's header, in bytes.
	maxPartHeader = 16 << 10
	// The parser reads in small pieces, so buffer larger reads from the connection.
	bodyBuffer = 256 << 10
)

var (
	errTooLong   = errors.New("a part's header is too long")
	errTruncated = errors.New("the form ends before its last boundary")
)

type filePart struct {
	field *catalog.Field
	name  string
	// fileName and the MIME type in declared come from the client. Either may be empty.
	fileName, declared string
	content            io.Reader
	// fetched means that the content is from a URL. The content itself is then neither a reference nor a URL.
	fetched bool
}

// isEmpty does not consume the content.
func (p *filePart) isEmpty() (bool, error) {
	first := make([]byte, 1)
	n, err := io.ReadFull(p.content, first)
	if err == io.EOF { // errors in the body are never io.EOF
		return true, nil
	}
	p.content = io.MultiReader(bytes.NewReader(first[:n]), p.content)
	return false, err
}

// takeFile stores a file part. If the client is at fault, it returns a problem.
type takeFile func(filePart) (*job.Input, *problem, error)

// findField returns the field for a part's name. It is called once per part.
type findField func(name string) (field *catalog.Field, known bool)

// readMultipart reads a form as it arrives. It calls the function take for each file, and keeps only the first
// maxValue bytes of other fields. Errors: problems if the body is not a valid form or has more than maxValues bytes of
// names and values; errors from take.
func readMultipart(b *body, boundary string, find findField, take takeFile) (submission, error) {
	source := &partSource{source: bufio.NewReaderSize(b, bodyBuffer)}
	reader := multipart.NewReader(source, boundary)
	sub, kept := submission{}, 0
	for parts := 0; ; parts++ {
		source.bound(maxPartHeader)
		part, err := reader.NextRawPart()
		if err == io.EOF { // returned unwrapped only after the last boundary; see partSource
			break
		}
		if err != nil {
			return nil, source.invalid(b)
		}
		if parts == maxParts {
			return nil, problems{bodyProblem("The form has more than 100 parts.")}
		}
		source.unbound()
		p := &partContent{part: part}
		err = readPart(sub, p, &kept, find, take)
		if err == nil {
			// NextRawPart would skip at most maxPartHeader bytes of the remaining content, so skip the rest here.
			_, err = io.Copy(io.Discard, p)
		}
		if p.failed {
			return nil, source.invalid(b)
		}
		if err == nil && kept > maxValues {
			err = problems{bodyProblem(fmt.Sprintf("The form's names and values have more than %d bytes.", maxValues))}
		}
		if err != nil {
			return nil, err
		}
	}
	// Read the rest of the body, which may continue after the form.
	_, err := io.Copy(io.Discard, b)
	return sub, err
}

// readPart adds a part to sub, if the form has such a field, and its size in memory to kept. It may leave content unread.
func readPart(sub submission, p *partContent, kept *int, find findField, take takeFile) error {
	name := ""
	if !httpserver.HasManyParameters(p.part.Header.Get("Content-Disposition")) {
		name = httpserver.PartName(p.part)
	}
	if name == "" {
		return problems{bodyProblem("A part has no name or an invalid Content-Disposition.")}
	}
	field, known := find(name)
	if !known {
		return nil
	}
	if !field.Type.IsFile() {
		text, err := readValue(p)
		*kept += len(name) + len(text)
		if err == nil && !isAbsent(field, text) {
			if s := sub.begin(field, name); s != nil {
				s.text = text
			}
		}
		return err
	}
	file := filePart{
		field: field, name: name, fileName: httpserver.PartFile(p.part), declared: p.part.Header.Get("Content-Type"), content: p,
	}
	*kept += len(name) + len(file.fileName) + len(file.declared)
	if file.fileName == "" {
		// HTML forms send an empty part when no file was chosen.
		empty, err := file.isEmpty()
		if empty || err != nil {
			return err
		}
	}
	s := sub.begin(field, name)
	if s == nil {
		return nil
	}
	input, wrong, err := take(file)
	if wrong != nil {
		s.problems = append(s.problems, *wrong)
	}
	s.input = input
	return err
}

func readValue(r io.Reader) (string, error) {
	var text strings.Builder
	if _, err := io.Copy(&text, io.LimitReader(r, maxValue)); err != nil {
		return "", err
	}
	return shorten(text.String()), nil
}

// shorten truncates a value to maxValue bytes, without a partial character at the end.
func shorten(text string) string {
	if len(text) < maxValue {
		return text
	}
	text = text[:maxValue]
	for i := 1; i <= utf8.UTFMax && i <= len(text); i++ {
		if start := len(text) - i; utf8.RuneStart(text[start]) {
			if !utf8.FullRuneInString(text[start:]) {
				text = text[:start]
			}
			break
		}
	}
	return text
}

// partContent records whether reading failed, to distinguish this failure from an error in take.
type partContent struct {
	part   *multipart.Part
	failed bool
}

func (p *partContent) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if err != nil && err != io.EOF {
		p.failed = true
	}
	return n, err
}

// partSource is the source of a multipart.Reader. It limits the bytes between the contents of two parts, because the
// reader's own limit is 10 MiB. It also detects a body that ends inside a header, which the reader would accept. At
// the end of the body, it adds the line break that may be missing after the last boundary. Further reads fail.
type partSource struct {
	source io.Reader
	// left is how much of the limit remains, in bytes. Negative means no limit.
	left    int
	tooLong bool
	added   int // how much of lineEnd has been read
}

const lineEnd = "\r\n"

func (s *partSource) bound(bytes int) { s.left = bytes }
func (s *partSource) unbound()        { s.left = -1 }

// invalid replaces the reader's own error, which can be misleading. For example, it may call a truncated line
// malformed.
func (s *partSource) invalid(b *body) error {
	switch {
	case b.failure != nil:
		return b.failure
	case s.tooLong:
		return problems{bodyProblem("The header of a part is longer than 16 KiB.")}
	}
	return problems{bodyProblem("The body is not valid multipart/form-data.")}
}

func (s *partSource) Read(p []byte) (n int, err error) {
	if s.left == 0 {
		s.tooLong = true
		return 0, errTooLong
	}
	if s.left > 0 {
		p = p[:min(len(p), s.left)]
	}
	if s.added == 0 {
		n, err = s.source.Read(p)
	}
	if n == 0 && (err == io.EOF || s.added > 0) {
		n, err = copy(p, lineEnd[s.added:]), nil
		if s.added += n; n == 0 {
			err = errTruncated
		}
	} else if err == io.EOF {
		err = nil
	}
	if s.left > 0 {
		s.left -= n
	}
	return n, err
}
