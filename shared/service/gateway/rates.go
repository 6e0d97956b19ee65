package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/httpserver"
)

// count counts a completion as one request against the caller's tier and requires that tokens
// remain. The tokens are charged later (see charge). It also sets the rate limit headers that
// client libraries read. Batch calls leave half of each rate to live calls.
//
// Errors: fault.Limited with RetryAfter.
func (g *Gateway) count(ctx context.Context, header http.Header, who credential.Principal, ofBatch bool) error {
	if g.config.Limiter == nil {
		return nil
	}
	if n := who.Tier.InferenceRequestsPerMinute; n > 0 {
		name := "inference-requests/" + who.Account()
		rate := ratelimit.PerMinute(n)
		if err := g.leaveHalf(ctx, name, rate, ofBatch); err != nil {
			return err
		}
		state, err := g.config.Limiter.Take(ctx, name, 1, rate)
		if err != nil {
			return err
		}
		setRateHeaders(header, "Requests", n, state)
		if !state.Allowed {
			return limitExceeded(state, "The account exceeded its limit of %d requests per minute.", n)
		}
	}
	n := who.Tier.InferenceTokensPerMinute
	if n <= 0 {
		return nil
	}
	name, rate := "inference-tokens/"+who.Account(), tokenRate(n)
	if err := g.leaveHalf(ctx, name, rate, ofBatch); err != nil {
		return err
	}
	state, err := g.config.Limiter.Take(ctx, name, 0, rate)
	if err != nil {
		return err
	}
	setRateHeaders(header, "Tokens", n, state)
	if state.Remaining < 1 {
		return limitExceeded(state, "The account exceeded its limit of %d tokens per minute.", n)
	}
	return nil
}

// tokenRate allows a large debt, because tokens are charged when calls end. This way, even hundreds
// of concurrent calls stay within the rate in the long run.
func tokenRate(n int) ratelimit.Rate {
	rate := ratelimit.PerMinute(n)
	rate.MaxDebt = 600
	return rate
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

func (g *Gateway) charge(ctx context.Context, header http.Header, who credential.Principal, tokens int64) {
	n := who.Tier.InferenceTokensPerMinute
	if g.config.Limiter == nil || n <= 0 || tokens == 0 {
		return
	}
	state, err := g.config.Limiter.Charge(ctx, "inference-tokens/"+who.Account(), int(tokens), tokenRate(n))
	if err != nil {
		// Only log the error, because the response is complete and metered.
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
