// Package engineconfig creates the engine that CUTROOM_ENGINE selects.
package engineconfig

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/comfyui"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/openaimedia"
	"cutroom/shared/engine/preview"
)

const Preview = preview.Name

const (
	openAI  = "openai:"
	comfyUI = "comfyui:"
)

type Choice struct {
	// Name is "" if engine servers do the editing.
	Name string
	// Servers is nil for a built-in engine.
	Servers []string
	// With OpenAI, the first server is for videos and the last for images. They may be the same.
	OpenAI  bool
	ComfyUI bool
}

// Parse parses CUTROOM_ENGINE. The value is "preview" or "", comma-separated URLs of engine servers, "openai:"
// with the URL of an OpenAI-compatible server and optionally a second URL for images, or "comfyui:"
// with comma-separated URLs of ComfyUI servers. Parse does not check the URLs.
func Parse(setting string) Choice {
	if setting == "" || setting == Preview {
		return Choice{Name: Preview}
	}
	if urls, found := strings.CutPrefix(setting, openAI); found {
		return Choice{Servers: strings.SplitN(urls, ",", 2), OpenAI: true}
	}
	urls, found := strings.CutPrefix(setting, comfyUI)
	return Choice{Servers: strings.Split(urls, ","), ComfyUI: found}
}

func (c Choice) BuiltIn() bool { return c.Name != "" }

func (c Choice) Engine() string {
	switch {
	case c.BuiltIn():
		return c.Name
	case c.OpenAI:
		return openaimedia.Name
	case c.ComfyUI:
		return comfyui.Name
	}
	return engineserver.Name
}

// Slots returns the default number of concurrent jobs per lane: half the number of processors for
// the preview engine, otherwise one per server.
func (c Choice) Slots() int {
	switch {
	case c.BuiltIn():
		return max(1, runtime.NumCPU()/2)
	case c.OpenAI:
		return 1
	}
	return len(c.Servers)
}

type Config struct {
	Setting string
	// Key is CUTROOM_ENGINE_KEY, for OpenAI servers or a proxy in front of ComfyUI servers.
	Key   string
	Tools *ffmpeg.Tools
	// Relative paths of ComfyUI workflows are resolved in the folder of CatalogFile.
	Catalog     *catalog.Catalog
	CatalogFile string
}

// New does not check that a server is running. The error is a single line that names the setting.
func New(c Config) (engine.Engine, error) {
	choice := Parse(c.Setting)
	if c.Key != "" && !choice.OpenAI && !choice.ComfyUI {
		return nil, fmt.Errorf("CUTROOM_ENGINE_KEY: set, but CUTROOM_ENGINE names no server that accepts a key")
	}
	switch {
	case choice.Name == Preview:
		return preview.New(c.Tools), nil
	case choice.OpenAI:
		servers, err := openaimedia.New(openaimedia.Config{
			Videos: choice.Servers[0], Images: choice.Servers[len(choice.Servers)-1], Key: c.Key, Runner: c.Tools,
		})
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_ENGINE: %w", err)
		}
		return servers, nil
	case choice.ComfyUI:
		servers, err := comfyui.New(comfyui.Config{
			Servers: choice.Servers, Key: c.Key, Models: c.Catalog.Models(), Folder: filepath.Dir(c.CatalogFile),
			Runner: c.Tools, Random: rand.Reader,
		})
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_ENGINE: %s %w", comfyUI, err)
		}
		return servers, nil
	}
	var servers []engineserver.Config
	for _, url := range choice.Servers {
		servers = append(servers, engineserver.Config{URL: url, Runner: c.Tools})
	}
	pool, err := engineserver.NewPool(servers...)
	if err != nil {
		return nil, fmt.Errorf(
			"CUTROOM_ENGINE: %w; use %s, URLs of engine servers separated by commas, %sURL or %sURL",
			err, Preview, openAI, comfyUI)
	}
	return pool.WithImageToVideo(preview.New(c.Tools)), nil
}
