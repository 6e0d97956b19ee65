package realtime

import (
	"context"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/clock"
)

const keyTime = 5 * time.Second

// watchKeys ends sessions and waits whose keys or tokens have been revoked or have expired.
func (s *Server) watchKeys(ctx context.Context) {
	for clock.Wait(ctx, s.config.Times.Revocation) {
		byKey := map[credential.Hash][]guest{}
		for _, g := range s.guests() {
			byKey[g.key()] = append(byKey[g.key()], g)
		}
		for hash, guests := range byKey {
			if s.revoked(ctx, hash) {
				for _, g := range guests {
					g.revoke()
				}
			}
		}
	}
}

// revoked reports whether a key no longer works. If the key cannot be read, it returns false.
func (s *Server) revoked(ctx context.Context, hash credential.Hash) bool {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	key, err := s.config.Keys.FindKey(ctx, hash)
	if err != nil && !fault.Is(err, fault.NotFound) {
		if ctx.Err() != context.Canceled {
			s.config.Logger.Warn("cannot check the key of open sessions", "error", err)
		}
		return false
	}
	return err != nil || !key.Works(s.config.Now())
}
