package gateway

import (
	"context"

	"cutroom/shared/domain/usage"
)

// Meter records the usage of completions. A record may be written after Record returns. But if the
// process may be frozen after its response, Record must write before it returns.
type Meter interface {
	// Record is called before the response ends, even if the caller has disconnected. It assigns the record's id.
	// The context outlives the caller and has no deadline, so a store that may hang must set one.
	Record(ctx context.Context, record usage.Record) error
}

type Tokenizer interface {
	// Count returns the approximate number of tokens in a text. It must be safe for concurrent use.
	Count(text string) int
}
