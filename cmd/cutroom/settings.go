package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cutroom/shared/credential"
	"cutroom/shared/model"
	"cutroom/shared/openai"
	"cutroom/shared/worker"
)

// dataFlag is the setting that every command on the data folder has.
type dataFlag struct {
	Data string `env:"CUTROOM_DATA" default:".cutroom" help:"Folder of everything that is kept (${env})."`
}

func (f dataFlag) database() string { return filepath.Join(f.Data, "cutroom.db") }

// tiersFlag is the table of tiers.
type tiersFlag struct {
	Tiers string `env:"CUTROOM_TIERS" help:"File of the tiers, in place of the built-in one (${env})."`
}

func (f tiersFlag) table() (credential.Tiers, error) {
	if f.Tiers == "" {
		return credential.DefaultTiers()
	}
	source, err := os.ReadFile(f.Tiers)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_TIERS: %w", err)
	}
	tiers, err := credential.ParseTiers(source)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_TIERS: %s: %w", f.Tiers, err)
	}
	return tiers, nil
}

// catalogFlags choose the models.
type catalogFlags struct {
	Family  string `env:"CUTROOM_FAMILY" default:"gen" help:"Name of the model family in paths and ids (${env})."`
	Catalog string `env:"CUTROOM_CATALOG" help:"File of the catalog, in place of the built-in one (${env})."`
}

func (f catalogFlags) catalog() (*model.Catalog, error) {
	if f.Catalog == "" {
		catalog, err := model.Default(f.Family)
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_FAMILY: %w", err)
		}
		return catalog, nil
	}
	source, err := os.ReadFile(f.Catalog)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_CATALOG: %w", err)
	}
	catalog, err := model.Parse(source, f.Family)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_CATALOG: %s: %w", f.Catalog, err)
	}
	return catalog, nil
}

// enhanceFlags choose the chat model that expands prompts.
type enhanceFlags struct {
	EnhanceURL   string `env:"CUTROOM_ENHANCE_URL" help:"Base URL of a chat completions API that expands prompts; none expands none (${env})."`
	EnhanceModel string `env:"CUTROOM_ENHANCE_MODEL" help:"Model that expands prompts (${env})."`
	EnhanceKey   string `env:"CUTROOM_ENHANCE_KEY" help:"API key for it (${env})."`
}

// enhancer gives what expands prompts, nil when nothing is set.
func (f enhanceFlags) enhancer() (worker.Enhancer, error) {
	if f.EnhanceURL == "" {
		if f.EnhanceModel != "" || f.EnhanceKey != "" {
			return nil, errors.New("CUTROOM_ENHANCE_URL: it is empty, but CUTROOM_ENHANCE_MODEL or CUTROOM_ENHANCE_KEY is set")
		}
		return nil, nil
	}
	if f.EnhanceModel == "" {
		return nil, errors.New("CUTROOM_ENHANCE_URL: it is set, but CUTROOM_ENHANCE_MODEL is not")
	}
	enhancer, err := openai.NewEnhancer(f.EnhanceURL, f.EnhanceModel, f.EnhanceKey)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_ENHANCE_URL: %w", err)
	}
	return enhancer, nil
}

// byteSize is a number of bytes, such as "1048576", "512MiB" or "2GiB".
type byteSize int64

var (
	byteSizeForm  = regexp.MustCompile(`^([0-9]{1,12})(KiB|MiB|GiB)?$`)
	byteSizeUnits = map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// UnmarshalText reads a size; it is at least 1 byte and at most 5 TiB.
func (s *byteSize) UnmarshalText(text []byte) error {
	parts := byteSizeForm.FindStringSubmatch(strings.TrimSpace(string(text)))
	if parts != nil {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if unit := byteSizeUnits[parts[2]]; err == nil && n > 0 && n <= (5<<40)/unit {
			*s = byteSize(n * unit)
			return nil
		}
	}
	return fmt.Errorf("%q is no size such as 1048576, 512MiB or 2GiB", text)
}
