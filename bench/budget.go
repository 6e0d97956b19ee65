package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"
)

const (
	// budgetPairs is the number of request pairs. Each pair is one request with a budget and one without. The first
	// tenth is warm-up.
	budgetPairs = 10_000
	// budgetBar is the maximum time that budgets may add to a completion.
	budgetBar = 15 * time.Microsecond
)

// budgetCatalog is gatewayCatalog with a price for the model.
const budgetCatalog = `
currency: USD
inference:
  - {id: bench, routes: [chat], context_length: 8192, max_output_length: 4096, price: {input: 1, output: 2}, upstreams: [{url: "http://%s/v1", model: weights}]}
`

// budgets measures the time that two budgets, for money and for tokens, add to a completion on one machine. One
// client sends pairs of requests to the same server: one for an account with budgets, and one for an account without.
// Their order alternates, so that other load affects both accounts.
func (b *bench) budgets(ctx context.Context) error {
	upstream, err := newModelServer()
	if err != nil {
		return err
	}
	defer upstream.close()
	catalog, err := b.writeCatalog("budgets.yaml", budgetCatalog, upstream.address())
	if err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "budgets", "CUTROOM_CATALOG="+catalog, "CUTROOM_LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer stop()
	key, err := b.budgeted(ctx)
	if err != nil {
		return err
	}
	address := strings.TrimPrefix(server.InferenceURL(), "http://")
	plain, err := dialWire(ctx, address)
	if err != nil {
		return err
	}
	defer plain.close()
	counted, err := dialWireAs(ctx, address, key)
	if err != nil {
		return err
	}
	defer counted.close()
	var without, more []time.Duration
	for i := range budgetPairs {
		var took [2]time.Duration // index 0: without budgets; index 1: with budgets
		for _, which := range [2]int{i % 2, 1 - i%2} {
			if took[which], err = [2]*wire{plain, counted}[which].call("whole"); err != nil {
				return err
			}
		}
		if i >= budgetPairs/10 {
			without, more = append(without, took[0]), append(more, took[1]-took[0])
		}
	}
	floor, over := median(without), median(more)
	b.table.add(row{
		what:     "completion with two budgets, added p50, one caller",
		measured: micro(over), floor: micro(floor) + " without a budget", ratio: ratio(floor+over, floor),
		bar: micro(budgetBar), verdict: verdictOf(over <= budgetBar),
	})
	return nil
}

func (b *bench) budgeted(ctx context.Context) (key string, err error) {
	if key, err = b.newKey(ctx, "budgets", "budgeted"); err != nil {
		return "", err
	}
	for _, unit := range []string{"cost", "tokens"} {
		if _, err := b.command(ctx, "budgets", "budgets", "set", "--account", "budgeted", "--period", "month", "--unit", unit,
			"--limit", "1000000000"); err != nil {
			return "", err
		}
	}
	return key, nil
}

// newKey creates an account in the data folder of a running server and returns its key.
func (b *bench) newKey(ctx context.Context, server, account string) (string, error) {
	return b.command(ctx, server, "keys", "create", "--account", account, "--tier", "dev")
}

func (b *bench) command(ctx context.Context, server string, args ...string) (printed string, err error) {
	ended, err := b.program.Run(ctx, []string{"CUTROOM_DATA=" + filepath.Join(b.folder, server)}, args...)
	if err == nil && ended.ExitCode != 0 {
		err = errors.New(ended.Stderr)
	}
	return strings.TrimSpace(ended.Stdout), err
}
