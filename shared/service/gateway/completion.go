package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
)

// completion is one call of a completions route.
type completion struct {
	*Gateway
	w     http.ResponseWriter
	r     *http.Request
	who   credential.Principal
	route Route
	begun time.Time

	request *Request
	pool    *pool
	tally   tally
	stream  *streamWriter
	// upstream is the name of the one that was asked last.
	upstream string
	// asked reports that an upstream has been sent the request, so that tokens
	// may have been used.
	asked bool
	// firstToken is when the first chunk of a stream was there.
	firstToken time.Time
	settled    bool
	counts     usage.Counts
}

// completion answers a completions route.
func (g *Gateway) completion(route Route) func(http.ResponseWriter, *http.Request, credential.Principal) error {
	return func(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
		c := &completion{Gateway: g, w: w, r: r, who: who, route: route, begun: g.Now(), tally: tally{generated: estimate{tokenizer: g.Tokenizer}}}
		told := c.run()
		c.observe(told)
		if told != nil && c.stream.hasBegun() {
			return nil // the stream has told it
		}
		if told != nil {
			return told
		}
		return nil
	}
}

// run answers, or gives the error to answer with. An error after a stream has
// begun was told in the stream.
func (c *completion) run() *Error {
	if err := c.count(c.r.Context(), c.w.Header(), c.who); err != nil {
		return c.internal(err)
	}
	read := requestBuffers.Get().(*[]byte)
	defer keepRequest(read)
	memory := share{budget: c.bodies, account: c.who.Account()}
	defer memory.free()
	body, told := readBody((*read)[:0], c.r, &memory)
	*read = body
	if told != nil {
		return told
	}
	standing := c.pools.current()
	c.request, told = Parse(c.route, body, Caller{
		Find:      standing.catalog.Inference,
		Allows:    func(slug string) bool { return c.who.Scope().AllowsModel(slug) },
		MaxTokens: c.who.Tier.MaxTokens,
	})
	if told != nil {
		return told
	}
	c.pool = standing.pools[c.request.Model.ID]
	c.tally.most = int64(c.request.Completions) * int64(c.request.Model.ContextLength+c.request.Model.MaxOutputLength)
	if c.request.Stream {
		c.stream = newStreamWriter(c.w, c.KeepAlive, c.Trailers)
		defer c.stream.hush()
	}
	told = c.serve()
	switch {
	case hasLeft(c.r):
		told = &Error{Status: callerGone, Type: API, Message: "The caller has gone."}
	case told != nil && c.r.Context().Err() != nil:
		told = &Error{
			Status: http.StatusServiceUnavailable, Type: API, Code: ServiceUnavailable, RetryAfter: time.Second,
			Message: "The gateway stops, and did not wait for the rest of the answer.",
		}
	}
	c.end(told)
	return told
}

// internal logs an error of the gateway's own, and gives what is told of any.
func (c *completion) internal(err error) *Error {
	told := ErrorOf(err)
	if told.Status >= http.StatusInternalServerError {
		c.log(slog.LevelError, "a request failed", slog.Any("error", err))
	}
	return told
}

func (c *completion) log(level slog.Level, message string, attributes ...slog.Attr) {
	c.Logger.LogAttrs(c.r.Context(), level, message,
		append([]slog.Attr{slog.String("request_id", httpserver.RequestID(c.r.Context())), slog.String("account", c.who.Account())}, attributes...)...)
}

// promptTokens counts the prompt, where no upstream has said how long it is.
func (c *completion) promptTokens() int64 {
	text := estimate{tokenizer: c.Tokenizer}
	besides := c.request.PromptTexts(text.add)
	return text.total() + int64(besides)
}

// settle meters what the call has used, once. It is called before the answer
// ends.
func (c *completion) settle() {
	if c.settled {
		return
	}
	c.settled = true
	c.stream.hush()
	c.counts = c.tally.counts(c.promptTokens)
	if c.tally.doubted {
		c.log(slog.LevelWarn, "an upstream told a usage that cannot be", slog.String("model", c.request.Model.ID),
			slog.String("upstream", c.upstream), slog.Bool("estimated", c.counts.Estimated > 0))
	}
	ctx := context.WithoutCancel(c.r.Context())
	c.charge(ctx, c.w.Header(), c.who, billed(c.counts))
	err := c.Meter.Record(ctx, usage.Record{
		Account: c.who.Account(), Key: c.who.Key.ID, Model: c.request.Model.ID, Day: usage.DayOf(c.Date()), Counts: c.counts,
	})
	if err != nil {
		c.log(slog.LevelError, "a completion was not metered", slog.Any("error", err))
	}
}

// end meters what a call has used that did not end well: all that was generated
// for a caller that has left or whose stream broke, and what an upstream said
// of an answer that could not be passed on. Of an answer that is no stream
// nothing was seen before its end, so who leaves early is billed for the prompt.
func (c *completion) end(told *Error) {
	gone := told != nil && told.Status == callerGone
	if c.asked && gone || c.tally.known || c.stream.hasBegun() && !c.firstToken.IsZero() {
		c.settle()
	}
	if c.settled && !c.stream.hasBegun() && told != nil {
		setTokensUsed(c.w.Header(), c.counts)
	}
	if told != nil && !gone && c.stream.hasBegun() {
		c.stream.fail(told, c.counts)
	}
}

func (c *completion) observe(told *Error) {
	o := Completion{Route: string(c.route), Status: http.StatusOK, Duration: c.Now().Sub(c.begun), Counts: c.counts}
	if c.request != nil {
		o.Model, o.Stream = c.request.Model.ID, c.request.Stream
	}
	if !c.firstToken.IsZero() {
		o.FirstToken = c.firstToken.Sub(c.begun)
	}
	if told != nil {
		o.Code = told.Code
		if !c.stream.hasBegun() || told.Status == callerGone {
			o.Status = told.Status
		}
	}
	c.Observer.Completed(o)
}

// setTokensUsed tells the billed total (docs/contract/gateway.md#headers).
func setTokensUsed(header http.Header, counts usage.Counts) {
	if n := billed(counts); n > 0 {
		header.Set("X-Tokens-Used", strconv.FormatInt(n, 10))
	}
}

// routePath is where a route lies below a base URL.
func routePath(route Route) string {
	if route == catalog.Chat {
		return "/chat/completions"
	}
	return "/completions"
}
