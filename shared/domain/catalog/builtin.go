package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

// builtin is catalog.yaml as JSON, without what is not set. A function reads it at each of its
// starts, and YAML takes four times as long to read.
//
//go:generate go test -run TestBuiltinIsTheCatalog -update .
//go:embed catalog.json
var builtin []byte

// DefaultFamily is the model family's name where none is set
// (docs/contract/README.md#the-family-name).
const DefaultFamily = "gen"

// Default returns the catalog that comes with the program.
func Default(family string) (*Catalog, error) {
	source, err := withFamily(builtin, family)
	if err != nil {
		return nil, err
	}
	// Numbers are kept as they are written: a float might change them.
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.UseNumber()
	var file catalogFile
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("the built-in catalog: %w", err)
	}
	return file.catalog()
}
