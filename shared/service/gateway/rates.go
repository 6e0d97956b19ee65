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

// count counts a completion as one request against the caller's tier, and requires remaining
// tokens. Its tokens are known only later (see charge). It sets the rate limit headers of client
// libraries. A batch call leaves half of each rate to live calls.
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
			return limitExceeded(state, "The account makes more than %d requests per minute.", n)
		}
	}
	if n := who.Tier.InferenceTokensPerMinute; n > 0 {
		name := "inference-tokens/" + who.Account()
		rate := ratelimit.PerMinute(n)
		if err := g.leaveHalf(ctx, name, rate, ofBatch); err != nil {
			return err
		}
		state, err := g.config.Limiter.Take(ctx, name, 0, rate)
		if err != nil {
			return err
		}
		setRateHeaders(header, "Tokens", n, state)
		if state.Remaining < 1 {
			return limitExceeded(state, "The account uses more than %d tokens per minute.", n)
		}
	}
	return nil
}

// leaveHalf fails for a batch call while less than half of a rate per minute is left.
//
// Errors: fault.Limited with RetryAfter.
func (g *Gateway) leaveHalf(ctx context.Context, name string, rate ratelimit.Rate, ofBatch bool) error {
	if !ofBatch {
		return nil
	}
	state, err := g.config.Limiter.Take(ctx, name, 0, rate)
	if missing := rate.Burst/2 + 1 - state.Remaining; err == nil && missing > 0 {
		state.RetryAfter = rate.Cost(missing)
		return limitExceeded(state, "Batches leave half of %d a minute to live calls.", rate.Burst)
	}
	return err
}

// charge counts a completion's tokens against the rate.
func (g *Gateway) charge(ctx context.Context, header http.Header, who credential.Principal, tokens int64) {
	n := who.Tier.InferenceTokensPerMinute
	if g.config.Limiter == nil || n <= 0 || tokens == 0 {
		return
	}
	state, err := g.config.Limiter.Charge(ctx, "inference-tokens/"+who.Account(), int(tokens), ratelimit.PerMinute(n))
	if err != nil {
		// The answer is complete and metered; only the rate misses it.
		g.config.Logger.LogAttrs(ctx, slog.LevelError, "tokens were not counted against the rate",
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
