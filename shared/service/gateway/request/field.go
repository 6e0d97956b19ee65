package request

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
)

// field is a top-level field that the gateway reads. Errors are reported in field order.
type field uint8

const (
	modelField field = iota
	modelsField
	messagesField
	promptField
	streamField
	temperatureField
	topPField
	maxTokensField
	maxCompletionTokensField
	// rowTokensField is the row's own name for the token limit. Callers must not be able to bypass the limit with it.
	rowTokensField
	toolsField
	toolChoiceField
	responseFormatField
	stopField
	frequencyPenaltyField
	presencePenaltyField
	ignoreEOSField
	reasoningEffortField
	templateKwargsField
	streamOptionsField
	inputField
	queryField
	documentsField
	text1Field
	text2Field
	maxOutputTokensField
	storeField
	previousResponseField
	conversationField
	backgroundField
	// nField and bestOfField are forwarded if they are within the row's limits.
	nField
	bestOfField
	fieldCount
	otherField
)

var fieldNames = [fieldCount]string{
	"model", "models", "messages", "prompt", "stream", "temperature", "top_p", "max_tokens", "max_completion_tokens", "",
	"tools", "tool_choice", "response_format", "stop", "frequency_penalty", "presence_penalty", "ignore_eos",
	"reasoning_effort", "chat_template_kwargs", "stream_options",
	"input", "query", "documents", "text_1", "text_2", "max_output_tokens", "store", "previous_response_id",
	"conversation", "background", "n", "best_of",
}

func (f field) String() string { return fieldNames[f] }

func fieldOf(route catalog.Route, name []byte) field {
	if route != catalog.Chat && route != catalog.Completions {
		return dialectField(route, name)
	}
	switch string(name) {
	case "model":
		return modelField
	case "models":
		return modelsField
	case "stream":
		return streamField
	case "temperature":
		return temperatureField
	case "top_p":
		return topPField
	case "max_tokens":
		return maxTokensField
	case "max_completion_tokens":
		return maxCompletionTokensField
	case "stop":
		return stopField
	case "frequency_penalty":
		return frequencyPenaltyField
	case "presence_penalty":
		return presencePenaltyField
	case "stream_options":
		return streamOptionsField
	case "n":
		return nField
	case "best_of":
		return bestOfField
	}
	if route == catalog.Completions {
		switch string(name) {
		case "prompt":
			return promptField
		case "ignore_eos":
			return ignoreEOSField
		}
		return otherField
	}
	switch string(name) {
	case "messages":
		return messagesField
	case "tools":
		return toolsField
	case "tool_choice":
		return toolChoiceField
	case "response_format":
		return responseFormatField
	case "reasoning_effort":
		return reasoningEffortField
	case "chat_template_kwargs":
		return templateKwargsField
	}
	return otherField
}

var dialectFields = map[catalog.Route][]field{
	catalog.Responses: {
		modelField, inputField, streamField, temperatureField, topPField, maxOutputTokensField, toolsField,
		storeField, previousResponseField, conversationField, backgroundField,
	},
	catalog.Messages:    {modelField, messagesField, streamField, temperatureField, topPField, maxTokensField, toolsField},
	catalog.CountTokens: {modelField, messagesField, toolsField},
	catalog.Embeddings:  {modelField, inputField},
	catalog.Rerank:      {modelField, queryField, documentsField},
	catalog.Score:       {modelField, text1Field, text2Field},
	catalog.Speech:      {modelField, inputField},
}

func dialectField(route catalog.Route, name []byte) field {
	for _, f := range dialectFields[route] {
		if f.String() == string(name) {
			return f
		}
	}
	return otherField
}

// required returns the required fields except the model. The first one is the prompt.
func required(route catalog.Route) []field {
	switch route {
	case catalog.Chat, catalog.CountTokens:
		return []field{messagesField}
	case catalog.Messages:
		return []field{messagesField, maxTokensField}
	case catalog.Responses, catalog.Embeddings, catalog.Speech:
		return []field{inputField}
	case catalog.Rerank:
		return []field{documentsField, queryField}
	case catalog.Score:
		return []field{text2Field, text1Field}
	}
	return []field{promptField}
}

// misplaced reports whether a name is another route's token limit. Model servers that convert between routes read
// such a limit on this route too, so callers could use it to bypass this route's limit.
func misplaced(route catalog.Route, name []byte) bool {
	if route == catalog.Chat || route == catalog.Completions {
		return false
	}
	switch strings.ToLower(string(name)) {
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "n_predict", "prompt":
		return true
	}
	return false
}

// isUsual reports whether clients commonly send a field that is not in the contract: fields of
// OpenAI's two routes, of the route's dialect, and of common samplers. These fields affect only the
// caller's completion. Any other field must be permitted by the model's row.
func isUsual(route catalog.Route, name []byte) bool {
	switch route {
	case catalog.Responses:
		switch string(name) {
		case "client_metadata", "include", "instructions", "max_tool_calls", "text", "tool_choice", "truncation", "stream_options":
			return true
		}
	case catalog.Messages, catalog.CountTokens:
		switch string(name) {
		case "context_management", "output_config", "stop_sequences", "system", "tool_choice":
			return true
		}
	case catalog.Embeddings, catalog.Rerank, catalog.Score:
		switch string(name) {
		case "dimensions", "encoding_format", "input_type", "max_tokens_per_doc", "return_documents", "top_n",
			"truncate_prompt_tokens", "user":
			return true
		}
		return false
	case catalog.Speech:
		return slices.Contains([]string{"voice", "instructions", "response_format", "speed", "stream_format"}, string(name))
	case catalog.Transcriptions:
		switch string(name) {
		case "model", "language", "prompt", "response_format", "temperature", "stream", "chunking_strategy", "include[]",
			"timestamp_granularities[]", "known_speaker_names[]", "known_speaker_references[]":
			return true
		}
		return false
	}
	switch string(name) {
	case "audio", "echo", "function_call", "functions", "logit_bias", "logprobs", "metadata", "modalities", "moderation",
		"parallel_tool_calls", "prediction", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
		"safety_identifier", "seed", "service_tier", "store", "suffix", "top_logprobs", "user", "verbosity",
		"web_search_options":
		return true
	case "top_k", "top_a", "min_p", "typical_p", "repetition_penalty", "repeat_penalty", "length_penalty",
		"min_tokens", "ignore_eos", "stop_token_ids", "include_stop_str_in_output", "skip_special_tokens",
		"spaces_between_special_tokens", "allowed_token_ids", "bad_words":
		return true
	case "reasoning", "include_reasoning", "thinking", "enable_thinking", "thinking_budget":
		return true
	}
	return false
}

// looksLike returns the known field for which a case-insensitive model server would mistake a name. Otherwise,
// MAX_TOKENS could bypass the limit on max_tokens.
func looksLike(route catalog.Route, name []byte) (field, bool) {
	plain := true
	for _, c := range name {
		plain = plain && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_')
	}
	if plain || len(name) > maxParam {
		return 0, false
	}
	for f, known := range fieldNames {
		if strings.EqualFold(known, string(name)) && fieldOf(route, []byte(known)) != otherField {
			return field(f), true
		}
	}
	return 0, false
}

// sentField is a field in the body. If the field is missing or null, its kind is 0.
type sentField struct {
	kind jsontext.Kind
	// sent means that the field is in the body, even if it is null.
	sent       bool
	key, value span
	// ordinal is the number of members before the field. previous is the end of the member before
	// it. next is the start of the member after it, or -1.
	ordinal, previous, next int
}

func (m *sentField) present() bool { return m.kind != 0 }

// object is an object to which a rule may add members.
type object struct {
	// open is the offset after the opening brace. last is the end of the last member, if any.
	open, last int
	empty      bool
}
