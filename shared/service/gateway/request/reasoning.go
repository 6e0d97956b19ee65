package request

import (
	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

// member is a member of an object. It is zero if the object has no such member.
type member struct{ key, value span }

// maxNamed limits the edits, because each takes more memory than a short message.
const maxNamed = 10_000

// nameReasoning renames or repeats the reasoning in messages so that the model servers find it. Messages that have
// both fields, and all messages after maxNamed edits, stay unchanged.
func (w *rewriting) nameReasoning(r *Request, translated bool) {
	wanted, body := r.Model.Reasoning, r.body
	if wanted == "" && translated {
		wanted = catalog.ReasoningBoth
	}
	if wanted == "" || body[r.prompt.start] != '[' {
		return
	}
	for i := next(body, r.prompt.start+1); body[i] != ']' && len(w.edits) < maxNamed; i = next(body, i) {
		end := endOf(body, i)
		if body[i] == '{' {
			w.nameReasoningIn(body, i, wanted)
		}
		i = end
	}
}

func (w *rewriting) nameReasoningIn(body []byte, message int, wanted catalog.ReasoningField) {
	var long, short member
	for i := next(body, message+1); body[i] != '}'; i = next(body, i) {
		quote := jsonedit.EndOfString(body, i)
		start := next(body, quote+1)
		end := endOf(body, start)
		switch catalog.ReasoningField(body[i+1 : quote]) {
		case catalog.ReasoningContent:
			long = member{span{i, quote + 1}, span{start, end}}
		case catalog.ReasoningOnly:
			short = member{span{i, quote + 1}, span{start, end}}
		}
		i = end
	}
	if long != (member{}) && short != (member{}) {
		return
	}
	sent, other := long, catalog.ReasoningOnly
	if long == (member{}) {
		sent, other = short, catalog.ReasoningContent
	}
	switch {
	case sent == (member{}) || body[sent.value.start] != '"':
	case wanted == catalog.ReasoningBoth:
		w.replace(span{sent.value.end, sent.value.end}, `,"`+string(other)+`":`)
		w.edits = append(w.edits, jsonedit.Edit{From: sent.value.end, To: sent.value.end, With: body[sent.value.start:sent.value.end]})
	case wanted == other:
		w.replace(sent.key, `"`+string(other)+`"`)
	}
}
