package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progress tells a caller how far a call is, if it asked to be told.
type progress struct {
	request *mcp.CallToolRequest

	mu   sync.Mutex
	last float64
	told bool
}

// steps is how often a caller is told at most, if the total is known.
const steps = 50

// tell tells how much of a total is done. It never goes back, and passes over what is
// not worth a message; a total of 0 is unknown.
func (p *progress) tell(ctx context.Context, done, total float64, message string) {
	token := p.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told && (done <= p.last || done < total && done-p.last < total/steps) {
		return
	}
	p.last, p.told = done, true
	// A caller that has gone is noticed by the next read.
	_ = p.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: done, Total: total, Message: message,
	})
}

// sending tells of an upload.
func (p *progress) sending(ctx context.Context) func(done, total int64) {
	return func(done, total int64) { p.tell(ctx, float64(done), float64(max(total, 0)), "uploading") }
}
