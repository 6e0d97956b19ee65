package request

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

// Body returns the caller's body with the rules' edits and the upstream's name for the model, which is a JSON string.
func (r *Request) Body(upstreamModel []byte) jsonedit.Edited {
	if r.boundary != "" {
		upstreamModel, _ = jsontext.AppendUnquote(nil, upstreamModel)
	}
	edits := append(r.edits[:len(r.edits):len(r.edits)], jsonedit.Edit{From: r.model.start, To: r.model.end, With: upstreamModel})
	return jsonedit.New(r.body, edits)
}

type rewriting struct {
	scan  *scan
	edits []jsonedit.Edit
	// removed marks fields that are not forwarded. added is inserted after the last member.
	removed [fieldCount]bool
	added   []byte
}

func (w *rewriting) replace(at span, text string) {
	w.edits = append(w.edits, jsonedit.Edit{From: at.start, To: at.end, With: []byte(text)})
}

func (w *rewriting) add(name, value string) {
	w.added = append(w.added, `,"`+name+`":`+value...)
}

func (r *Request) rewrite(s *scan, caller Caller) {
	w := &rewriting{scan: s, edits: r.usual[:0]}
	for f := range nField {
		if m := &s.members[f]; m.sent && !m.present() {
			w.removed[f] = true
		}
	}
	w.removed[modelsField] = s.members[modelsField].sent
	r.MostTokens = r.Model.MaxOutputLength
	switch limit := outputLimit(r.Model, caller.MaxTokens); r.Route {
	case catalog.Chat, catalog.Completions:
		r.MostTokens = w.limitTokens(r.Model, limit)
	case catalog.Messages:
		r.MostTokens = w.clamp(maxTokensField, limit)
	case catalog.Responses:
		r.MostTokens = w.respond(r.Model, limit)
	}
	for f := nField; f <= bestOfField; f++ {
		if w.scan.respelled[f] {
			w.replace(w.scan.members[f].value, strconv.Itoa(w.scan.numbers[f]))
		}
	}
	if r.Route == catalog.Chat {
		w.reason(r)
		w.nameReasoning(r, caller.Translated)
	}
	if r.Stream && r.Model.StreamOptions && (r.Route == catalog.Chat || r.Route == catalog.Completions) {
		w.askForUsage()
	}
	w.remove()
	if len(w.added) > 0 {
		w.edits = append(w.edits, jsonedit.Edit{From: s.last, To: s.last, With: w.added})
	}
	r.edits = w.edits
}

// limitTokens forwards one of the token limits, clamped, under the upstream's name for it
// (docs/contract/gateway.md#token-limits-of-a-call). It returns the forwarded limit, or else the model's limit.
func (w *rewriting) limitTokens(m *catalog.Inference, limit int) (most int) {
	winner := maxTokensField
	for _, f := range [...]field{maxCompletionTokensField, maxTokensField, rowTokensField} {
		if w.scan.members[f].present() {
			winner = f
			break
		}
	}
	for f := maxTokensField; f <= rowTokensField; f++ {
		w.removed[f] = w.scan.members[f].sent && (f != winner || !w.scan.members[f].present())
	}
	if !w.scan.members[winner].present() {
		if m.DefaultMaxTokens == 0 {
			return m.MaxOutputLength
		}
		w.add(m.MaxTokensField, strconv.Itoa(min(m.DefaultMaxTokens, limit)))
		return min(m.DefaultMaxTokens, limit)
	}
	if winner != rowTokensField && winner.String() != m.MaxTokensField {
		w.replace(w.scan.members[winner].key, `"`+m.MaxTokensField+`"`)
	}
	return w.clamp(winner, limit)
}

func outputLimit(m *catalog.Inference, tierCap int) int {
	if tierCap > 0 {
		return min(m.MaxOutputLength, tierCap)
	}
	return m.MaxOutputLength
}

func (w *rewriting) clamp(f field, limit int) int {
	n := w.scan.numbers[f]
	if w.scan.members[f].present() && (n > limit || w.scan.respelled[f]) {
		w.replace(w.scan.members[f].value, strconv.Itoa(min(n, limit)))
	}
	return min(n, limit)
}

// respond applies the rules for natively served Responses: it limits the tokens, and it turns off storage, which some
// servers enable by default. It returns the forwarded limit, or else the model's limit.
func (w *rewriting) respond(m *catalog.Inference, limit int) (most int) {
	most = w.clamp(maxOutputTokensField, limit)
	if !w.scan.members[maxOutputTokensField].present() {
		most = m.MaxOutputLength
		if m.DefaultMaxTokens > 0 {
			most = min(m.DefaultMaxTokens, limit)
			w.add(maxOutputTokensField.String(), strconv.Itoa(most))
		}
	}
	switch store := &w.scan.members[storeField]; {
	case !store.present():
		w.add(storeField.String(), "false")
	case store.kind == 't':
		w.replace(store.value, "false") // the gateway keeps the response itself
	}
	return most
}

// reason applies the rules of docs/contract/gateway.md#reasoning.
func (w *rewriting) reason(r *Request) {
	m := r.Model
	var set []string
	// These are reasoning rules 1 to 4.
	effort := &w.scan.members[reasoningEffortField]
	if m.Effort == catalog.EffortTemplate && effort.present() && !w.scan.effort.present() {
		value := string(r.body[effort.value.start:effort.value.end])
		if string(w.scan.reader.string(jsontext.Value(value))) == "xhigh" {
			value = `"max"`
		}
		w.removed[reasoningEffortField] = true
		if w.scan.effort.sent {
			w.replace(w.scan.effort.value, value)
		} else {
			set = append(set, `"reasoning_effort":`+value)
		}
	}
	// This is reasoning rule 7.
	if m.TemplateKwargs && w.scan.members[responseFormatField].present() && !w.scan.asText && !w.scan.thinking.present() {
		if w.scan.thinking.sent {
			w.replace(w.scan.thinking.value, "false")
		} else {
			set = append(set, `"enable_thinking":false`)
		}
	}
	if len(set) > 0 {
		w.set(templateKwargsField, &w.scan.kwargs, strings.Join(set, ","))
	}
}

// askForUsage makes the upstream report the usage at the end of its stream.
func (w *rewriting) askForUsage() {
	switch {
	case w.scan.usage.kind == 't':
	case w.scan.usage.sent:
		w.replace(w.scan.usage.value, "true")
	default:
		w.set(streamOptionsField, &w.scan.streaming, `"include_usage":true`)
	}
}

func (w *rewriting) set(f field, o *object, text string) {
	switch m := &w.scan.members[f]; {
	case m.present() && o.empty:
		w.replace(span{o.open, o.open}, text)
	case m.present():
		w.replace(span{o.last, o.last}, ","+text)
	case m.sent:
		w.removed[f] = false
		w.replace(m.value, "{"+text+"}")
	default:
		w.add(f.String(), "{"+text+"}")
	}
}

func (w *rewriting) remove() {
	for f, removed := range w.removed {
		if !removed {
			continue
		}
		m := &w.scan.members[f]
		before := 0
		for other, too := range w.removed {
			if too && w.scan.members[other].ordinal < m.ordinal {
				before++
			}
		}
		switch {
		case before < m.ordinal:
			// If a member remains before the removed member, also remove the comma between them.
			w.replace(span{m.previous, m.value.end}, "")
		case m.next >= 0:
			w.replace(span{m.key.start, m.next}, "")
		default:
			w.replace(span{m.key.start, m.value.end}, "")
		}
	}
}
