package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
)

type Limiter interface {
	// Take takes n units from the named bucket if they are available immediately.
	Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
}

// count counts a call towards the rate of the caller's tier. The header shows the state: the remaining calls, and
// the seconds until the full burst is available again. Errors: fault.Limited with RetryAfter.
func (s *service) count(ctx context.Context, header http.Header, who credential.Principal) error {
	rate := ratelimit.Rate{PerSecond: who.Tier.RequestsPerSecond, Burst: who.Tier.Burst}
	if s.Limiter == nil || rate.PerSecond <= 0 {
		return nil
	}
	state, err := s.Limiter.Take(ctx, "requests/"+who.Account(), 1, rate)
	if err != nil {
		return err
	}
	header.Set("RateLimit-Limit", strconv.Itoa(max(rate.Burst, 1)))
	header.Set("RateLimit-Remaining", strconv.Itoa(state.Remaining))
	header.Set("RateLimit-Reset", strconv.FormatInt(wholeSeconds(state.Reset), 10))
	if state.Allowed {
		return nil
	}
	over := fault.New(fault.Limited, "The account exceeded its limit of %g requests per second.", rate.PerSecond)
	over.RetryAfter = max(state.RetryAfter, time.Second)
	return over
}

func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
