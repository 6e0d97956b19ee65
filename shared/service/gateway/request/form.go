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

// AudioSeconds returns the length of the file. It is exact for uncompressed WAV files, and otherwise estimated by the
// rate in bytes per second.
func (r *Request) AudioSeconds(rate int) int64 {
	if wav := wavRate(r.file); wav > 0 {
		rate = min(wav, maxWAVRate)
	}
	return int64(max(1, (len(r.file)+rate/2)/rate))
}

// wavRate returns the bytes per second of an uncompressed WAV file. It returns 0 if some decoder could read the file as
// anything else, which would be longer.
func wavRate(file []byte) int {
	if len(file) < 60 || string(file[:4]) != "RIFF" || string(file[8:16]) != "WAVEfmt " {
		return 0
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint16(file[at:])) }
	format, channels, align, bits := number(20), number(22), number(32), number(34)
	frames, rate, length := binary.LittleEndian.Uint32(file[24:]), binary.LittleEndian.Uint32(file[28:]), binary.LittleEndian.Uint32(file[16:])
	if format == 0xfffe && length == 40 && string(file[46:60]) == subFormat {
		format = number(44)
	}
	isPCM := (format == 1 || format == 3) && slices.Contains([]uint32{16, 18, 40}, length) && slices.Contains([]int{8, 16, 24, 32, 64}, bits)
	if !isPCM || channels == 0 || channels > 8 || align != channels*bits/8 || frames == 0 || frames > 192_000 || rate != frames*uint32(align) {
		return 0
	}
	data := 20 + int(length)
	if list := file[data:]; len(list) > 8 && string(list[:4]) == "LIST" { // FFmpeg writes its name there
		size := int(min(binary.LittleEndian.Uint32(list[4:]), maxWAVList))
		data += 8 + size + size%2
	}
	if len(file) < data+8 || string(file[data:data+4]) != "data" || isCompressed(file[:min(len(file), data+64<<10)]) {
		return 0
	}
	return int(rate)
}

// isCompressed reports whether FFmpeg would detect a compressed format behind a WAV file's header: ACT, or by words that
// it searches for: bursts as for S/PDIF (IEC 61937), NUT, and MXF.
func isCompressed(head []byte) bool {
	return len(head) > 256 && head[256] == 0x84 && len(bytes.TrimLeft(head[44:256], "\x00")) == 0 ||
		bytes.Contains(head, []byte("\x72\xf8\x1f\x4e")) || bytes.Contains(head, []byte("N\x4d\x7a\x56\x1f\x5f\x04\xad")) ||
		bytes.Contains(head, []byte("\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02"))
}

const (
	// maxWAVRate is the bytes per second of 48 kHz stereo with 32 bits.
	maxWAVRate = 384_000
	// maxWAVList is the longest list of names and dates before the data, in bytes.
	maxWAVList = 4 << 10
	// subFormat ends the identifiers of formats in extensible WAV files.
	subFormat = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
)
