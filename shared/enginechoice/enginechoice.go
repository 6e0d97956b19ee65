// Package enginechoice makes the engine that the setting CUTROOM_ENGINE names, for
// the programs that edit media.
package enginechoice

import (
	"fmt"
	"log/slog"
	"runtime"

	"cutroom/shared/engine"
	"cutroom/shared/ffmpeg"
	"cutroom/shared/preview"
	"cutroom/shared/remote"
)

// Preview names the engine that is part of this program.
const Preview = "preview"

// New makes the engine: the preview engine for "preview" or nothing, else a client
// of the engine server at the URL. It does not look whether that server is there.
//
// An error is one line that names the setting.
func New(setting string, tools *ffmpeg.Tools, logger *slog.Logger) (engine.Engine, error) {
	if IsPreview(setting) {
		return preview.New(tools), nil
	}
	server, err := remote.New(remote.Config{URL: setting, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ENGINE: %q is neither %s nor the URL of an engine server, such as http://127.0.0.1:8090", setting, Preview)
	}
	return server, nil
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
