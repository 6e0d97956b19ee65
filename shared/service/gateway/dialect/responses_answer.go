package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Responses translates one call. Only one goroutine may use it. Its Held method returns the size of
// the buffered output, which a stream's last events repeat.
type Responses struct {
	call Call
	// sent contains the request fields that the response repeats, as JSON.
	sent map[string]string
	// spaces maps a function's name in the chat to its namespace and name. customs lists the tools
	// whose input is text.
	spaces  map[string]function
	customs map[string]bool
	walk    walk

	out              []byte
	whole            bool
	started          bool
	sequence, output int
	// items contains the completed items. text is the current item's text as JSON without quotes.
	// logprobs contains its token probabilities.
	items, text, logprobs []byte
	kind                  kind
	// custom means that the open item calls a tool whose input is text.
	custom       bool
	callID, name string
	space        string
}

func NewResponses(call Call) *Responses {
	r := &Responses{call: call, sent: map[string]string{}, spaces: map[string]function{}, customs: map[string]bool{}}
	r.walk.parts = r
	return r
}

// repeated lists the request fields that the response repeats, with their defaults.
var repeated = []struct{ name, otherwise string }{
	{"instructions", "null"}, {"max_output_tokens", "null"}, {"metadata", "{}"}, {"parallel_tool_calls", "true"},
	{"reasoning", `{"effort":null,"summary":null}`}, {"temperature", "null"},
	{"text", `{"format":{"type":"text"}}`}, {"tool_choice", `"auto"`}, {"tools", "[]"}, {"top_p", "null"},
	{"user", "null"},
}

func (r *Responses) remember(name string, value gjson.Result) {
	for _, field := range repeated {
		if field.name == name {
			// An event must be a single line. Line breaks inside JSON strings are already escaped.
			r.sent[name] = strings.Clone(strings.NewReplacer("\n", " ", "\r", " ").Replace(value.Raw))
		}
	}
}

func (r *Responses) Held() int {
	held := len(r.items) + len(r.text) + len(r.logprobs) + r.walk.waitingBytes
	for _, value := range r.sent {
		held += len(value)
	}
	return held
}

func (r *Responses) Answer(out []byte, completion gjson.Result, counts usage.Counts) ([]byte, error) {
	r.whole = true
	if err := r.walk.choice(first(completion)); err != nil {
		return out, err
	}
	r.walk.end()
	return r.response(out, r.status(), &counts, nil), nil
}

func (r *Responses) status() string {
	if r.walk.finish == "length" || r.walk.finish == "content_filter" {
		return "incomplete"
	}
	return "completed"
}

func (r *Responses) response(out []byte, status string, counts *usage.Counts, e *apierror.Error) []byte {
	out = append(append(out, `{"id":`...), jsonedit.Quote("resp_"+r.call.ID)...)
	out = strconv.AppendInt(append(out, `,"object":"response","created_at":`...), r.call.Created, 10)
	out = append(append(append(out, `,"status":"`...), status...), `","background":false,"error":`...)
	if e != nil {
		out = append(append(out, `{"code":`...), jsonedit.Quote(errorCode(e))...)
		out = append(append(append(out, `,"message":`...), jsonedit.Quote(e.Message)...), '}')
	} else {
		out = append(out, "null"...)
	}
	out = append(out, `,"incomplete_details":`...)
	switch {
	case status != "incomplete":
		out = append(out, "null"...)
	case r.walk.finish == "length":
		out = append(out, `{"reason":"max_output_tokens"}`...)
	default:
		out = append(out, `{"reason":"content_filter"}`...)
	}
	out = append(append(out, `,"model":`...), r.call.Model...)
	out = append(append(append(out, `,"output":[`...), r.items...), `],"previous_response_id":`...)
	if r.call.Previous != nil {
		out = append(out, r.call.Previous...)
	} else {
		out = append(out, "null"...)
	}
	out = strconv.AppendBool(append(out, `,"store":`...), r.call.Kept)
	for _, field := range repeated {
		value, ok := r.sent[field.name]
		if !ok {
			value = field.otherwise
		}
		out = append(append(append(append(out, `,"`...), field.name...), `":`...), value...)
	}
	out = append(out, `,"truncation":"disabled","usage":`...)
	if counts == nil {
		return append(out, "null}"...)
	}
	return append(AppendResponsesUsage(out, *counts), '}')
}

func errorCode(e *apierror.Error) string {
	if e.Code == "" {
		return "server_error"
	}
	return e.Code
}

func AppendResponsesUsage(out []byte, counts usage.Counts) []byte {
	out = strconv.AppendInt(append(out, `{"input_tokens":`...), counts.PromptTokens, 10)
	out = strconv.AppendInt(append(out, `,"input_tokens_details":{"cached_tokens":`...), counts.CachedTokens, 10)
	out = strconv.AppendInt(append(out, `},"output_tokens":`...), counts.CompletionTokens, 10)
	out = strconv.AppendInt(append(out, `,"output_tokens_details":{"reasoning_tokens":`...), counts.ReasoningTokens, 10)
	out = strconv.AppendInt(append(out, `},"total_tokens":`...), counts.PromptTokens+counts.CompletionTokens, 10)
	if counts.Cost > 0 {
		out = append(append(out, `,"cost":`...), usage.Amount(counts.Cost)...)
	}
	return append(out, '}')
}

// AppendResponsesError appends the error event that ends a natively served stream.
func AppendResponsesError(out []byte, e *apierror.Error, sequence int64) []byte {
	out = append(append(out, "event: error\ndata: {\"type\":\"error\",\"code\":"...), jsonedit.Quote(errorCode(e))...)
	out = append(append(out, `,"message":`...), jsonedit.Quote(e.Message)...)
	out = strconv.AppendInt(append(out, `,"param":null,"sequence_number":`...), sequence, 10)
	return append(out, "}\n\n"...)
}

func (r *Responses) Chunk(out []byte, chunk gjson.Result) ([]byte, error) {
	r.out = out
	r.begin()
	err := r.walk.choice(first(chunk))
	return r.out, err
}

// begin appends the first events if they have not been written.
func (r *Responses) begin() {
	if r.started {
		return
	}
	r.started = true
	for _, name := range []string{"response.created", "response.in_progress"} {
		r.event(name, func() { r.out = r.response(append(r.out, `,"response":`...), "in_progress", nil, nil) })
	}
}

func (r *Responses) event(name string, members func()) {
	if r.whole {
		return
	}
	r.out = append(append(append(r.out, "event: "...), name...), "\ndata: {\"type\":\""...)
	r.out = append(append(r.out, name...), `","sequence_number":`...)
	r.out = strconv.AppendInt(r.out, int64(r.sequence), 10)
	r.sequence++
	members()
	r.out = r.call.Send(append(r.out, "}\n\n"...))
}

func (r *Responses) End(out []byte, counts usage.Counts) []byte {
	r.out = out
	r.begin()
	r.walk.end()
	status := r.status()
	r.event("response."+status, func() {
		r.out = append(r.out, `,"response":`...)
		at := len(r.out)
		r.out = r.response(r.out, status, &counts, nil)
		if r.call.Keep != nil {
			r.call.Keep(r.out[at:])
		}
	})
	return r.out
}

func (r *Responses) Fail(out []byte, e *apierror.Error) []byte {
	r.out = out
	r.begin()
	r.event("response.failed", func() { r.out = r.response(append(r.out, `,"response":`...), "failed", nil, e) })
	return r.out
}

func (r *Responses) itemID() string {
	prefix := "msg_"
	switch r.kind {
	case thought:
		prefix = "rs_"
	case called:
		prefix = "fc_"
		if r.custom {
			prefix = "ctc_"
		}
	}
	return prefix + r.call.ID + "_" + strconv.Itoa(r.output)
}

func (r *Responses) item(out []byte, status string, content bool) []byte {
	out = append(append(append(out, `{"id":"`...), r.itemID()...), `","status":"`...)
	out = append(append(out, status...), '"')
	switch r.kind {
	case called:
		kind, content := `,"type":"function_call","call_id":`, `,"arguments":"`
		if r.custom {
			kind, content = `,"type":"custom_tool_call","call_id":`, `,"input":"`
		}
		out = append(append(out, kind...), jsonedit.Quote(r.callID)...)
		out = append(append(out, `,"name":`...), jsonedit.Quote(r.name)...)
		if r.space != "" {
			out = append(append(out, `,"namespace":`...), jsonedit.Quote(r.space)...)
		}
		return append(append(append(out, content...), r.text...), `"}`...)
	case thought:
		out = append(out, `,"type":"reasoning","summary":[],"content":[`...)
	default:
		out = append(out, `,"type":"message","role":"assistant","content":[`...)
	}
	if content {
		out = r.part(out)
	}
	return append(out, "]}"...)
}

func (r *Responses) part(out []byte) []byte {
	switch r.kind {
	case thought:
		out = append(append(out, `{"type":"reasoning_text","text":"`...), r.text...)
	case refused:
		out = append(append(out, `{"type":"refusal","refusal":"`...), r.text...)
	default:
		out = append(append(out, `{"type":"output_text","annotations":[],"logprobs":[`...), r.logprobs...)
		out = append(append(out, `],"text":"`...), r.text...)
	}
	return append(out, `"}`...)
}

// place appends the fields that identify an event's item and part.
func (r *Responses) place() {
	r.out = append(append(append(r.out, `,"item_id":"`...), r.itemID()...), `","output_index":`...)
	r.out = strconv.AppendInt(r.out, int64(r.output), 10)
	if r.kind != called {
		r.out = append(r.out, `,"content_index":0`...)
	}
}

func (r *Responses) stream() string {
	switch r.kind {
	case thought:
		return "response.reasoning_text"
	case refused:
		return "response.refusal"
	case called:
		if r.custom {
			return "response.custom_tool_call_input"
		}
		return "response.function_call_arguments"
	}
	return "response.output_text"
}

func (r *Responses) open(k kind, id, name string) {
	r.kind, r.callID, r.name = k, strings.Clone(id), strings.Clone(name)
	r.text, r.logprobs, r.custom = r.text[:0], r.logprobs[:0], k == called && r.customs[name]
	f, ok := r.spaces[name]
	if r.space = f.space; ok {
		r.name = f.name
	}
	if r.callID == "" {
		r.callID = "call_" + r.call.ID + "_" + strconv.Itoa(r.output)
	}
	r.event("response.output_item.added", func() { r.whereIs("in_progress", false) })
	if k != called {
		r.event("response.content_part.added", r.partEvent)
	}
}

func (r *Responses) whereIs(status string, content bool) {
	r.out = strconv.AppendInt(append(r.out, `,"output_index":`...), int64(r.output), 10)
	r.out = r.item(append(r.out, `,"item":`...), status, content)
}

func (r *Responses) partEvent() {
	r.place()
	r.out = r.part(append(r.out, `,"part":`...))
}

func (r *Responses) add(text string) {
	r.text = append(r.text, text...)
	if !r.custom {
		r.delta(text)
	}
}

func (r *Responses) addObject(text string) {
	at := len(r.text)
	r.text = jsonedit.AppendQuote(r.text, text)
	r.text = slices.Delete(r.text[:len(r.text)-1], at, at+1)
	if !r.custom && !r.whole {
		r.delta(string(r.text[at:]))
	}
}

func (r *Responses) delta(text string) {
	r.event(r.stream()+".delta", func() {
		r.place()
		r.out = append(append(append(r.out, `,"delta":"`...), text...), '"')
		if r.kind == said {
			r.out = append(append(append(r.out, `,"logprobs":[`...), r.walk.logprobs...), ']')
		}
	})
	if len(r.walk.logprobs) > 0 {
		r.logprobs = appendElement(r.logprobs, string(r.walk.logprobs))
		r.walk.logprobs = r.walk.logprobs[:0]
	}
}

func (r *Responses) shut() {
	if r.custom {
		r.text = append(r.text[:0], freeText(r.text)...)
		r.delta(string(r.text))
	}
	r.event(r.stream()+".done", func() {
		r.place()
		member := `,"text":"`
		switch r.kind {
		case called:
			if member = `,"input":"`; !r.custom {
				r.out = append(append(r.out, `,"name":`...), jsonedit.Quote(r.name)...)
				member = `,"arguments":"`
			}
		case refused:
			member = `,"refusal":"`
		case said:
			r.out = append(append(append(r.out, `,"logprobs":[`...), r.logprobs...), ']')
		}
		r.out = append(append(append(r.out, member...), r.text...), '"')
	})
	if r.kind != called {
		r.event("response.content_part.done", r.partEvent)
	}
	status := r.status()
	r.event("response.output_item.done", func() { r.whereIs(status, true) })
	if r.output > 0 {
		r.items = append(r.items, ',')
	}
	r.items = r.item(r.items, status, true)
	r.output++
}
