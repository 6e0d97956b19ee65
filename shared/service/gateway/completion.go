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
	started time.Time
	batch   *batchCall

	request *request.Request
	// translation is nil if the upstreams serve the route natively.
	translation translation
	keeping     keeping
	// kept is the memory reserved for the translation. repeated is how many bytes of this memory are for fields
	// repeated from the request. sequence is the number of the stream's next event if its events are numbered.
	kept     reservation
	repeated int64
	sequence int64
	// pool belongs to the requested model; serving belongs to the row that serves the call.
	pool, serving *upstream.Pool
	choice        choice
	// tried lists the upstreams of the current row that have failed this call.
	memory  reservation
	tried   [maxAttempts]upstream.Slot
	counter tokenCounter
	stream  *streamWriter
	// held is the slot of the current attempt, and span its span.
	held upstream.Slot
	span upstreamSpan
	// upstream is the name of the upstream that was called last.
	upstream string
	// requestSent means that an upstream has received the request and may have used tokens.
	requestSent bool
	// lent means that an upstream may still read the request after its call has ended.
	lent       bool
	waited     time.Duration
	firstToken time.Time
	settled    bool
	// heard is the length of the audio in seconds that the upstream reported, or 0.
	heard    int64
	counts   usage.Counts
	reserved *budget.Reservation
	// tokens and paid are the values of header fields.
	tokens, paid [1]string
}

func (g *Gateway) completion(route catalog.Route) func(http.ResponseWriter, *http.Request, credential.Principal) error {
	return func(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
		c := g.newCompletion(w, r, who, route)
		apiErr := c.run()
		c.observe(apiErr)
		if apiErr == nil || c.stream.hasStarted() {
			if apiErr != nil && c.stream.kind != nil {
				panic(http.ErrAbortHandler) // audio cannot contain an error, so the response must look incomplete
			}
			return nil // the stream already contains the error
		}
		return apiErr
	}
}

func (g *Gateway) newCompletion(
	w http.ResponseWriter, r *http.Request, who credential.Principal, route catalog.Route,
) *completion {
	return &completion{
		gateway: g, w: w, r: r, who: who, route: route, started: g.config.Now(),
		counter: tokenCounter{generated: estimate{tokenizer: g.config.Tokenizer}},
	}
}

// run serves the call. If the stream has already started, the returned error has been sent in it.
func (c *completion) run() *apierror.Error {
	if err := c.gateway.count(c.r.Context(), c.w.Header(), c.who, c.batch != nil); err != nil {
		return c.internal(err)
	}
	buffer := requestBuffers.Get().(*[]byte)
	c.memory = c.reservation()
	defer c.free(buffer)
	read := buffer
	var apiErr *apierror.Error
	if c.batch != nil {
		read = &c.batch.body
	} else if *read, apiErr = readBody((*read)[:0], c.r, &c.memory); apiErr != nil {
		return apiErr
	}
	if c.route == catalog.Responses && c.gateway.config.Responses != nil && c.batch == nil {
		if apiErr = c.resolve(read); apiErr != nil {
			return apiErr
		}
	}
	snapshot := c.gateway.pools.Current()
	c.kept = c.reservation()
	c.choice = choice{snapshot: snapshot, body: read, held: c.memory.held}
	if apiErr = c.begin(); apiErr != nil {
		return apiErr
	}
	if c.route == catalog.CountTokens && c.translation != nil {
		return c.countTokens()
	}
	if apiErr = c.reserve(); apiErr != nil {
		return apiErr
	}
	if c.request.Stream || c.route.IsAudio() {
		c.stream = newStreamWriter(c.w, c.gateway.config.KeepAlive, c.gateway.config.Trailers)
		if c.route.IsAudio() {
			c.stream.every = 0 // whether the response is a stream of events is known only when it arrives
		}
	}
	apiErr = c.serve()
	switch {
	case callerLeft(c.r):
		apiErr = &apierror.Error{Status: statusCallerGone, Type: apierror.API, Message: "The caller disconnected."}
	case apiErr != nil && c.r.Context().Err() != nil:
		apiErr = stopping("The gateway is shutting down and did not wait for the rest of the response.")
	}
	c.end(apiErr)
	return apiErr
}

// free releases everything that a call holds.
func (c *completion) free(buffer *[]byte) {
	c.stream.stopKeepAlive()
	if c.held != (upstream.Slot{}) { // after a panic
		c.endSpan(c.span, Failed)
		c.held.Release(upstream.Result{Verdict: upstream.Unknown}, c.gateway.config.Now())
		c.held = upstream.Slot{}
	}
	c.spend(usage.Counts{}) // no effect if the call has been metered
	c.kept.releaseAll()
	c.keeping.memory.releaseAll()
	c.memory.releaseAll()
	if !c.lent {
		putRequestBuffer(buffer)
	}
}

func (c *completion) reservation() reservation {
	return reservation{memory: c.gateway.bodies, account: c.who.Account(), batch: c.batch}
}

func stopping(message string) *apierror.Error {
	return &apierror.Error{
		Status: http.StatusServiceUnavailable, Type: apierror.API, Code: apierror.ServiceUnavailable,
		RetryAfter: time.Second, Message: message,
	}
}

func (c *completion) internal(err error) *apierror.Error {
	apiErr := apierror.From(err)
	if apiErr.Status >= http.StatusInternalServerError {
		c.log(slog.LevelError, "request failed", slog.Any("error", err))
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

// promptTokens estimates the prompt's tokens if the upstream did not report them.
func (c *completion) promptTokens() int64 {
	text := estimate{tokenizer: c.gateway.config.Tokenizer}
	besides := c.request.PromptTexts(text.add)
	return text.total() + int64(besides)
}

// sampledText limits how many bytes promptSample tokenizes, because the caller is waiting.
const sampledText = 16 << 10

// promptSample estimates the prompt's tokens like promptTokens, but from the first sampledText bytes.
func (c *completion) promptSample() int64 {
	var all, counted, tokens int
	besides := c.request.PromptTexts(func(text []byte) {
		all += len(text)
		sample := text[:min(len(text), sampledText-counted)]
		tokens += c.gateway.config.Tokenizer.Count(string(sample))
		counted += len(sample)
	})
	return int64(besides) + int64(float64(tokens)*float64(all)/float64(max(counted, 1)))
}

// settle meters the call's usage. It must be called exactly once, before the response ends.
func (c *completion) settle() {
	if c.settled || c.route == catalog.CountTokens {
		return
	}
	c.settled = true
	c.stream.stopKeepAlive()
	if c.route.IsAudio() {
		c.counts = c.audioCounts(usualAudio)
	} else {
		c.counts = c.counter.counts(c.promptTokens)
	}
	if price := c.request.Model.Price; price != nil {
		c.counts.Cost = c.price(*price, catalog.Tokens{
			Prompt: c.counts.PromptTokens + c.counts.AudioSeconds + c.counts.Characters, Cached: c.counts.CachedTokens,
			Completion: c.counts.CompletionTokens, Reasoning: c.counts.ReasoningTokens,
		})
	}
	if c.batch != nil {
		c.counts.BatchRequests, c.counts.BatchCost = c.counts.Requests, c.counts.Cost
	}
	if c.counter.implausible {
		c.log(slog.LevelWarn, "upstream reported impossible token counts", slog.String("model", c.request.Model.ID),
			slog.String("upstream", c.upstream), slog.Bool("estimated", c.counts.Estimated > 0))
	}
	ctx := context.WithoutCancel(c.r.Context())
	c.gateway.charge(ctx, c.w.Header(), c.who, billed(c.counts))
	record := usage.Record{
		Account: c.who.Account(), Key: usage.KeyOf(c.who.Key.ID, c.who.Scope().Label), Model: c.request.Model.ID,
		Day: usage.DayOf(c.gateway.config.Date()), Counts: c.counts,
	}
	if c.batch != nil {
		c.batch.used = append(c.batch.used, record)
	} else if err := c.gateway.config.Meter.Record(ctx, record); err != nil {
		c.log(slog.LevelError, "cannot meter a completion", slog.Any("error", err))
	}
	c.spend(c.counts)
}

func (c *completion) price(price catalog.TokenPrice, used catalog.Tokens) int64 {
	if c.batch != nil {
		return price.OfBatch(used)
	}
	return price.Of(used)
}

// end meters a failed call. It bills the generated tokens if the caller disconnected or the stream broke. A caller
// that disconnects from a non-streamed call pays for the prompt. A batch call that will be retried is not billed yet.
func (c *completion) end(apiErr *apierror.Error) {
	gone := apiErr != nil && apiErr.Status == statusCallerGone
	if gone && c.batch != nil && !givenUp(c.r.Context()) {
		return
	}
	if c.requestSent && gone || c.counter.known || c.stream.hasStarted() && !c.firstToken.IsZero() {
		c.settle()
	}
	if c.settled && !c.stream.hasStarted() && apiErr != nil {
		c.setUsed(c.w.Header())
	}
	if apiErr != nil && !gone && c.stream.hasStarted() && c.stream.kind == nil {
		c.stream.out = c.appendFailure(c.stream.out, apiErr)
		_ = c.finishStream(false) // this fails only if the caller has disconnected
	}
}

func (c *completion) observe(apiErr *apierror.Error) {
	o := Completion{
		Route: string(c.route), Status: http.StatusOK,
		Duration: c.gateway.config.Now().Sub(c.started), Counts: c.counts, Waited: c.waited,
	}
	if c.request != nil {
		o.Model, o.Stream = c.request.Model.ID, c.request.Stream
	}
	if !c.firstToken.IsZero() {
		o.FirstToken = c.firstToken.Sub(c.started)
	}
	if apiErr != nil {
		o.Code = apiErr.Code
		if !c.stream.hasStarted() || apiErr.Status == statusCallerGone {
			o.Status = apiErr.Status
		}
	}
	c.gateway.config.Observer.Completed(o)
}

const costHeader = "X-Cost"

// setUsed sets the token and cost headers (docs/contract/gateway.md#headers).
func (c *completion) setUsed(header http.Header) {
	if n := billed(c.counts); n > 0 {
		c.tokens[0] = strconv.FormatInt(n, 10)
		header["X-Tokens-Used"] = c.tokens[:]
	}
	if cost := c.cost(); cost != "" {
		c.paid[0] = cost
		header[costHeader] = c.paid[:]
	}
}

// cost formats the call's cost, such as "0.00012 USD". It returns "" if the cost is unknown.
func (c *completion) cost() string {
	if !c.settled || c.request.Model.Price == nil {
		return ""
	}
	return usage.Amount(c.counts.Cost) + " " + c.choice.snapshot.Catalog.Currency
}

// finishStream ends the stream. Without flush, the end may be sent only when the call returns.
func (c *completion) finishStream(flush bool) error {
	return c.stream.finish(flush, c.counts, c.cost())
}
