// Package setting reads environment variables named CUTROOM_…. Errors name the variable.
package setting

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/webhook"
)

// Tiers reads the file named by CUTROOM_TIERS. If file is "", it returns the built-in tiers.
func Tiers(file string) (credential.Tiers, error) { return inYAML().readTiers(file) }

// Catalog reads the file named by CUTROOM_CATALOG. If file is "", it returns the built-in models.
// Their names contain the family (CUTROOM_FAMILY).
func Catalog(family, file string) (*catalog.Catalog, error) {
	return inYAML().readCatalog(family, file)
}

type format struct {
	tiers   func(source []byte) (credential.Tiers, error)
	catalog func(source []byte, family string) (*catalog.Catalog, error)
}

// People write their files in YAML.
func inYAML() *format { return &format{credential.ParseTiers, catalog.Parse} }

// Deployments pass these files to functions as JSON.
func inJSON() *format { return &format{credential.ParseTiersJSON, catalog.ParseJSON} }

func (f *format) readTiers(file string) (credential.Tiers, error) {
	if file == "" {
		return credential.DefaultTiers(), nil
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_TIERS: %w", err)
	}
	tiers, err := f.tiers(source)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_TIERS: %s: %w", file, err)
	}
	return tiers, nil
}

func (f *format) readCatalog(family, file string) (*catalog.Catalog, error) {
	if file == "" {
		known, err := catalog.Default(family)
		if err != nil {
			return nil, fmt.Errorf("CUTROOM_FAMILY: %w", err)
		}
		return known, nil
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_CATALOG: %w", err)
	}
	known, err := f.catalog(source, family)
	if err != nil {
		return nil, fmt.Errorf("CUTROOM_CATALOG: %s: %w", file, err)
	}
	return known, nil
}

// Origins normalizes the origins in CUTROOM_CORS_ORIGINS to the format that browsers send.
func Origins(origins []string) ([]string, error) {
	canonical := make([]string, len(origins))
	for i, origin := range origins {
		if origin != "*" && !credential.IsOrigin(origin) {
			return nil, fmt.Errorf("CUTROOM_CORS_ORIGINS: %q must be * or an origin such as https://app.example.com", origin)
		}
		canonical[i] = credential.CanonicalOrigin(origin)
	}
	return canonical, nil
}

// Size is a number of bytes, such as "1048576", "512MiB" or "2GiB".
type Size int64

// No store accepts larger objects.
const maxSize = 5 << 40

func (s *Size) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, found := strings.CutSuffix(number, suffix); found {
			number, unit = digits, bytes
			break
		}
	}
	// ParseUint accepts only digits, without a sign or underscores.
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n == 0 || int64(n) > maxSize/unit {
		return fmt.Errorf("%q must be a size such as 1048576, 512MiB or 2GiB", text)
	}
	*s = Size(int64(n) * unit)
	return nil
}

// WebhookTargets parses CUTROOM_WEBHOOK_ALLOW, which lists additional host names and address blocks.
func WebhookTargets(list []string) (webhook.Targets, error) {
	targets, err := webhook.ParseTargets(list)
	if err != nil {
		return webhook.Targets{}, fmt.Errorf("CUTROOM_WEBHOOK_ALLOW: %w", err)
	}
	return targets, nil
}
