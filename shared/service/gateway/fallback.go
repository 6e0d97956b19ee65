package gateway

import (
	"net/http"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/request"
	"cutroom/shared/service/gateway/upstream"
)

// servedHeader names the row that serves the call (docs/contract/gateway.md#fallbacks).
const servedHeader = "X-Served-Model"

type choice struct {
	snapshot *upstream.Snapshot
	// body is the caller's body, from which each row's request is made. held is the body's size in memory.
	body  *[]byte
	held  int64
	rest  []*catalog.Inference
	shown bool
}

// caller returns the models and permissions for checking a request. row is the fallback row in use, or nil.
func (c *completion) caller(row *catalog.Inference) request.Caller {
	return request.Caller{
		Row: row, Find: c.choice.snapshot.Find, Refuser: c,
		MaxTokens: c.who.Tier.MaxTokens, ContentType: httpserver.Field(c.r.Header, "Content-Type"),
	}
}

// Refuses returns why the caller may not use a model, or "".
func (c *completion) Refuses(slug string) string {
	switch {
	case !c.who.Key.Limits.AllowsModel(slug):
		return "The API key may not use this model."
	case !c.who.Scope().AllowsModel(slug):
		return "The token may not use this model."
	}
	return ""
}

// begin checks the call for the named model. If the prompt is too long for it, begin switches to
// the first fallback row that accepts the prompt.
func (c *completion) begin() *apierror.Error {
	var apiErr *apierror.Error
	c.request, apiErr = request.Parse(c.route, *c.choice.body, c.caller(nil))
	if c.request == nil {
		return apiErr
	}
	c.pool = c.choice.snapshot.Pool(c.request.Model.ID)
	c.choice.rest = c.otherRows()
	c.choice.shown = len(c.choice.rest) > 0
	if problem := c.prepareKeeping(); problem != nil {
		return problem
	}
	if apiErr == nil {
		apiErr = c.use(c.request.Model)
	}
	if apiErr != nil && apiErr.Code == apierror.ContextExceeded && c.fallBack() {
		return nil
	}
	return apiErr
}

// otherRows returns the fallback rows that the caller may use: the rows named by the caller, or else the model's
// configured rows.
func (c *completion) otherRows() []*catalog.Inference {
	if c.request.Named {
		return c.request.Models
	}
	var rows []*catalog.Inference
	for _, id := range c.request.Model.Fallbacks {
		row, ok := c.choice.snapshot.Catalog.Inference(id)
		if ok && row.Serves(c.route) && c.who.AllowsModel(id) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (c *completion) use(row *catalog.Inference) *apierror.Error {
	c.serving, c.translation = c.choice.snapshot.Pool(row.ID), nil
	c.kept.releaseAll()
	c.memory.release(c.memory.held - c.choice.held)
	if !row.Speaks(c.route) {
		if apiErr := c.translate(c.choice.body, c.caller(row), &c.memory); apiErr != nil {
			return apiErr
		}
	}
	c.counter.maxTokens = int64(c.request.Completions) * int64(row.ContextLength+row.MaxOutputLength)
	c.counter.maxGenerated = int64(c.request.Completions) * int64(c.request.MostTokens)
	return nil
}

// fallBack switches to the next row that accepts the request. It returns false if no row does.
func (c *completion) fallBack() bool {
	before, translation, serving := c.request, c.translation, c.serving
	for len(c.choice.rest) > 0 {
		row := c.choice.rest[0]
		c.choice.rest = c.choice.rest[1:]
		var apiErr *apierror.Error
		if c.request, apiErr = request.Parse(c.route, *c.choice.body, c.caller(row)); apiErr == nil {
			apiErr = c.use(row)
		}
		if apiErr == nil {
			return true
		}
	}
	c.request, c.translation, c.serving = before, translation, serving
	return false
}

func (c *completion) showRow() bool {
	if !c.choice.shown {
		return !c.stream.hasStarted()
	}
	if c.stream == nil {
		c.w.Header().Set(servedHeader, c.serving.Model.ID)
		return true
	}
	return c.stream.setHeader(servedHeader, c.serving.Model.ID)
}

func (c *completion) hideRow() {
	if c.choice.shown && !c.stream.hasStarted() {
		c.stream.stopKeepAlive()
		c.w.Header().Del(servedHeader)
	}
}

// tooLong lists phrases that model servers use when a prompt is too long.
var tooLong = []string{
	"context length", "context_length", "context window", "context size", "maximum context", "max_model_len",
	"maximum model length", "prompt is too long", "input is too long", "too many tokens", "exceeds the available context",
}

func isTooLong(e *apierror.Error) bool {
	if e.Code == apierror.ContextExceeded {
		return true
	}
	if e.Status != http.StatusBadRequest && e.Status != http.StatusRequestEntityTooLarge &&
		e.Status != http.StatusUnprocessableEntity {
		return false
	}
	message := strings.ToLower(e.Message)
	for _, words := range tooLong {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
