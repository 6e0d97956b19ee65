package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type progress struct {
	request *mcp.CallToolRequest

	mu   sync.Mutex
	last float64
	told bool
}

// steps is the most reports per call if the total is known.
const steps = 50

// tell reports the finished part of a total; a total of 0 is unknown. Progress never goes back, and
// small changes are skipped.
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
	// The next read notices a caller that has gone.
	_ = p.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: done, Total: total, Message: message,
	})
}

func (p *progress) sending(ctx context.Context) func(done, total int64) {
	return func(done, total int64) { p.tell(ctx, float64(done), float64(max(total, 0)), "uploading") }
}
