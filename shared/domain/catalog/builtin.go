package catalog

import "fmt"

// A function needs the built-in catalog at each start, so catalog.yaml is compiled in as Go code:
// parsing YAML takes 4 ms, and parsing JSON would take 5 % of a start.
//
//go:generate go test -run TestBuiltinMatchesCatalogFile -update .

// DefaultFamily is the default name of the model family (docs/contract/README.md#the-family-name).
const DefaultFamily = "gen"

func Default(family string) (*Catalog, error) {
	if err := checkFamily(family); err != nil {
		return nil, err
	}
	file := builtin(family)
	known, err := file.catalog()
	if err != nil {
		return nil, fmt.Errorf("the built-in catalog: %w", err)
	}
	return known, nil
}
