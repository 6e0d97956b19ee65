// Package engines makes the engine that CUTROOM_ENGINE names, for the programs that
// edit media.
package engines

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/openaimedia"
	"cutroom/shared/engine/preview"
)

// Preview names the built-in engine.
const Preview = "preview"

// openAI is the prefix of a setting that names servers with the OpenAI interface.
const openAI = "openai:"

// Config says which engine to make.
type Config struct {
	// Setting is CUTROOM_ENGINE: "preview" or nothing; the URLs of engine servers,
	// separated by commas; or "openai:" and the URL of a server with the OpenAI
	// interface, optionally followed by a comma and the URL of another for images.
	Setting string
	// Key is CUTROOM_ENGINE_KEY, the API key for servers with the OpenAI interface.
	Key   string
	Tools *ffmpeg.Tools
}

// New makes the engine. It does not check that a server answers. An error is one
// line that names the setting.
func New(c Config) (engine.Engine, error) {
	if c.Key != "" && !strings.HasPrefix(c.Setting, openAI) {
		return nil, fmt.Errorf("CUTROOM_ENGINE_KEY: it is set, but CUTROOM_ENGINE names no server with the OpenAI interface")
	}
	if IsPreview(c.Setting) {
		return preview.New(c.Tools), nil
	}
	if urls, found := strings.CutPrefix(c.Setting, openAI); found {
		videos, images, two := strings.Cut(urls, ",")
		if !two {
			images = videos
		}
		servers, err := openaimedia.New(openaimedia.Config{Videos: videos, Images: images, Key: c.Key, Runner: c.Tools})
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_ENGINE: %w", err)
		}
		return servers, nil
	}
	var servers []engineserver.Config
	for _, url := range serversOf(c.Setting) {
		servers = append(servers, engineserver.Config{URL: url})
	}
	pool, err := engineserver.NewPool(servers...)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ENGINE: %w; it may be %s, or URLs of engine servers with commas between them, or %sURL", err, Preview, openAI)
	}
	return pool, nil
}

// serversOf returns the URLs of a setting that names engine servers.
func serversOf(setting string) []string { return strings.Split(setting, ",") }

// Health returns a function that returns an error while the engine takes no runs. It
// returns nil for an engine that has no such check.
func Health(made engine.Engine) func(context.Context) error {
	if watched, ok := made.(interface{ Health(context.Context) error }); ok {
		return watched.Health
	}
	return nil
}

// IsPreview reports whether the setting names the preview engine.
func IsPreview(setting string) bool { return setting == "" || setting == Preview }

// Slots returns how many jobs of a lane a worker takes at once unless it is told
// otherwise. For the preview engine it is half of the processors, as an edit keeps
// about two of them busy; otherwise one for each engine server, which edits one at a
// time.
func Slots(setting string) int {
	switch {
	case IsPreview(setting):
		return max(1, runtime.NumCPU()/2)
	case strings.HasPrefix(setting, openAI):
		return 1
	}
	return len(serversOf(setting))
}
