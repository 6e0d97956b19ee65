package gateway

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
)

// count counts a completion as one request against the caller's tier and returns the number of
// remaining tokens, which are charged later (see charge). It sets the rate limit headers that
// client libraries read. Batch calls leave half of each rate to live calls.
//
// Errors: fault.Limited with RetryAfter.
func (g *Gateway) count(
	ctx context.Context, header http.Header, who credential.Principal, ofBatch bool,
) (tokens int64, err error) {
	if g.config.Limiter == nil {
		return math.MaxInt64, nil
	}
	if n := who.Tier.InferenceRequestsPerMinute; n > 0 {
		name := "inference-requests/" + who.Account()
		rate := ratelimit.PerMinute(n)
		if err := g.leaveHalf(ctx, name, rate, ofBatch); err != nil {
			return 0, err
		}
		state, err := g.config.Limiter.Take(ctx, name, 1, rate)
		if err != nil {
			return 0, err
		}
		setRateHeaders(header, "Requests", n, state)
		if !state.Allowed {
			return 0, limitExceeded(state, "The account exceeded its limit of %d requests per minute.", n)
		}
	}
	n := who.Tier.InferenceTokensPerMinute
	if n <= 0 {
		return math.MaxInt64, nil
	}
	name := "inference-tokens/" + who.Account()
	rate := ratelimit.PerMinute(n)
	if err := g.leaveHalf(ctx, name, rate, ofBatch); err != nil {
		return 0, err
	}
	state, err := g.config.Limiter.Take(ctx, name, 0, rate)
	if err != nil {
		return 0, err
	}
	setRateHeaders(header, "Tokens", n, state)
	if state.Remaining < 1 {
		return 0, tooManyTokens(state, n)
	}
	return int64(state.Remaining), nil
}

const textPerToken = 4

// checkRunning rejects the call if the large requests of the account's running calls may use all
// remaining tokens, because those are charged only when the calls end.
func (c *completion) checkRunning(tokens int64) *apierror.Error {
	if c.batch == nil && c.memory.heldByOthers()/textPerToken >= tokens {
		return apierror.From(tooManyTokens(ratelimit.State{}, c.who.Tier.InferenceTokensPerMinute))
	}
	return nil
}

func tooManyTokens(state ratelimit.State, n int) error {
	return limitExceeded(state, "The account exceeded its limit of %d tokens per minute.", n)
}

// leaveHalf rejects a batch call if less than half of the rate remains.
//
// Errors: fault.Limited with RetryAfter.
func (g *Gateway) leaveHalf(ctx context.Context, name string, rate ratelimit.Rate, ofBatch bool) error {
	if !ofBatch {
		return nil
	}
	state, err := g.config.Limiter.Take(ctx, name, 0, rate)
	if missing := rate.Burst/2 + 1 - state.Remaining; err == nil && missing > 0 {
		state.RetryAfter = rate.Cost(missing)
		return limitExceeded(state, "Batches may use at most half of the limit of %d per minute.", rate.Burst)
	}
	return err
}

// charge charges a completion's tokens to the token rate.
func (g *Gateway) charge(ctx context.Context, header http.Header, who credential.Principal, tokens int64) {
	n := who.Tier.InferenceTokensPerMinute
	if g.config.Limiter == nil || n <= 0 || tokens == 0 {
		return
	}
	state, err := g.config.Limiter.Charge(ctx, "inference-tokens/"+who.Account(), int(tokens), ratelimit.PerMinute(n))
	if err != nil {
		// The response is complete and metered. Only the counted rate is too low.
		g.config.Logger.LogAttrs(ctx, slog.LevelError, "cannot charge tokens to the rate limit",
			slog.String("request_id", httpserver.RequestID(ctx)), slog.Any("error", err))
		return
	}
	setRateHeaders(header, "Tokens", n, state)
}

func setRateHeaders(header http.Header, what string, n int, state ratelimit.State) {
	header.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(n))
	header.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(state.Remaining))
	header.Set("X-Ratelimit-Reset-"+what, state.Reset.Round(time.Millisecond).String())
}

func limitExceeded(state ratelimit.State, format string, n int) error {
	err := fault.New(fault.Limited, format, n)
	err.RetryAfter = max(state.RetryAfter, time.Second)
	return err
}
