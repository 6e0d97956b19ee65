// Command costpage counts what the service asks of AWS, keeps the counts in
// shared/app/awscost/counts.json and makes docs/cost.md and a part of docs/deploy.md of them.
// With the argument "page" it makes them of the counts that are kept, which is enough
// after a change of prices. Run it in the repository's folder: `go run ./bench/costpage`.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cutroom/bench/cost"
	"cutroom/shared/app/awscost"
	"cutroom/shared/platform/signals"
)

func main() {
	ctx, stop := signals.Context()
	err := run(ctx, slices.Equal(os.Args[1:], []string{"page"}))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "costpage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kept bool) error {
	counts, err := awscost.Kept()
	if !kept {
		counts, err = count(ctx)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join("docs", "cost.md"), []byte(cost.Page(counts)), 0o644); err != nil {
		return err
	}
	deploy := filepath.Join("docs", "deploy.md")
	text, err := os.ReadFile(deploy)
	if err != nil {
		return err
	}
	page, err := cost.WithSummary(string(text), counts)
	if err != nil {
		return fmt.Errorf("%s: %w", deploy, err)
	}
	return os.WriteFile(deploy, []byte(page), 0o644)
}

func count(ctx context.Context) (awscost.Counts, error) {
	folder, err := os.MkdirTemp("", "cutroom-cost-")
	if err != nil {
		return awscost.Counts{}, err
	}
	defer os.RemoveAll(folder)
	counts, err := cost.Measure(ctx, folder)
	if err != nil {
		return counts, err
	}
	text, err := counts.JSON()
	if err != nil {
		return counts, err
	}
	return counts, os.WriteFile(filepath.Join("shared", "app", "awscost", "counts.json"), text, 0o644)
}
