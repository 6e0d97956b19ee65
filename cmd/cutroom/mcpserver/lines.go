package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"cutroom/shared/platform/boundedjson"
)

const (
	// maxLine is the maximum length of a message, in bytes.
	maxLine = 16 << 20
	// maxValues limits the number of values and names in a message, because the SDK uses up to 1 KB for each.
	maxValues = 10_000
)

// lines reads an agent's messages, one per line, and passes on the valid ones. It responds to any other line with an
// error, because version 1.8.0 of the SDK would end the session.
type lines struct {
	in    *bufio.Reader
	out   io.Writer
	ended func()
	// left is the unread remainder of the current line.
	left []byte
}

func newLines(in io.Reader, out io.Writer, ended func()) *lines {
	return &lines{in: bufio.NewReader(in), out: out, ended: ended}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, err := l.line()
		if rejected := rejection(line, err); rejected != nil {
			_, err = l.out.Write(rejected)
		} else if len(line) > 0 {
			l.left = append(line, '\n')
			break
		}
		if err != nil {
			l.ended()
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

func (*lines) Close() error { return nil }

var errLongLine = errors.New("the message is too long")

// line returns the next line without surrounding white space. The last line need not end with a line break.
//
// Errors: errLongLine, after which the next line can be read; io.EOF; errors from the reader.
func (l *lines) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || len(line) == 0 || long):
			return nil, err
		case long:
			return nil, errLongLine
		}
		return bytes.TrimSpace(line), nil
	}
}

// rejection returns the error response to an invalid message, or nil if the line is valid or empty.
// The response has a null id, as JSON-RPC requires if the id is unknown (section 5).
func rejection(line []byte, err error) []byte {
	if err != errLongLine && (err != nil || len(line) == 0) {
		return nil
	}
	code, message := int64(jsonrpc.CodeInvalidRequest), ""
	if err == nil {
		var text json.RawMessage
		err = boundedjson.Unmarshal(line, maxValues, &text)
	}
	limit, isLimit := errors.AsType[*boundedjson.LimitError](err)
	switch {
	case err == errLongLine:
		message = fmt.Sprintf("the message is longer than %d bytes", maxLine)
	case isLimit:
		message = fmt.Sprintf("the message has more than %d values", limit.Most)
	case err != nil:
		code, message = jsonrpc.CodeParseError, "the line is not JSON; a message must be one line"
	case line[0] == '[':
		message = "the protocol does not support batches"
	default:
		if _, err := jsonrpc.DecodeMessage(line); err == nil {
			return nil
		}
		message = "the line is not a JSON-RPC 2.0 message"
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
}

// shared is a writer that is safe for concurrent use. Each Write must contain entire messages.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

func (*shared) Close() error { return nil }
