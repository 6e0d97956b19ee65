package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
)

type Sessions interface {
	Active(ctx context.Context, account string) (int, error)
}

// See docs/contract/realtime.md#quota.
func Realtime(s *service) []route {
	return within(credential.RealtimeRoutes, []route{{method: http.MethodGet, path: "/v1/realtime/quota", access: keyOnly, handle: s.readQuota}})
}

// A key's tenth read within a second is rejected (docs/contract/realtime.md#quota).
var quotaReads = ratelimit.Rate{PerSecond: 1, Burst: 9}

// The contract requires a number even for a tier without a limit.
const noSessionLimit = math.MaxInt32

type quotaBody struct {
	Limit     int `json:"limit"`
	Active    int `json:"active"`
	Remaining int `json:"remaining"`
}

func (s *service) readQuota(w http.ResponseWriter, r *http.Request, c call) error {
	if s.Limiter != nil {
		state, err := s.Limiter.Take(r.Context(), "quota/"+c.who.Key.ID, 1, quotaReads)
		if err != nil {
			return err
		}
		if !state.Allowed {
			over := fault.New(fault.Limited, "The quota was read too often. Read it at most once a second.")
			over.RetryAfter = time.Second
			return over
		}
	}
	active, err := s.Sessions.Active(r.Context(), c.who.Account())
	if err != nil {
		return fmt.Errorf("count sessions: %w", err)
	}
	most := c.who.Tier.RealtimeSessions
	if most == 0 {
		most = noSessionLimit
	}
	s.writeJSON(w, r, http.StatusOK, quotaBody{most, active, max(0, most-active)})
	return nil
}
