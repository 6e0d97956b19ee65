package dialect

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Messages translates one call. Only one goroutine may use it.
type Messages struct {
	call  Call
	stops []string
	walk  walk
	// whole means that out is a complete response instead of events.
	out   []byte
	whole bool
	// started means that the first event has been written. block is the index of the current or next block.
	started bool
	block   int
	kind    kind
	// arguments holds a call's arguments for a complete response, as JSON without quotes. If object is not empty, it
	// is used instead.
	arguments []byte
	object    string
}

func NewMessages(call Call) *Messages {
	m := &Messages{call: call}
	m.walk.parts = m
	return m
}

// Held returns the size of the buffered arguments.
func (m *Messages) Held() int { return m.walk.waitingBytes }

func (m *Messages) Answer(out []byte, completion gjson.Result, counts usage.Counts) ([]byte, error) {
	m.out, m.whole = m.head(out), true
	m.out = append(m.out, `,"content":[`...)
	if err := m.walk.choice(first(completion)); err != nil {
		return m.out, err
	}
	m.walk.end()
	m.out = m.reason(append(m.out, `],`...))
	m.out = AppendMessagesUsage(append(m.out, `,"usage":`...), counts)
	return append(m.out, '}'), nil
}

func (m *Messages) head(out []byte) []byte {
	out = append(append(out, `{"id":`...), jsonedit.Quote("msg_"+m.call.ID)...)
	out = append(out, `,"type":"message","role":"assistant","model":`...)
	return append(out, m.call.Model...)
}

func (m *Messages) reason(out []byte) []byte {
	reason, sequence := "end_turn", "null"
	switch finish := m.walk.finish; {
	case finish == "length":
		reason = "max_tokens"
	case finish == "content_filter":
		reason = "refusal"
	case m.walk.calls.Count > 0:
		reason = "tool_use"
	case m.walk.stop != "" && slices.Contains(m.stops, m.walk.stop):
		reason, sequence = "stop_sequence", string(jsonedit.Quote(m.walk.stop))
	}
	out = append(append(out, `"stop_reason":"`...), reason...)
	return append(append(out, `","stop_sequence":`...), sequence...)
}

func (m *Messages) Chunk(out []byte, chunk gjson.Result) ([]byte, error) {
	m.out = out
	m.begin()
	err := m.walk.choice(first(chunk))
	return m.out, err
}

// begin appends the first event if it has not been written. Its usage is an estimate. The last event
// has the actual usage.
func (m *Messages) begin() {
	if m.started {
		return
	}
	m.started = true
	m.event("message_start", func() {
		m.out = m.head(append(m.out, `,"message":`...))
		m.out = append(m.out, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
		m.out = append(AppendMessagesUsage(m.out, usage.Counts{PromptTokens: m.call.PromptTokens()}), '}')
	})
}

func (m *Messages) event(name string, members func()) {
	m.out = append(append(append(m.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	m.out = append(append(m.out, name...), '"')
	members()
	m.out = m.call.Send(append(m.out, "}\n\n"...))
}

func (m *Messages) End(out []byte, counts usage.Counts) []byte {
	m.out = out
	m.begin()
	m.walk.end()
	m.event("message_delta", func() {
		m.out = m.reason(append(m.out, `,"delta":{`...))
		m.out = AppendMessagesUsage(append(m.out, `},"usage":`...), counts)
	})
	m.event("message_stop", func() {})
	return m.out
}

func (m *Messages) Fail(out []byte, e *apierror.Error) []byte {
	return AppendMessagesFailure(out, e, m.call.ID)
}

func AppendMessagesFailure(out []byte, e *apierror.Error, requestID string) []byte {
	out = append(append(out, "event: error\ndata: "...), MessagesError(e, requestID)...)
	return append(out, "\n\n"...)
}

func MessagesError(e *apierror.Error, requestID string) []byte {
	kind := "api_error"
	switch e.Status {
	case 401:
		kind = "authentication_error"
	case 403:
		kind = "permission_error"
	case 404:
		kind = "not_found_error"
	case 413:
		kind = "request_too_large"
	case 429:
		kind = "rate_limit_error"
	case 503:
		kind = "overloaded_error"
	case 504:
		kind = "timeout_error"
	default:
		if e.Status < 500 {
			kind = "invalid_request_error"
		}
	}
	out := append([]byte(`{"type":"error","error":{"type":"`), kind...)
	out = append(append(out, `","message":`...), jsonedit.Quote(e.Message)...)
	if e.Type == apierror.OverBudget {
		out = append(append(append(out, `,"code":"`...), e.Code...), '"')
	}
	out = append(append(out, `},"request_id":`...), jsonedit.Quote(requestID)...)
	return append(out, '}')
}

// AppendMessagesUsage appends a usage object in the format of Messages, whose input tokens exclude cached tokens.
func AppendMessagesUsage(out []byte, counts usage.Counts) []byte {
	out = strconv.AppendInt(append(out, `{"input_tokens":`...), counts.PromptTokens-counts.CachedTokens, 10)
	out = append(out, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...)
	out = strconv.AppendInt(out, counts.CachedTokens, 10)
	out = strconv.AppendInt(append(out, `,"output_tokens":`...), counts.CompletionTokens, 10)
	if counts.Cost > 0 {
		out = append(append(out, `,"cost":`...), usage.Amount(counts.Cost)...)
	}
	return append(out, '}')
}

func (m *Messages) open(k kind, id, name string) {
	m.kind, m.arguments, m.object = k, m.arguments[:0], ""
	if id == "" {
		id = "toolu_" + m.call.ID + "_" + strconv.Itoa(m.block)
	}
	var head string
	switch k {
	case thought:
		head = `{"type":"thinking","signature":"","thinking":"`
	case called:
		head = `{"type":"tool_use","id":` + string(jsonedit.Quote(id)) +
			`,"name":` + string(jsonedit.Quote(name)) + `,"input":`
	default:
		head = `{"type":"text","text":"`
	}
	if m.whole {
		if m.block > 0 {
			m.out = append(m.out, ',')
		}
		m.out = append(m.out, head...)
		return
	}
	end := `"}`
	if k == called {
		end = `{}}`
	}
	m.event("content_block_start", func() {
		m.index()
		m.out = append(append(append(m.out, `,"content_block":`...), head...), end...)
	})
}

func (m *Messages) index() {
	m.out = strconv.AppendInt(append(m.out, `,"index":`...), int64(m.block), 10)
}

func (m *Messages) add(text string) {
	if m.whole && m.kind == called {
		m.arguments = append(m.arguments, text...)
		return
	}
	if m.whole {
		m.out = append(m.out, text...)
		return
	}
	delta := `,"delta":{"type":"text_delta","text":"`
	switch m.kind {
	case thought:
		delta = `,"delta":{"type":"thinking_delta","thinking":"`
	case called:
		delta = `,"delta":{"type":"input_json_delta","partial_json":"`
	}
	m.event("content_block_delta", func() {
		m.index()
		m.out = append(append(append(m.out, delta...), text...), `"}`...)
	})
}

func (m *Messages) addObject(text string) {
	if m.object = text; !m.whole {
		quoted := jsonedit.Quote(text)
		m.add(string(quoted[1 : len(quoted)-1]))
	}
}

func (m *Messages) shut() {
	if !m.whole {
		m.event("content_block_stop", m.index)
		m.block++
		return
	}
	m.block++
	if m.kind != called {
		m.out = append(m.out, `"}`...)
		return
	}
	if m.object == "" {
		m.object = input(m.arguments)
	}
	m.out = append(append(m.out, m.object...), '}')
}

// input returns a call's arguments as an object. Arguments that are not an object are wrapped in an object.
func input(arguments []byte) string {
	text := unquoted(arguments)
	if len(text) == 0 {
		return "{}"
	}
	if object, ok := jsonedit.ParseObject(text); ok {
		return object.Raw
	}
	return `{"arguments":"` + string(arguments) + `"}`
}
