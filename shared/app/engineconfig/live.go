package engineconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/preview/frame"
)

// NewLive returns the engine for live video. It uses engine servers for the models that they edit
// live, and the preview engine for all others.
//
// CUTROOM_LIVE_ENGINE selects the engine and defaults to CUTROOM_ENGINE. NewLive does not check
// that a server is running. The error is a single line that names the setting.
func NewLive(live, setting string) (engine.LiveEngine, error) {
	preview := frame.New(time.Now, rand.Uint32)
	choice := Parse(cmp.Or(live, setting))
	switch {
	case choice.OpenAI && live != "":
		return nil, fmt.Errorf("CUTROOM_LIVE_ENGINE: OpenAI-compatible servers do not support live editing")
	case choice.ComfyUI && live != "":
		return nil, fmt.Errorf("CUTROOM_LIVE_ENGINE: ComfyUI servers do not support live editing")
	case choice.BuiltIn(), choice.OpenAI, choice.ComfyUI:
		return preview, nil
	}
	config := engineserver.LiveConfig{Seed: rand.Uint32}
	for _, url := range choice.Servers {
		config.Servers = append(config.Servers, engineserver.Config{URL: url})
	}
	servers, err := engineserver.NewLive(config)
	if err != nil {
		name := "CUTROOM_LIVE_ENGINE"
		if live == "" {
			name = "CUTROOM_ENGINE"
		}
		return nil, fmt.Errorf("%s: %w; use %s, or URLs of engine servers separated by commas",
			name, err, Preview)
	}
	return &liveServers{servers, preview}, nil
}

// liveServers uses the engine servers for the models that they support, otherwise the preview engine.
type liveServers struct{ servers, preview engine.LiveEngine }

func (l *liveServers) Open(ctx context.Context, m *catalog.Model) (engine.LiveEditor, error) {
	editor, err := l.servers.Open(ctx, m)
	if errors.Is(err, engineserver.ErrNotLive) {
		return l.preview.Open(ctx, m)
	}
	return editor, err
}
