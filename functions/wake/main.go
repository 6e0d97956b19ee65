// Function wake starts as many workers as the queued jobs need. It is invoked by each new execution, and by
// submissions and waiting requests that find no worker. It ignores its event. After starting workers, it checks again
// within the minute, because its first count may miss part of a burst.
package main

import (
	"context"

	"cutroom/shared/app/eventapp"
	"cutroom/shared/app/fleetapp"
	"cutroom/shared/platform/clock"
)

func main() { eventapp.Main(wake) }

func wake(p *eventapp.Parts) func(context.Context, any) (any, error) {
	workers := fleetapp.New(p.Environment, p.AWS)
	return func(ctx context.Context, _ any) (any, error) {
		change, err := workers.Wake(ctx)
		if err == nil {
			change, err = workers.Follow(ctx, change, clock.Wait)
		}
		if change.Rose() {
			p.Logger.InfoContext(ctx, "woke workers", "jobs", change.Jobs, "from", change.From, "to", change.To)
		}
		return nil, err
	}
}
