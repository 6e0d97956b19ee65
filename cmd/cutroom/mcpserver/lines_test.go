package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"cutroom/shared/client"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

// Messages after an invalid message are still read.
func TestInvalidMessagesGetErrors(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for name, c := range map[string]struct {
		sent string
		// passed contains the forwarded lines. code is the error code, or 0 if there is no error.
		passed string
		code   int
	}{
		"a message":            {good + "\n", good + "\n", 0},
		"two":                  {good + "\n" + good + "\r\n", good + "\n" + good + "\n", 0},
		"without an end":       {good, good + "\n", 0},
		"empty lines":          {"\n\r\n  \n" + good + "\n\n", good + "\n", 0},
		"nothing":              {"", "", 0},
		"no JSON":              {"hello\n" + good + "\n", good + "\n", -32700},
		"an incomplete line":   {`{"jsonrpc":"2.0",` + "\n" + good + "\n", good + "\n", -32700},
		"two in a line":        {good + good + "\n" + good + "\n", good + "\n", -32700},
		"bytes":                {"\x00\xff\xfe\n" + good + "\n", good + "\n", -32700},
		"cut off at the end":   {good + "\n" + `{"jsonrpc`, good + "\n", -32700},
		"a number":             {"5\n" + good + "\n", good + "\n", -32600},
		"null":                 {"null\n" + good + "\n", good + "\n", -32600},
		"no message":           {`{"a":1}` + "\n" + good + "\n", good + "\n", -32600},
		"another version":      {`{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n" + good + "\n", good + "\n", -32600},
		"an invalid id":        {`{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n" + good + "\n", good + "\n", -32600},
		"a batch":              {"[" + good + "]\n" + good + "\n", good + "\n", -32600},
		"an empty batch":       {"[]\n" + good + "\n", good + "\n", -32600},
		"too long":             {strings.Repeat("x", maxLine+1) + "\n" + good + "\n", good + "\n", -32600},
		"too long, at the end": {good + "\n" + strings.Repeat("x", maxLine+1), good + "\n", 0},
	} {
		ends := 0
		var answers bytes.Buffer
		passed, err := io.ReadAll(newLines(strings.NewReader(c.sent), &answers, func() { ends++ }))
		if string(passed) != c.passed || err != nil || ends != 1 {
			t.Errorf("%s: passed on %.200q, %v, ended %d times", name, passed, err, ends)
		}
		if c.code == 0 {
			if answers.Len() > 0 {
				t.Errorf("%s: responded %s", name, &answers)
			}
			continue
		}
		var answer struct {
			JSONRPC string
			ID      any
			Error   struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(answers.Bytes(), &answer); err != nil || answer.JSONRPC != "2.0" || answer.ID != nil ||
			answer.Error.Code != c.code || answer.Error.Message == "" || !strings.Contains(answers.String(), `"id":null`) {
			t.Errorf("%s: responded %s", name, &answers)
		}
	}
}

// Even a message that consists of the smallest elements takes at most 20 bytes of memory per byte.
func TestMessagesUseLimitedMemory(t *testing.T) {
	const most = 1 << 20
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_job","arguments":{"job_id":"a"`
	const initialize = `"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"clientInfo":{"name":"a","version":"1"},"capabilities":{`
	const begin = `{"jsonrpc":"2.0","id":1,` + initialize + `}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, text := range map[string]string{
		"arguments":    begin + alloctest.Numbered(most, call, `,"%x":0`, `}}}`+"\n"),
		"numbers":      begin + alloctest.Filled(most, call+`,"a":[0`, `,0`, `]}}}`+"\n"),
		"objects":      begin + alloctest.Filled(most, call+`,"a":[0`, `,{}`, `]}}}`+"\n"),
		"meta":         begin + alloctest.Numbered(most, call+`},"_meta":{"a":0`, `,"%x":0`, `}}}`+"\n"),
		"capabilities": alloctest.Numbered(most, `{"jsonrpc":"2.0","id":7,`+initialize+`"experimental":{"a":0`, `,"%x":{}`, `}}}}`+"\n"),
		"deep":         strings.Repeat("[", most) + "\n",
		"empty lines":  strings.Repeat("\n", most),
		"members":      alloctest.Numbered(most, `{"jsonrpc":"2.0"`, `,"%x":0`, `}`+"\n"),
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, len(text), func() {
				waits, end := io.Pipe()
				agent := untilAnswered{end}
				if name == "empty lines" {
					end.Close() // no response is expected
				}
				_ = Serve(await.Context(t), Config{
					Connect: func() (*client.Client, error) { return nil, errors.New("the test has no service") },
				}, io.MultiReader(strings.NewReader(text), waits), agent)
			})
		})
	}
}

// untilAnswered is an agent that disconnects once the last message has been answered.
type untilAnswered struct{ end io.Closer }

func (u untilAnswered) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"id":7`)) || bytes.Contains(p, []byte(`"id":null`)) {
		u.end.Close()
	}
	return len(p), nil
}
