package gateway

import (
	"context"

	"cutroom/shared/domain/usage"
)

// Meter records what completions have used. On one machine it may write a
// record shortly after it has returned; where a process can be frozen once it
// has answered, it writes before it returns.
type Meter interface {
	// Record takes what one completion has used, and gives it an id. It is
	// called before the answer ends, even if the caller has left. The context
	// outlives the caller and has no deadline: an implementation whose store
	// may hang sets its own.
	Record(ctx context.Context, record usage.Record) error
}

// Tokenizer counts tokens that an upstream did not report.
type Tokenizer interface {
	// Count returns about how many tokens the text has. It is called by many
	// goroutines at once.
	Count(text string) int
}
