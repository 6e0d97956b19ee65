package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
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
	maxKeptText = 1 << 20
	// maxKeptCommas limits the commas of a kept input, because many small values cost processor time but no tokens.
	maxKeptCommas = 32_000
	keepTimeout   = 5 * time.Second
	// maxReferences limits the references in a call. maxFound limits the kept responses that a call reads, and
	// maxFoundText the sizes of all but the last of them together, in bytes.
	maxReferences, maxFound = 10_000, 8
	maxFoundText            = 3 << 20
	responsePrefix          = "resp_"
	keptIDLength            = len("E4RZ3XU7HLAVKFQYMB26TWNDCO") // from rand.Text
)

type keeping struct {
	// id is part of the ids of the response and its items. It is empty if the response will not be kept.
	id string
	// previous is the id of the response that the caller continues, as JSON, or nil.
	previous []byte
	// input is packed.
	input  []byte
	memory reservation
}

// finder reads kept responses for one call. items contains their items by id.
type finder struct {
	*completion
	memory reservation
	items  map[string][]byte
	// found counts the responses, and length the bytes of their texts.
	found  int
	length int64
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
	release, apiErr := c.gateway.bodies.takeTurn(c.r.Context(), c.who.Account())
	if apiErr != nil {
		return apiErr
	}
	defer release()
	f := finder{completion: c, memory: c.reservation(), items: map[string][]byte{}}
	defer f.memory.releaseAll()
	previous, input := object.Get("previous_response_id"), object.Get("input")
	var edits []jsonedit.Edit
	if previous.Type == gjson.String {
		lastInput, last, err := f.read(strings.TrimPrefix(previous.Str, responsePrefix))
		switch {
		case err != nil:
			return c.internal(err)
		case !last.Exists() || last.Get("id").Str != previous.Str:
			return notKept("previous_response_id")
		}
		c.keeping.previous = []byte(previous.Raw)
		before := []byte(elements(lastInput))
		if output := elements(last.Get("output")); output != "" {
			before = append(append(before, ','), output...)
		}
		edits = append(edits, jsonedit.Replace(previous, []byte("null")))
		insert := func(at int, text string) { edits = append(edits, jsonedit.Edit{From: at, To: at, With: []byte(text)}) }
		if start, end := input.Index, input.Index+len(input.Raw); input.Type == gjson.String {
			insert(start, "[")
			edits = append(edits, jsonedit.Edit{From: start, To: start, With: before})
			insert(start, ","+beforeText)
			insert(end, afterText+"]")
		} else if input.Get("0").Exists() {
			edits = append(edits, jsonedit.Edit{From: start + 1, To: start + 1, With: before})
			insert(start+1, ",")
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
	length := jsonedit.New(*body, edits).Len()
	for _, reference := range slices.Backward(references) {
		item, err := f.item(reference.Get("id").Str)
		if err != nil {
			return c.internal(err)
		}
		if length += len(item); length > MaxBody {
			return tooLarge()
		}
		edits = append(edits, jsonedit.Replace(reference, item))
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

// A string as input is the same as a message with this JSON around the string.
const beforeText, afterText = `{"type":"message","role":"user","content":`, `}`

func (g *Gateway) findKept(ctx context.Context, who credential.Principal, id string) ([]byte, error) {
	if len(id) != keptIDLength {
		return nil, nil
	}
	return g.config.Responses.Find(ctx, who.Account(), id, g.config.Date())
}

// read returns a kept response and its input. If the account has no such response, answer.Exists() is false.
func (f *finder) read(id string) (input, answer gjson.Result, err error) {
	if f.found >= maxFound || f.length > maxFoundText {
		return input, answer, nil
	}
	content, err := f.gateway.findKept(f.r.Context(), f.who, id)
	if err != nil || content == nil {
		return input, answer, err
	}
	// Each text is in memory three times: as text, as items, and as the input of the call.
	length := int64(packedLength(content)) + int64(packedLength(afterPacked(content)))
	if apiErr := f.memory.acquire(f.r.Context(), 3*length); apiErr != nil {
		return input, answer, apiErr
	}
	f.found++
	f.length += length
	if answer, err = unpack(afterPacked(content)); err == nil {
		err = f.who.CheckModel(answer.Get("model").Str)
	}
	if err == nil {
		input, err = unpack(content)
	}
	if err != nil {
		return input, answer, err
	}
	for _, list := range []gjson.Result{input, answer.Get("output")} {
		list.ForEach(func(_, item gjson.Result) bool {
			f.items[item.Get("id").Str] = []byte(item.Raw)
			return true
		})
	}
	return input, answer, nil
}

// item returns a kept item. If necessary, it first reads the item's response. The response's id is the last part of
// the item's id that has keptIDLength characters. A missing item ends the call, so each call makes at most maxFound+1
// queries.
func (f *finder) item(id string) ([]byte, error) {
	if f.items[id] == nil {
		key := ""
		for part := range strings.SplitSeq(id, "_") {
			if len(part) == keptIDLength {
				key = part
			}
		}
		if _, _, err := f.read(key); err != nil {
			return nil, err
		}
	}
	if item := f.items[id]; item != nil && id != "" {
		return item, nil
	}
	return nil, notKept("input")
}

// Kept content is the packed input and the packed response. pack puts two lengths in bytes, of the text and of its
// compressed form, before the compressed form.
func pack(text []byte) []byte {
	compressed := httpserver.Compress(text)
	packed := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	return append(binary.BigEndian.AppendUint32(packed, uint32(len(compressed))), compressed...)
}

func packedLength(packed []byte) uint32 { return binary.BigEndian.Uint32(packed) }
func afterPacked(content []byte) []byte { return content[8+binary.BigEndian.Uint32(content[4:]):] }

// unpack parses the first packed JSON text of the content.
func unpack(content []byte) (gjson.Result, error) {
	var text strings.Builder
	text.Grow(int(packedLength(content)))
	reader, err := gzip.NewReader(bytes.NewReader(content[8:]))
	if err == nil {
		_, err = io.CopyN(&text, reader, int64(packedLength(content)))
	}
	if err != nil {
		return gjson.Result{}, fmt.Errorf("gateway: read a stored response: %w", err)
	}
	return gjson.Parse(text.String()), nil
}

// prepareKeeping compresses the input early, because it is no longer in memory when the call ends. If it is too
// large, the response will not be kept.
func (c *completion) prepareKeeping() *apierror.Error {
	if c.gateway.config.Responses == nil || c.batch != nil || !c.request.Store {
		return nil
	}
	input := c.request.Input()
	if input[0] == '"' {
		input = slices.Concat([]byte("["+beforeText), input, []byte(afterText+"]"))
	}
	if len(input) > maxKeptText {
		return nil
	}
	// White space costs a later call processor time, but no tokens.
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil || bytes.Count(compact.Bytes(), []byte(",")) > maxKeptCommas {
		return nil
	}
	packed := pack(compact.Bytes())
	if len(packed) > response.MaxBytes {
		return nil
	}
	c.keeping.memory = c.reservation()
	if len(packed) > freeBody {
		if apiErr := c.keeping.memory.acquire(c.r.Context(), int64(len(packed))); apiErr != nil {
			return apiErr
		}
	}
	c.keeping.id, c.keeping.input = rand.Text(), packed
	return nil
}

// keepResponse must be called before the caller gets the end of the response, because the caller may refer to it
// immediately. It only logs errors, and drops a response that is too large.
func (c *completion) keepResponse(text []byte) {
	if c.keeping.id == "" || len(text) > maxKeptText {
		return
	}
	content := append(c.keeping.input, pack(text)...)
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
	jsonedit.ForEach(output, func(_ string, item gjson.Result) bool {
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

// keptResponse serves GET and DELETE of a kept response, and the list of its input.
func (g *Gateway) keptResponse(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	var text []byte
	err := g.slowReads.Slowly(r.Context(), who.Account(), 4, func() (err error) {
		text, err = g.readKept(r, who)
		return err
	})
	if err == nil {
		writeJSON(w, http.StatusOK, text)
	}
	return err
}

// readKept takes milliseconds for a large response.
func (g *Gateway) readKept(r *http.Request, who credential.Principal) ([]byte, error) {
	if r.Method == http.MethodDelete && who.Token != nil {
		return nil, credential.ErrKeyRequired
	}
	key := strings.TrimPrefix(r.PathValue("response_id"), responsePrefix)
	content, err := g.findKept(r.Context(), who, key)
	if err != nil {
		return nil, err
	}
	if content == nil {
		missing := notKept("response_id")
		missing.Status = http.StatusNotFound
		return nil, missing
	}
	answer, err := unpack(afterPacked(content))
	text := answer.Raw
	if err == nil {
		err = who.CheckModel(answer.Get("model").Str)
	}
	if err == nil && strings.HasSuffix(r.URL.Path, "/input_items") {
		return listInput(r.URL.Query(), content, key)
	}
	if err == nil && r.Method == http.MethodDelete {
		err = g.config.Responses.Delete(r.Context(), who.Account(), key)
		text = `{"id":"` + responsePrefix + key + `","object":"response","deleted":true}`
	}
	return []byte(text), err
}

// listInput lists the items before a response, including earlier responses.
func listInput(query url.Values, content []byte, key string) ([]byte, error) {
	input, err := unpack(content)
	if err != nil {
		return nil, err
	}
	limit, err := pageLimit(query, defaultBatchPage, maxBatchPage)
	if err != nil {
		return nil, err
	}
	items, after := input.Array(), query.Get("after")
	next, step := len(items)-1, -1 // newest first
	switch query.Get("order") {
	case "", "desc":
	case "asc":
		next, step = 0, 1
	default:
		return nil, wrongQuery("order", "\"order\" must be asc or desc.")
	}
	page := newListBody(limit)
	for ; next >= 0 && next < len(items) && !page.HasMore; next += step {
		id := items[next].Get("id").Str
		if id == "" {
			id = fmt.Sprintf("item_%d_%s", next, key)
		}
		if after != "" {
			if after == id {
				after = ""
			}
		} else if err := page.add(id, listedItem(items[next].Raw, id)); err != nil {
			return nil, err
		}
	}
	if after != "" {
		return nil, wrongQuery("after", "\"after\" must be the id of an item of the input.")
	}
	return encode(page)
}

// listedItem adds the members to an item of the input that callers may leave out.
func listedItem(text, id string) json.RawMessage {
	item := gjson.Parse(text)
	edits, added := []jsonedit.Edit{}, []string{}
	set := func(name string, old gjson.Result, value []byte) {
		if old.Exists() {
			edits = append(edits, jsonedit.Replace(old, value))
		} else {
			added = append(added, `"`+name+`":`+string(value))
		}
	}
	set("id", item.Get("id"), jsonedit.Quote(id))
	if kind := item.Get("type"); kind.Str == "" {
		set("type", kind, []byte(`"message"`))
	}
	if content := item.Get("content"); content.Type == gjson.String {
		kind := "input_text"
		if item.Get("role").Str == "assistant" {
			kind = "output_text"
		}
		set("content", content, []byte(`[{"type":"`+kind+`","text":`+content.Raw+`}]`))
	}
	if len(added) > 0 {
		edits = append(edits, jsonedit.InsertMembers(item, added...))
	}
	return jsonedit.Append(nil, []byte(text), edits)
}
