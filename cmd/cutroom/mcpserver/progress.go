package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type progress struct {
	request *mcp.CallToolRequest

	mu       sync.Mutex
	last     float64
	reported bool
}

const steps = 50

// report reports how much of a total is done. A total of 0 means unknown. Progress never decreases,
// and small changes are skipped.
func (p *progress) report(ctx context.Context, done, total float64, message string) {
	token := p.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reported && (done <= p.last || done < total && done-p.last < total/steps) {
		return
	}
	p.last, p.reported = done, true
	// Ignore the error, because the next read notices that the client is gone.
	_ = p.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: done, Total: total, Message: message,
	})
}

func (p *progress) sending(ctx context.Context) func(done, total int64) {
	return func(done, total int64) { p.report(ctx, float64(done), float64(max(total, 0)), "uploading") }
}
