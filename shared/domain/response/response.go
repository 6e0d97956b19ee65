// Package response keeps responses of the Responses dialect, so that later calls can refer to them.
package response

import (
	"context"
	"time"
)

const (
	Age = time.Hour
	// MaxBytes limits the content of a kept response. A DynamoDB item has at most 400 KB.
	MaxBytes = 256 << 10
	// AccountBytes limits the total size of an account's responses. A response counts as its content plus BytesEach.
	AccountBytes = 32 << 20
	BytesEach    = 512
)

// Store keeps at most AccountBytes plus one response per account. It drops the oldest responses first.
type Store interface {
	Keep(ctx context.Context, account, id string, content []byte, now time.Time) error
	// Find returns nil if the account has no such response younger than Age.
	Find(ctx context.Context, account, id string, now time.Time) ([]byte, error)
	Delete(ctx context.Context, account, id string) error
}
