package gateway

import (
	"context"

	"cutroom/shared/domain/usage"
)

// Meter records the use of completions. On one machine it may write a record after it has returned.
// A process that may be frozen after its answer must write before it returns.
type Meter interface {
	// Record records the use of one completion, and gives it an id. It is called before the answer
	// ends, even if the caller has left. The context outlives the caller and has no deadline: a
	// store that may hang must set one.
	Record(ctx context.Context, record usage.Record) error
}

// Tokenizer counts tokens that an upstream did not report.
type Tokenizer interface {
	// Count returns about how many tokens the text has. It must be safe for concurrent use.
	Count(text string) int
}
