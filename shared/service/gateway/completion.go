package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/request"
	"cutroom/shared/service/gateway/upstream"
)

type completion struct {
	gateway *Gateway
	w       http.ResponseWriter
	r       *http.Request
	who     credential.Principal
	route   catalog.Route
	begun   time.Time
	// line is set for a batch call.
	line *line

	request *request.Request
	// translation converts the call to chat. It is nil if the upstreams serve the route natively.
	translation translation
	// kept is the translation's memory; repeated is the part of it for the request. sequence is the
	// number of a stream's next event, if its events are numbered.
	kept     reservation
	repeated int64
	sequence int64
	// pool belongs to the requested model, serving to the row that serves the call.
	pool, serving *upstream.Pool
	choice        choice
	// memory is the request's memory. tried are the row's upstreams that have failed it.
	memory reservation
	tried  [maxAttempts]upstream.Lease
	tally  tally
	stream *streamWriter
	// upstream is the name of the last called upstream.
	upstream string
	// requestSent means that an upstream received the request, so that tokens may have been used.
	requestSent bool
	// waited is how long the call has waited for upstreams.
	waited time.Duration
	// firstToken is when the first chunk of a stream arrived.
	firstToken time.Time
	settled    bool
	counts     usage.Counts
	// reserved is the call's budget reservation, or nil.
	reserved *budget.Reservation
}

func (g *Gateway) completion(route catalog.Route) func(http.ResponseWriter, *http.Request, credential.Principal) error {
	return func(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
		c := g.newCompletion(w, r, who, route)
		apiErr := c.run()
		c.observe(apiErr)
		if apiErr == nil || c.stream.hasBegun() {
			return nil // the stream has carried its error itself
		}
		return apiErr
	}
}

func (g *Gateway) newCompletion(
	w http.ResponseWriter, r *http.Request, who credential.Principal, route catalog.Route,
) *completion {
	return &completion{
		gateway: g, w: w, r: r, who: who, route: route, begun: g.config.Now(),
		tally: tally{generated: estimate{tokenizer: g.config.Tokenizer}},
	}
}

// run answers the call, or returns its error. An error after a stream has started is already part
// of the stream.
func (c *completion) run() *apierror.Error {
	if err := c.gateway.count(c.r.Context(), c.w.Header(), c.who, c.line != nil); err != nil {
		return c.internal(err)
	}
	read := requestBuffers.Get().(*[]byte)
	defer putRequestBuffer(read)
	c.memory = c.reservation()
	defer c.memory.releaseAll()
	var apiErr *apierror.Error
	if c.line != nil {
		read = &c.line.body
	} else if *read, apiErr = readBody((*read)[:0], c.r, &c.memory); apiErr != nil {
		return apiErr
	}
	snapshot := c.gateway.pools.Current()
	c.kept = c.reservation()
	defer c.kept.releaseAll()
	c.choice = choice{snapshot: snapshot, body: read, held: c.memory.held}
	if apiErr = c.begin(); apiErr != nil {
		return apiErr
	}
	if c.route == catalog.CountTokens && c.translation != nil {
		return c.countTokens()
	}
	defer func() { c.spend(usage.Counts{}) }() // nothing, unless the call was metered
	if apiErr = c.reserve(); apiErr != nil {
		return apiErr
	}
	if c.request.Stream {
		c.stream = newStreamWriter(c.w, c.gateway.config.KeepAlive, c.gateway.config.Trailers)
		defer c.stream.stopKeepAlive()
	}
	apiErr = c.serve()
	switch {
	case callerLeft(c.r):
		apiErr = &apierror.Error{Status: statusCallerGone, Type: apierror.API, Message: "The caller has gone."}
	case apiErr != nil && c.r.Context().Err() != nil:
		apiErr = stopping("The gateway stops, and did not wait for the rest of the answer.")
	}
	c.end(apiErr)
	return apiErr
}

func (c *completion) reservation() reservation {
	return reservation{memory: c.gateway.bodies, account: c.who.Account(), line: c.line}
}

// stopping returns the error for a call that the gateway's stop has ended.
func stopping(message string) *apierror.Error {
	return &apierror.Error{
		Status: http.StatusServiceUnavailable, Type: apierror.API, Code: apierror.ServiceUnavailable,
		RetryAfter: time.Second, Message: message,
	}
}

// internal returns the error for the caller, and logs it if the gateway is at fault.
func (c *completion) internal(err error) *apierror.Error {
	apiErr := apierror.From(err)
	if apiErr.Status >= http.StatusInternalServerError {
		c.log(slog.LevelError, "a request failed", slog.Any("error", err))
	}
	return apiErr
}

func (c *completion) log(level slog.Level, message string, attributes ...slog.Attr) {
	ctx := c.r.Context()
	about := []slog.Attr{
		slog.String("request_id", httpserver.RequestID(ctx)), slog.String("account", c.who.Account()),
	}
	c.gateway.config.Logger.LogAttrs(ctx, level, message, append(about, attributes...)...)
}

// promptTokens counts the prompt's tokens if no upstream has reported them.
func (c *completion) promptTokens() int64 {
	text := estimate{tokenizer: c.gateway.config.Tokenizer}
	besides := c.request.PromptTexts(text.add)
	return text.total() + int64(besides)
}

// settle meters the call's use. Call it once, before the answer ends.
func (c *completion) settle() {
	if c.settled || c.route == catalog.CountTokens {
		return
	}
	c.settled = true
	c.stream.stopKeepAlive()
	c.counts = c.tally.counts(c.promptTokens)
	if price := c.request.Model.Price; price != nil {
		c.counts.Cost = c.price(*price, catalog.Tokens{
			Prompt: c.counts.PromptTokens, Cached: c.counts.CachedTokens,
			Completion: c.counts.CompletionTokens, Reasoning: c.counts.ReasoningTokens,
		})
	}
	if c.line != nil {
		c.counts.BatchRequests, c.counts.BatchCost = c.counts.Requests, c.counts.Cost
	}
	if c.tally.implausible {
		c.log(slog.LevelWarn, "an upstream reported an impossible usage", slog.String("model", c.request.Model.ID),
			slog.String("upstream", c.upstream), slog.Bool("estimated", c.counts.Estimated > 0))
	}
	ctx := context.WithoutCancel(c.r.Context())
	c.gateway.charge(ctx, c.w.Header(), c.who, billed(c.counts))
	record := usage.Record{
		Account: c.who.Account(), Key: c.who.Key.ID, Model: c.request.Model.ID,
		Day: usage.DayOf(c.gateway.config.Date()), Counts: c.counts,
	}
	if c.line != nil {
		c.line.used = append(c.line.used, record)
	} else if err := c.gateway.config.Meter.Record(ctx, record); err != nil {
		c.log(slog.LevelError, "a completion was not metered", slog.Any("error", err))
	}
	c.spend(c.counts)
}

// price returns the cost of the call in billionths of the currency.
func (c *completion) price(price catalog.TokenPrice, used catalog.Tokens) int64 {
	if c.line != nil {
		return price.OfBatch(used)
	}
	return price.Of(used)
}

// end meters a call that failed: the generated tokens for a caller that left or whose stream broke,
// and the usage in an answer that could not be passed on. An answer that is not streamed is seen
// only at its end, so a caller that leaves earlier is billed for the prompt. A batch call that is
// repeated is billed then.
func (c *completion) end(apiErr *apierror.Error) {
	gone := apiErr != nil && apiErr.Status == statusCallerGone
	if gone && c.line != nil && !givenUp(c.r.Context()) {
		return
	}
	if c.requestSent && gone || c.tally.known || c.stream.hasBegun() && !c.firstToken.IsZero() {
		c.settle()
	}
	if c.settled && !c.stream.hasBegun() && apiErr != nil {
		c.setUsed(c.w.Header())
	}
	if apiErr != nil && !gone && c.stream.hasBegun() {
		c.stream.out = c.appendFailure(c.stream.out, apiErr)
		_ = c.finishStream() // a caller that has gone needs no end
	}
}

func (c *completion) observe(apiErr *apierror.Error) {
	o := Completion{
		Route: string(c.route), Status: http.StatusOK,
		Duration: c.gateway.config.Now().Sub(c.begun), Counts: c.counts, Waited: c.waited,
	}
	if c.request != nil {
		o.Model, o.Stream = c.request.Model.ID, c.request.Stream
	}
	if !c.firstToken.IsZero() {
		o.FirstToken = c.firstToken.Sub(c.begun)
	}
	if apiErr != nil {
		o.Code = apiErr.Code
		if !c.stream.hasBegun() || apiErr.Status == statusCallerGone {
			o.Status = apiErr.Status
		}
	}
	c.gateway.config.Observer.Completed(o)
}

// costHeader has the cost of a call.
const costHeader = "X-Cost"

// setUsed sets the headers with the billed total and its cost (docs/contract/gateway.md#headers).
func (c *completion) setUsed(header http.Header) {
	if n := billed(c.counts); n > 0 {
		header.Set("X-Tokens-Used", strconv.FormatInt(n, 10))
	}
	if cost := c.cost(); cost != "" {
		header.Set(costHeader, cost)
	}
}

// cost returns the cost of the call, such as "0.00012 USD", or "" if unknown.
func (c *completion) cost() string {
	if !c.settled || c.request.Model.Price == nil {
		return ""
	}
	return usage.Amount(c.counts.Cost) + " " + c.choice.snapshot.Catalog.Currency
}

// finishStream sends the end of the stream, which is in its out.
func (c *completion) finishStream() error { return c.stream.finish(c.counts, c.cost()) }
