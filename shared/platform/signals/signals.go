package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that ends at the first SIGINT or SIGTERM. The second signal ends the program.
func Context() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
