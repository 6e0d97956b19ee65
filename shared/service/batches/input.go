package batches

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/batch"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// maxEnvelope is the maximum size of a line in bytes, not counting the call's body.
	maxEnvelope = 16 << 10
	maxLine     = gateway.MaxBody + maxEnvelope
	maxCustomID = 512
)

var errLineTooLong = errors.New("batches: the line is too long")

var byteOrderMark = []byte("\xef\xbb\xbf")

type place struct {
	// call is the call's number. Empty lines are not counted.
	line, call   int
	offset, size int64
}

type input struct {
	blob   io.ReadCloser
	reader *bufio.Reader
	// at is the position of the line found last. short holds the line's bytes if the line is short.
	at    place
	short []byte
}

func (r *Runner) openInput(ctx context.Context, b batch.Batch) (*input, error) {
	blob, err := r.config.Blobs.Open(ctx, b.InputBlob, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("open the input: %w", err)
	}
	return &input{blob: blob, reader: bufio.NewReaderSize(blob, shortLine)}, nil
}

// next finds the next non-empty line without keeping long lines in memory.
//
// Errors: io.EOF after the last line; errLineTooLong, after which next may be called again.
func (in *input) next() (place, error) {
	for {
		empty, err := in.skip()
		if err != nil {
			return in.at, err
		}
		if empty {
			continue
		}
		in.at.call++
		if in.at.size > maxLine {
			return in.at, errLineTooLong
		}
		return in.at, nil
	}
}

// skip reads a line, which need not have a line ending, and reports whether it is empty.
func (in *input) skip() (empty bool, err error) {
	in.at.offset += in.at.size
	in.at.size, in.short = 0, nil
	in.at.line++
	for empty = true; ; {
		part, err := in.reader.ReadSlice('\n')
		if in.at.line == 1 && in.at.size == 0 {
			empty = len(bytes.TrimSpace(bytes.TrimPrefix(part, byteOrderMark))) == 0
		} else {
			empty = empty && len(bytes.TrimSpace(part)) == 0
		}
		if in.at.size += int64(len(part)); in.at.size == int64(len(part)) {
			in.short = part
		} else if len(part) > 0 {
			in.short = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && in.at.size > 0:
			return empty, nil // the next read returns EOF again
		}
		return empty, err
	}
}

func (in *input) close() { in.blob.Close() }

func (r *Runner) readLine(ctx context.Context, b batch.Batch, at place) ([]byte, error) {
	blob, err := r.config.Blobs.Open(ctx, b.InputBlob, at.offset, at.size)
	if err != nil {
		return nil, fmt.Errorf("open the input: %w", err)
	}
	defer blob.Close()
	text := make([]byte, at.size)
	if _, err := io.ReadFull(blob, text); err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	return trimmed(text, at), nil
}

// trimmed strips a line's byte order mark and surrounding white space.
func trimmed(text []byte, at place) []byte {
	if at.line == 1 {
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	return bytes.TrimSpace(text)
}

// withFound passes the line found last to the function use, which must not retain the line.
func (r *Runner) withFound(ctx context.Context, m *memory, b batch.Batch, in *input, use func(line []byte)) error {
	if in.short == nil {
		return r.withLine(ctx, m, b, in.at, use)
	}
	use(trimmed(in.short, in.at))
	return nil
}

// withLine waits for memory and then passes a line to the function use, which must not retain the line.
func (r *Runner) withLine(
	ctx context.Context, m *memory, b batch.Batch, at place, use func(line []byte),
) error {
	if !m.take(ctx, b.Account, at.size) {
		return ctx.Err()
	}
	defer m.release(b.Account, at.size)
	line, err := r.readLine(ctx, b, at)
	if err == nil {
		use(line)
	}
	return err
}

type call struct {
	customID string
	body     []byte
}

// parsed returns the call in a validated line. Its body is a slice of the line.
func parsed(line []byte) call {
	object, ok := jsonedit.ParseObject(line)
	if !ok {
		return call{} // unreachable: the line has been validated
	}
	m, _ := membersOf(object)
	end := m.body.Index + len(m.body.Raw)
	return call{customID: strings.Clone(m.customID.Str), body: line[m.body.Index:end:end]}
}

type members struct{ customID, method, url, body gjson.Result }

// membersOf returns a line's members. repeated is the name of a duplicate member, which is ambiguous.
func membersOf(line gjson.Result) (m members, repeated string) {
	line.ForEach(func(name, value gjson.Result) bool {
		var member *gjson.Result
		switch name.Str {
		case "custom_id":
			member = &m.customID
		case "method":
			member = &m.method
		case "url":
			member = &m.url
		case "body":
			member = &m.body
		default:
			return true
		}
		if member.Exists() {
			repeated = name.Str
			return false
		}
		*member = value
		return true
	})
	return m, repeated
}

type checker struct {
	endpoint string
	model    string
	// seen holds hashes of the calls' ids, because ids may be long.
	seen map[[16]byte]struct{}
}

func (c *checker) check(line []byte) (wrong batch.Error, ok bool) {
	flaw := func(code, param, message string) (batch.Error, bool) {
		return batch.Error{Code: code, Param: param, Message: message}, false
	}
	// ParseObject rejects deep nesting before it parses the line.
	object, isObject := jsonedit.ParseObject(line)
	if !isObject || !utf8.Valid(line) {
		return flaw("invalid_json_line", "", notAnObject)
	}
	m, repeated := membersOf(object)
	if repeated != "" {
		return flaw("invalid_json_line", repeated, "The line has this field twice.")
	}
	id := m.customID
	if !id.Exists() {
		return flaw("missing_required_parameter", "custom_id", "The line has no custom_id.")
	}
	if id.Type != gjson.String || id.Str == "" || utf8.RuneCountInString(id.Str) > maxCustomID {
		return flaw("invalid_custom_id", "custom_id", "The custom_id must be a string of 1 to 512 characters.")
	}
	digest := sha256.Sum256([]byte(id.Str))
	if _, known := c.seen[[16]byte(digest[:16])]; known {
		return flaw("duplicate_custom_id", "custom_id", "An earlier line has the same custom_id.")
	}
	c.seen[[16]byte(digest[:16])] = struct{}{}
	if m.method.Str != "POST" {
		return flaw("invalid_method", "method", "The method must be POST.")
	}
	if m.url.Str != c.endpoint {
		return flaw("invalid_url", "url", "The url must be the endpoint of the batch.")
	}
	return c.checkBody(m.body, flaw)
}

func (c *checker) checkBody(
	body gjson.Result, flaw func(code, param, message string) (batch.Error, bool),
) (batch.Error, bool) {
	if !body.IsObject() {
		return flaw("missing_required_parameter", "body", "The line must have a body that is an object.")
	}
	if len(body.Raw) > gateway.MaxBody {
		return flaw("line_too_long", "body", tooLongMessage)
	}
	if body.Get("stream").Bool() {
		return flaw("stream_not_allowed", "body.stream", "Requests in a batch cannot be streamed.")
	}
	model := body.Get("model")
	if model.Type != gjson.String || model.Str == "" {
		return flaw("missing_required_parameter", "body.model", "The body must name a model.")
	}
	if c.model == "" {
		c.model = strings.Clone(model.Str) // the line's buffer is reused
	}
	if c.model != model.Str {
		return flaw("model_mismatch", "body.model", "The model must be the same as in the first line.")
	}
	return batch.Error{}, true
}

var notAnObject = fmt.Sprintf("The line is not a JSON object, or is nested deeper than %d levels.", jsonedit.MaxDepth)

var tooLongMessage = fmt.Sprintf("The body is larger than %d bytes.", gateway.MaxBody)

func (r *Runner) validate(ctx context.Context, b batch.Batch) error {
	if !r.validations.Take(ctx, b.Account) {
		return ctx.Err()
	}
	defer r.validations.Release(b.Account)
	in, err := r.openInput(ctx, b)
	if err != nil {
		return err
	}
	defer in.close()
	checker := checker{endpoint: b.Endpoint, seen: map[[16]byte]struct{}{}}
	for len(b.Errors) < batch.MaxErrors && ctx.Err() == nil {
		at, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return fmt.Errorf("read the input: %w", err)
		}
		if at.call > batch.MaxLines {
			b.Errors = append(b.Errors, batch.Error{Code: "too_many_lines", Line: at.line,
				Message: fmt.Sprintf("The file has more than %d lines.", batch.MaxLines)})
			break
		}
		wrong, ok := batch.Error{Code: "line_too_long", Param: "body", Message: tooLongMessage}, false
		if err == nil {
			err = r.withFound(ctx, r.checking, b, in, func(line []byte) { wrong, ok = checker.check(line) })
			if err != nil {
				return err
			}
		}
		if !ok {
			wrong.Line = at.line
			b.Errors = append(b.Errors, wrong)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if in.at.call == 0 {
		b.Errors = []batch.Error{{Code: "empty_file", Message: "The file has no lines."}}
	}
	if len(b.Errors) > 0 {
		b.Status, b.EndedAt = batch.Failed, r.now()
	} else {
		b.Status, b.InProgressAt, b.Total, b.Model = batch.InProgress, r.now(), in.at.call, checker.model
	}
	return r.change(ctx, batch.Validating, b)
}
