package gateway

import (
	"context"

	"cutroom/shared/domain/usage"
)

// Meter counts what completions have used. On one machine it may take a record
// and write it soon after; where a process can be frozen once it has answered
// it writes before it returns.
type Meter interface {
	// Record takes what one completion has used, and gives it an id. It is called before the answer
	// ends, also when the caller has left. The context outlives the caller and has
	// no limit: who calls a store that may hang sets one.
	Record(ctx context.Context, record usage.Record) error
}

// Tokenizer counts tokens where an upstream does not say how many there were.
type Tokenizer interface {
	// Count gives about how many tokens the text has. It is called by many
	// goroutines at once.
	Count(text string) int
}
