package credential

import (
	"time"

	"cutroom/shared/domain/audit"
)

type keyFacts struct {
	ID        string       `json:"id"`
	Label     string       `json:"label"`
	Tier      string       `json:"tier"`
	Admin     bool         `json:"admin"`
	CreatedAt time.Time    `json:"created_at"`
	ExpiresAt *time.Time   `json:"expires_at"`
	RevokedAt *time.Time   `json:"revoked_at"`
	Models    []string     `json:"models"`
	Routes    []RouteGroup `json:"routes"`
}

func factsOf(k Key) keyFacts {
	optional := func(at time.Time) *time.Time {
		if at.IsZero() {
			return nil
		}
		at = at.UTC()
		return &at
	}
	return keyFacts{k.ID, k.Label, k.Tier, k.Admin, k.CreatedAt.UTC(), optional(k.ExpiresAt), optional(k.RevokedAt),
		k.Limits.Models, k.Limits.Routes}
}

func CreationEntry(from audit.Origin, key Key) (audit.Entry, error) {
	return audit.New(from, key.Account, audit.KeyCreated, key.ID, nil, factsOf(key))
}

func RevocationEntry(from audit.Origin, key Key) (audit.Entry, error) {
	revoked := key
	revoked.RevokedAt = from.At
	return audit.New(from, key.Account, audit.KeyRevoked, key.ID, factsOf(key), factsOf(revoked))
}
