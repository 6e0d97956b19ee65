package engineconfig

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cutroom/shared/engine"
)

const inspectEvery = 5 * time.Second

// Inspect logs everything that the models need but the servers lack. It waits until unreachable servers respond.
func Inspect(ctx context.Context, e engine.Engine, logger *slog.Logger) {
	inspected := engine.InspectedOf(e)
	if inspected == nil {
		return
	}
	logged := map[string]bool{}
	for {
		waiting := false
		for _, found := range inspected.Inspect(ctx) {
			if found.Err != nil && ctx.Err() == nil {
				waiting = true
				if !logged["absent "+found.Server] {
					logged["absent "+found.Server] = true
					logger.Warn("cannot reach the engine's server yet", "server", found.Server, "err", found.Err)
				}
			}
			if found.Err != nil || logged[found.Server] {
				continue
			}
			logged[found.Server] = true
			tell(found, logger)
		}
		if !waiting {
			return
		}
		select {
		case <-time.After(inspectEvery):
		case <-ctx.Done():
			return
		}
	}
}

func tell(found engine.Inspection, logger *slog.Logger) {
	for _, model := range slices.Sorted(maps.Keys(found.Lacks)) {
		logger.Warn("the engine's server cannot run a model in the catalog",
			"server", found.Server, "model", model, "lacks", strings.Join(found.Lacks[model], "; "))
	}
	if len(found.Lacks) == 0 {
		logger.Info("the engine's server has all nodes and files that the catalog's models need", "server", found.Server)
	}
}
