package dialect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// maxStops is the maximum number of stop sequences in a chat request (docs/contract/limits.md).
const maxStops = 4

func (m *Messages) Request(out, body []byte, row *catalog.Inference) ([]byte, *apierror.Error) {
	object, _ := jsonedit.ParseObject(body) // already validated
	w := &messagesWriter{writer: writer{out: out}, row: row}
	w.open('{')
	w.list("messages", func() {
		w.system(object.Get("system"))
		w.elements(object.Get("messages"), "messages", w.message)
	})
	w.members(object, "", func(name string, value gjson.Result) {
		if name == "stop_sequences" {
			m.stops = texts(value)
		}
		w.field(name, value)
	})
	w.close('}')
	return w.out, w.problem
}

func texts(array gjson.Result) []string {
	var all []string
	array.ForEach(func(_, value gjson.Result) bool {
		all = append(all, strings.Clone(value.String()))
		return true
	})
	return all
}

type messagesWriter struct {
	writer
	row *catalog.Inference
}

func (w *messagesWriter) field(name string, value gjson.Result) {
	switch name {
	case "messages", "system":
	case "max_tokens", "model", "stream":
		w.raw(name, value.Raw)
	case "stop_sequences":
		w.elements(value, name, func(i int, stop gjson.Result) { w.isText(stop, fmt.Sprintf("%s[%d]", name, i)) })
		if n := len(texts(value)); n > maxStops {
			w.reject(name, apierror.ArrayTooLong, "%s: expected at most %d.", name, maxStops)
		} else if n > 0 {
			w.raw("stop", value.Raw)
		}
	case "tools":
		w.list("tools", func() { w.elements(value, name, w.tool) })
	case "tool_choice":
		w.toolChoice(value)
	case "thinking":
		w.thinking(value)
	case "output_config":
		w.outputConfig(value)
	case "metadata":
		w.members(value, name, func(inner string, value gjson.Result) {
			if inner != "user_id" {
				w.unknown(below(name, inner))
			} else if w.isText(value, "metadata.user_id") {
				w.raw("user", value.Raw)
			}
		})
	case "service_tier":
		// Ignored: the field selects a price tier of the provider. Model servers have no price tiers.
	case "context_management":
		w.contextManagement(value)
	case "container", "mcp_servers":
		w.unknown(name)
	default:
		if chatOnly(name) {
			w.unknown(name)
			return
		}
		// The row's rules check this field later, as they do for chat.
		w.raw(name, value.Raw)
	}
}

// contextManagement accepts only settings that have no effect: no edits, or keeping all thinking.
func (w *messagesWriter) contextManagement(value gjson.Result) {
	w.members(value, "context_management", func(name string, value gjson.Result) {
		if name != "edits" {
			w.unknown("context_management." + name)
			return
		}
		w.elements(value, "context_management.edits", func(i int, edit gjson.Result) {
			if edit.Get("type").Str != "clear_thinking_20251015" || edit.Get("keep").Str != "all" {
				w.unknown(fmt.Sprintf("context_management.edits[%d]", i))
			}
		})
	})
}

// The largest thinking budgets, in tokens, that map to low and medium effort.
const lowBudget, mediumBudget = 4096, 16384

// thinking writes whether the model should reason, either as the row's template option or as an effort.
func (w *messagesWriter) thinking(value gjson.Result) {
	budget := value.Get("budget_tokens")
	w.only(value, "thinking", "type", "budget_tokens", "display")
	switch kind := value.Get("type").Str; {
	case kind != "enabled" && kind != "adaptive" && kind != "disabled":
		w.reject("thinking.type", apierror.InvalidValue, "thinking.type: expected enabled, adaptive or disabled.")
	case kind == "enabled" && budget.Type != gjson.Number:
		w.want("thinking.budget_tokens", "an integer")
	case w.row.TemplateKwargs:
		w.inner("chat_template_kwargs", func() { w.raw("enable_thinking", strconv.FormatBool(kind != "disabled")) })
	case kind == "enabled" && budget.Int() <= lowBudget:
		w.raw("reasoning_effort", `"low"`)
	case kind == "enabled" && budget.Int() <= mediumBudget:
		w.raw("reasoning_effort", `"medium"`)
	case kind == "enabled":
		w.raw("reasoning_effort", `"high"`)
	}
}

func (w *messagesWriter) outputConfig(value gjson.Result) {
	w.members(value, "output_config", func(name string, value gjson.Result) {
		switch name {
		case "effort":
			if w.isText(value, "output_config.effort") {
				w.raw("reasoning_effort", value.Raw)
			}
		case "format":
			if value.Get("type").Str != "json_schema" || !value.Get("schema").IsObject() {
				w.unknown("output_config.format")
				return
			}
			w.schema(`"answer"`, value.Get("schema").Raw, gjson.Result{}, gjson.Result{Type: gjson.True, Raw: "true"})
		default:
			w.unknown("output_config." + name)
		}
	})
}
