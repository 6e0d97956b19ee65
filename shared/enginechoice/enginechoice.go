// Package enginechoice makes the engine that the setting CUTROOM_ENGINE names, for
// the programs that edit media.
package enginechoice

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"cutroom/shared/engine"
	"cutroom/shared/ffmpeg"
	"cutroom/shared/openaimedia"
	"cutroom/shared/preview"
	"cutroom/shared/remote"
)

// Preview names the engine that is part of this program.
const Preview = "preview"

// openAI begins the setting that names servers with the OpenAI interface.
const openAI = "openai:"

// Config is what the choice is made by.
type Config struct {
	// Setting is CUTROOM_ENGINE: "preview" or nothing, the URL of an engine server,
	// or "openai:" and the URL of a server with the OpenAI interface; after a comma
	// there may be another one, for images.
	Setting string
	// Key is CUTROOM_ENGINE_KEY, the API key for servers with the OpenAI interface.
	Key   string
	Tools *ffmpeg.Tools
}

// New makes the engine. It does not look whether a server is there.
//
// An error is one line that names the setting.
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
	server, err := remote.New(remote.Config{URL: c.Setting})
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ENGINE: %q is neither %s nor the URL of an engine server, such as http://127.0.0.1:8090, nor %sURL", c.Setting, Preview, openAI)
	}
	return server, nil
}

// Health gives what returns nil while the engine takes runs; nil for an engine that
// always does, or of which nobody can tell.
func Health(made engine.Engine) func(context.Context) error {
	if watched, ok := made.(interface{ Health(context.Context) error }); ok {
		return watched.Health
	}
	return nil
}

// IsPreview reports whether the setting names the preview engine.
func IsPreview(setting string) bool { return setting == "" || setting == Preview }

// Slots is how many jobs of a lane a worker has in hand at once, where nobody says
// otherwise: half of the processors, as an edit of the preview engine keeps about
// two of them busy; one with an engine server, which does one after the other.
func Slots(setting string) int {
	if IsPreview(setting) {
		return max(1, runtime.NumCPU()/2)
	}
	return 1
}
