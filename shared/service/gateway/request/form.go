package request

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"mime"
	"mime/multipart"
	"net/textproto"
	"path"
	"slices"
	"strings"

	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// maxParts limits the parts of a form. maxPartHeader limits the size of a part's header in bytes.
const maxParts, maxPartHeader = 100, 4 << 10

const filePart = "file"

// parseForm checks a request to transcribe audio, which is a form. Everything in it except for the contents of the parts
// is rewritten, because servers read forms differently. Otherwise a caller could name a second model, for example.
func parseForm(body []byte, caller Caller) (*Request, *apierror.Error) {
	var boundary string
	if !httpserver.HasManyParameters(caller.ContentType) {
		if kind, parameters, err := mime.ParseMediaType(caller.ContentType); err == nil && kind == "multipart/form-data" {
			boundary = parameters["boundary"]
		}
	}
	malformed := apierror.Invalid("", "", "The body must be complete multipart/form-data with a boundary and at most %d parts.", maxParts)
	delimiter := []byte("\r\n--" + boundary)
	if boundary == "" || !bytes.HasPrefix(body, delimiter[2:]) {
		return nil, malformed
	}
	r := &Request{Route: catalog.Transcriptions, body: body, boundary: rand.Text(), Completions: 1}
	var names []string
	last, at := 0, len(delimiter)-2
	for !bytes.HasPrefix(body[at:], []byte("--")) {
		part := body[at:]
		header := bytes.Index(part[:min(len(part), maxPartHeader)], []byte("\r\n\r\n"))
		if header < 2 || !bytes.HasPrefix(part, []byte("\r\n")) || len(names) == maxParts {
			return nil, malformed
		}
		content := span{start: at + header + 4}
		length := bytes.Index(body[content.start:], delimiter)
		name, head := partHeader(part[2:header])
		if content.end = content.start + length; length < 0 || name == "" {
			return nil, malformed
		}
		head = "\r\n--" + r.boundary + "\r\n" + head
		if len(names) == 0 {
			head = head[2:]
		}
		r.edits = append(r.edits, jsonedit.Edit{From: last, To: content.start, With: []byte(head)})
		last, at = content.end, content.end+len(delimiter)
		if slices.Contains(names, name) && !strings.HasSuffix(name, "[]") {
			return nil, apierror.Invalid(name, apierror.InvalidValue, "%s: the field was sent twice.", name)
		}
		names = append(names, name)
		switch value := body[content.start:content.end]; name {
		case modelField.String():
			r.model = content
		case filePart:
			r.file = value
		case streamField.String():
			r.Stream = strings.EqualFold(string(value[:min(len(value), 8)]), "true")
		}
	}
	r.edits = append(r.edits, jsonedit.Edit{From: last, To: len(body), With: []byte("\r\n--" + r.boundary + "--\r\n")})
	for _, name := range []string{modelField.String(), filePart} {
		if !slices.Contains(names, name) {
			return nil, apierror.Invalid(name, apierror.MissingParameter, "%s is missing.", name)
		}
	}
	var problem *apierror.Error
	if r.Model, problem = caller.find(catalog.Transcriptions, string(body[r.model.start:r.model.end]), modelField.String()); problem != nil {
		return nil, problem
	}
	for _, name := range names {
		if name != filePart && !isUsual(catalog.Transcriptions, []byte(name)) && !r.Model.Takes(name) {
			return nil, apierror.Invalid(name, apierror.UnknownParameter, "%q: the model does not support this field.", name)
		}
	}
	return r, nil
}

// partHeader returns a part's name and a new header for it. The name is empty if it is invalid, or similar to a name
// that servers could confuse with it.
func partHeader(header []byte) (name, head string) {
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(header[:len(header):len(header)], "\r\n\r\n"...)))).ReadMIMEHeader()
	disposition := fields.Get("Content-Disposition")
	if err != nil || httpserver.HasManyParameters(disposition) {
		return "", ""
	}
	part := &multipart.Part{Header: fields}
	name = httpserver.PartName(part)
	plain, isList := strings.CutSuffix(name, "[]")
	if !ascii.Only(plain, "_") || len(name) > maxParam || plain != strings.ToLower(plain) ||
		isList && slices.Contains([]string{modelField.String(), filePart, streamField.String()}, plain) {
		return "", ""
	}
	head = `Content-Disposition: form-data; name="` + name + `"`
	if name == filePart {
		file := "audio" + path.Ext(httpserver.PartFile(part)) // servers use only the extension
		if !ascii.Only(file, ".") || len(file) > maxParam {
			file = "audio"
		}
		kind, _, err := mime.ParseMediaType(fields.Get("Content-Type"))
		if err != nil {
			kind = "application/octet-stream"
		}
		head += `; filename="` + file + "\"\r\nContent-Type: " + kind
	}
	return name, head + "\r\n\r\n"
}

// ContentType returns the type of the body to send. It is empty for JSON.
func (r *Request) ContentType() string {
	if r.boundary == "" {
		return ""
	}
	return "multipart/form-data; boundary=" + r.boundary
}

// AudioSeconds returns the length of the file, estimated by the rate in bytes per second. A WAV file is measured by the
// rate in its header, but by at most maxWAVFactor times the other rate, because decoders find compressed sound behind
// such headers in many ways.
func (r *Request) AudioSeconds(rate int) int64 {
	if head := r.file; len(head) >= 60 && string(head[:4]) == "RIFF" && string(head[8:16]) == "WAVEfmt " {
		format, of := binary.LittleEndian.Uint16(head[20:]), binary.LittleEndian.Uint32(head[28:])
		if format == 0xfffe && string(head[46:60]) == subFormat {
			format = binary.LittleEndian.Uint16(head[44:])
		}
		channels, bits := uint32(binary.LittleEndian.Uint16(head[22:])), uint32(binary.LittleEndian.Uint16(head[34:]))
		frames, isPCM := binary.LittleEndian.Uint32(head[24:]), format == 1 || format == 3
		if isPCM && channels <= 8 && bits <= 64 && frames <= 192_000 && of == channels*bits*frames/8 && of > 0 {
			rate = min(int(of), maxWAVFactor*rate)
		}
	}
	return int64(max(1, (len(r.file)+rate/2)/rate))
}

const (
	maxWAVFactor = 8
	// subFormat ends the identifiers of formats in extensible WAV files.
	subFormat = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
)
