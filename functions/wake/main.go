// Function wake starts workers when work arrives and none are running. Every execution
// that begins starts it, and so do submissions that find no worker and calls that wait
// for one. It does not read its event.
package main

import (
	"context"

	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/eventapp"
)

func main() { eventapp.Main(wake) }

func wake(p *eventapp.Parts) func(context.Context, any) (any, error) {
	workers := awsapp.NewFleet(p.Environment, p.AWS)
	return func(ctx context.Context, _ any) (any, error) {
		woken, err := workers.Wake(ctx)
		if woken {
			p.Logger.InfoContext(ctx, "the workers were woken")
		}
		return nil, err
	}
}
