// Package response keeps responses of the Responses dialect, so that later calls can refer to them.
package response

import (
	"context"
	"time"
)

const (
	Age = time.Hour
	// MaxBytes limits the content of a kept response. DynamoDB's items have at most 400 KB.
	MaxBytes = 256 << 10
	// AccountBytes limits an account's responses, each counted with BytesEach more than its content.
	AccountBytes = 32 << 20
	BytesEach    = 512
)

// Store keeps at most AccountBytes of an account, plus one response, and drops the oldest responses first.
type Store interface {
	Keep(ctx context.Context, account, id string, content []byte, now time.Time) error
	// Find returns nil if the account has no such response younger than Age.
	Find(ctx context.Context, account, id string, now time.Time) ([]byte, error)
	Delete(ctx context.Context, account, id string) error
}
