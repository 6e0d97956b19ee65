package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/response"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// This file keeps responses of the Responses dialect for later calls (docs/contract/dialects.md#kept-responses).

const (
	// maxKeptText limits the sizes of a kept input and of a kept response, each in bytes before compression.
	maxKeptText = 4 << 20
	keepTimeout = 5 * time.Second
	// maxReferences limits the references in a call. maxFound limits the kept responses that a call reads.
	maxReferences, maxFound = 10_000, 64
	responsePrefix          = "resp_"
	keptIDLength            = len("E4RZ3XU7HLAVKFQYMB26TWNDCO") // from rand.Text
)

type keeping struct {
	// id is part of the ids of the response and its items. It is empty if the response will not be kept.
	id string
	// previous is the id of the response that the caller continues, as JSON, or nil.
	previous []byte
	// input is the compressed text before the response. inputLength is its length in bytes before compression.
	input       []byte
	inputLength int
	memory      reservation
}

// finder reads kept responses for one call. items contains their items by id.
type finder struct {
	*completion
	memory reservation
	items  map[string]string
	found  int
}

// resolve replaces previous_response_id and references to items with the kept items. It does not change invalid
// bodies, which request.Parse rejects.
func (c *completion) resolve(body *[]byte) *apierror.Error {
	if !bytes.Contains(*body, []byte(`"previous_response_id"`)) && !bytes.Contains(*body, []byte(`"item_reference"`)) {
		return nil
	}
	object, ok := jsonedit.ParseObject(*body)
	if !ok {
		return nil
	}
	f := finder{completion: c, memory: c.reservation(), items: map[string]string{}}
	defer f.memory.releaseAll()
	previous, input := object.Get("previous_response_id"), object.Get("input")
	var edits []jsonedit.Edit
	if previous.Type == gjson.String {
		last, err := f.read(strings.TrimPrefix(previous.Str, responsePrefix))
		switch {
		case err != nil:
			return c.internal(err)
		case !last.Exists() || last.Get("response.id").Str != previous.Str:
			return notKept("previous_response_id")
		}
		c.keeping.previous = []byte(previous.Raw)
		before := elements(last.Get("input"))
		if output := elements(last.Get("response.output")); output != "" {
			before += "," + output
		}
		edits = append(edits, jsonedit.Replace(previous, []byte("null")))
		if input.Type == gjson.String {
			edits = append(edits, jsonedit.Replace(input, []byte("["+before+","+userMessage(input.Raw)+"]")))
		} else if input.Get("0").Exists() {
			edits = append(edits, jsonedit.Edit{From: input.Index + 1, To: input.Index + 1, With: []byte(before + ",")})
		}
	}
	var references []gjson.Result
	if input.IsArray() {
		input.ForEach(func(_, item gjson.Result) bool {
			if item.Get("type").Str == "item_reference" {
				references = append(references, item)
			}
			return len(references) <= maxReferences
		})
	}
	if len(references) > maxReferences {
		return apierror.Invalid("input", apierror.ArrayTooLong, "input: expected at most %d references.", maxReferences)
	}
	// Start with the newest reference, because a response is kept with its entire conversation and so contains the
	// items of older references too.
	for _, reference := range slices.Backward(references) {
		item, err := f.item(reference.Get("id").Str)
		if err != nil {
			return c.internal(err)
		}
		edits = append(edits, jsonedit.Replace(reference, []byte(item)))
	}
	edited := jsonedit.New(*body, edits)
	if edited.Len() > MaxBody {
		return tooLarge()
	}
	if edited.Len() > freeBody {
		if apiErr := c.memory.acquire(c.r.Context(), int64(edited.Len())); apiErr != nil {
			return apiErr
		}
	}
	*body = edited.Bytes()
	return nil
}

func notKept(param string) *apierror.Error {
	return apierror.Invalid(param, apierror.ResponseNotFound, "%s: not found. Responses are kept for an hour, and up to %d MiB "+
		"for each account. To need none, send the complete input and \"store\": false.", param, response.AccountBytes>>20)
}

func elements(array gjson.Result) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(array.Raw), "["), "]"))
}

func userMessage(text string) string {
	return `{"type":"message","role":"user","content":` + text + `}`
}

func (g *Gateway) findKept(ctx context.Context, who credential.Principal, id string) ([]byte, error) {
	if len(id) != keptIDLength {
		return nil, nil
	}
	return g.config.Responses.Find(ctx, who.Account(), id, g.config.Date())
}

// read returns a kept response with its input. If the account has no such response, kept.Exists() is false.
func (f *finder) read(id string) (kept gjson.Result, err error) {
	if f.found >= maxFound {
		return kept, nil
	}
	content, err := f.gateway.findKept(f.r.Context(), f.who, id)
	if err != nil || content == nil {
		return kept, err
	}
	if apiErr := f.memory.acquire(f.r.Context(), 2*int64(binary.BigEndian.Uint32(content))); apiErr != nil {
		return kept, apiErr
	}
	f.found++
	if kept, err = unpack(content); err == nil {
		err = f.who.CheckModel(kept.Get("response.model").Str)
	}
	if err != nil {
		return kept, err
	}
	for _, list := range []string{"input", "response.output"} {
		kept.Get(list).ForEach(func(_, item gjson.Result) bool {
			f.items[item.Get("id").Str] = item.Raw
			return true
		})
	}
	return kept, nil
}

// item returns a kept item. If necessary, it first reads the item's response. The response's id is the last part of
// the item's id that has keptIDLength characters. A missing item ends the call, so each call makes at most maxFound+1
// queries.
func (f *finder) item(id string) (string, error) {
	if f.items[id] == "" {
		key := ""
		for part := range strings.SplitSeq(id, "_") {
			if len(part) == keptIDLength {
				key = part
			}
		}
		if _, err := f.read(key); err != nil {
			return "", err
		}
	}
	if item := f.items[id]; item != "" && id != "" {
		return item, nil
	}
	return "", notKept("input")
}

// Kept content starts with the length of a JSON text. The text follows, compressed as two gzip members.
const beforeInput, beforeResponse = `{"input":`, `,"response":`

func unpack(content []byte) (gjson.Result, error) {
	text := make([]byte, binary.BigEndian.Uint32(content))
	reader, err := gzip.NewReader(bytes.NewReader(content[4:]))
	if err == nil {
		_, err = io.ReadFull(reader, text)
	}
	if err != nil {
		return gjson.Result{}, fmt.Errorf("gateway: read a stored response: %w", err)
	}
	return gjson.ParseBytes(text), nil
}

// prepareKeeping compresses the input early, because it is no longer in memory when the call ends. If it is too
// large, the response will not be kept.
func (c *completion) prepareKeeping() *apierror.Error {
	if c.gateway.config.Responses == nil || c.batch != nil || !c.request.Store {
		return nil
	}
	input := c.request.Input()
	if input[0] == '"' {
		input = []byte("[" + userMessage(string(input)) + "]")
	}
	if len(input) > maxKeptText {
		return nil
	}
	text := slices.Concat([]byte(beforeInput), input, []byte(beforeResponse))
	compressed := httpserver.Compress(text)
	if len(compressed) > response.MaxBytes {
		return nil
	}
	c.keeping.memory = c.reservation()
	if len(compressed) > freeBody {
		if apiErr := c.keeping.memory.acquire(c.r.Context(), int64(len(compressed))); apiErr != nil {
			return apiErr
		}
	}
	c.keeping.id, c.keeping.input, c.keeping.inputLength = rand.Text(), compressed, len(text)
	return nil
}

// keepResponse must be called before the caller gets the end of the response, because the caller may refer to it
// immediately. It only logs errors, and drops a response that is too large.
func (c *completion) keepResponse(text []byte) {
	if c.keeping.id == "" || len(text) > maxKeptText {
		return
	}
	length := binary.BigEndian.AppendUint32(nil, uint32(c.keeping.inputLength+len(text)+1))
	content := slices.Concat(length, c.keeping.input, httpserver.Compress(append(text[:len(text):len(text)], '}')))
	if len(content) > response.MaxBytes {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), keepTimeout)
	defer cancel()
	err := c.gateway.config.Responses.Keep(ctx, c.who.Account(), c.keeping.id, content, c.gateway.config.Date())
	if err != nil {
		c.log(slog.LevelWarn, "cannot keep a response", slog.Any("error", err))
	}
}

// appendKept appends the edits that give a native response and its items the ids under which they are kept.
func (c *completion) appendKept(edits []jsonedit.Edit, answer, output gjson.Result) []jsonedit.Edit {
	id := answer.Get("id")
	if c.keeping.id == "" || !id.Exists() {
		return edits
	}
	edits = append(edits, jsonedit.Replace(id, jsonedit.Quote(responsePrefix+c.keeping.id)))
	for name, value := range map[string][]byte{"store": []byte("true"), "previous_response_id": c.keeping.previous} {
		if old := answer.Get(name); old.Exists() && value != nil {
			edits = append(edits, jsonedit.Replace(old, value))
		} else if value != nil {
			edits = append(edits, jsonedit.InsertMembers(answer, `"`+name+`":`+string(value)))
		}
	}
	output.ForEach(func(_, item gjson.Result) bool {
		edits = c.appendItemID(edits, item.Get("id"))
		return len(edits) <= maxEdits
	})
	return edits
}

func (c *completion) appendItemID(edits []jsonedit.Edit, id gjson.Result) []jsonedit.Edit {
	if c.keeping.id == "" || id.Type != gjson.String {
		return edits
	}
	return append(edits, jsonedit.Replace(id, jsonedit.Quote(id.Str+"_"+c.keeping.id)))
}

// keptResponse serves GET and DELETE of a kept response.
func (g *Gateway) keptResponse(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	if r.Method == http.MethodDelete && who.Token != nil {
		return credential.ErrKeyRequired
	}
	key := strings.TrimPrefix(r.PathValue("response_id"), responsePrefix)
	content, err := g.findKept(r.Context(), who, key)
	if err != nil {
		return err
	}
	if content == nil {
		missing := notKept("response_id")
		missing.Status = http.StatusNotFound
		return missing
	}
	kept, err := unpack(content)
	text := kept.Get("response").Raw
	if err == nil {
		err = who.CheckModel(kept.Get("response.model").Str)
	}
	if err == nil && r.Method == http.MethodDelete {
		err = g.config.Responses.Delete(r.Context(), who.Account(), key)
		text = `{"id":"` + responsePrefix + key + `","object":"response","deleted":true}`
	}
	if err == nil {
		writeJSON(w, http.StatusOK, []byte(text))
	}
	return err
}
