package realtime

import (
	"context"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// keyTime bounds the look at one key.
const keyTime = 5 * time.Second

// watchKeys ends the sessions of keys that are revoked, and those of their
// client tokens, until the context ends. A token that expires ends none.
func (s *Server) watchKeys(ctx context.Context) {
	ticker := time.NewTicker(s.Times.Revocation)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		byKey := map[credential.Hash][]*connection{}
		for _, c := range s.connections() {
			hash := c.who.Key.Hash
			byKey[hash] = append(byKey[hash], c)
		}
		for hash, connections := range byKey {
			if s.revoked(ctx, hash) {
				for _, c := range connections {
					c.end(endedByRevocation)
				}
			}
		}
	}
}

// revoked reports whether a key does not work any more. One that cannot be read
// is taken to work: a store that stays away ends all sessions anyway, as their
// lease cannot be renewed.
func (s *Server) revoked(ctx context.Context, hash credential.Hash) bool {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	key, err := s.Keys.FindKey(ctx, hash)
	if err != nil && !fault.Is(err, fault.NotFound) {
		if ctx.Err() != context.Canceled {
			s.Logger.Warn("the key of open sessions could not be looked at", "error", err)
		}
		return false
	}
	return err != nil || !key.RevokedAt.IsZero()
}
