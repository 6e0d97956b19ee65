package engines

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cutroom/shared/engine"
)

// inspectEvery is the time between two attempts to ask a server that cannot be reached.
const inspectEvery = 5 * time.Second

// Inspect asks an engine's servers at the start for the needs of the catalog's models, and logs missing
// ones by name. It asks an unreachable server again until that answers or the context ends.
func Inspect(ctx context.Context, e engine.Engine, logger *slog.Logger) {
	inspected := engine.InspectedOf(e)
	if inspected == nil {
		return
	}
	told := map[string]bool{}
	for {
		waiting := false
		for _, found := range inspected.Inspect(ctx) {
			if found.Err != nil && ctx.Err() == nil {
				waiting = true
				if !told["absent "+found.Server] {
					told["absent "+found.Server] = true
					logger.Warn("the engine's server cannot be reached yet", "server", found.Server, "err", found.Err)
				}
			}
			if found.Err != nil || told[found.Server] {
				continue
			}
			told[found.Server] = true
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
		logger.Warn("the engine's server cannot make a model of the catalog",
			"server", found.Server, "model", model, "lacks", strings.Join(found.Lacks[model], "; "))
	}
	if len(found.Lacks) == 0 {
		logger.Info("the engine's server has all that the catalog's models need", "server", found.Server)
	}
}
