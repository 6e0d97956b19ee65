package shared_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers lists the layers from the lowest to the highest.
var layers = []string{"platform", "domain", "engine", "service", "adapter", "app"}

// outside lists packages that no layer imports.
var outside = []string{"client", "testkit"}

// foreign lists path prefixes that the domain must not import.
var foreign = []string{
	"net/http", "database/sql", "github.com/aws/", "github.com/awslabs/", "github.com/coder/websocket", "modernc.org/",
	"maragu.dev/",
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestPackagesImportOnlyLowerLayers(t *testing.T) {
	for _, p := range list(t) {
		from := layerOf(p.ImportPath)
		if from == "" || isForTests(p.ImportPath) {
			continue
		}
		for _, imported := range p.Imports {
			to := layerOf(imported)
			switch {
			case isForTests(imported), slices.Contains(outside, to) && to != from:
				t.Errorf("%s imports %s, which only tests and programs may", p.ImportPath, imported)
			case slices.Index(layers, to) > slices.Index(layers, from):
				t.Errorf("%s imports %s, which is in a higher layer", p.ImportPath, imported)
			case from == "domain" && to == "platform":
				t.Errorf("%s imports %s: the domain imports only the domain", p.ImportPath, imported)
			}
			if from != "domain" {
				continue
			}
			for _, prefix := range foreign {
				if strings.HasPrefix(imported, prefix) {
					t.Errorf("%s imports %s, which the domain must not import", p.ImportPath, imported)
				}
			}
		}
	}
}

// Every package below shared belongs to a layer or is listed above.
func TestEveryPackageHasALayer(t *testing.T) {
	known := slices.Concat(layers, outside)
	for _, p := range list(t) {
		if p.ImportPath != "cutroom/shared" && !slices.Contains(known, layerOf(p.ImportPath)) {
			t.Errorf("%s is in none of %v", p.ImportPath, known)
		}
	}
}

// list returns the packages below shared with their imports, excluding the imports of tests.
func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 50 {
		t.Fatalf("go list returned %d packages: is this the folder of the library?", len(all))
	}
	return all
}

// layerOf returns a package's layer, such as "domain", or "" if the package is not below shared.
func layerOf(path string) string {
	below, ok := strings.CutPrefix(path, "cutroom/shared/")
	if !ok {
		return ""
	}
	layer, _, _ := strings.Cut(below, "/")
	return layer
}

// isForTests reports whether a package is for tests, such as job/jobtest.
func isForTests(path string) bool {
	return strings.HasPrefix(path, "cutroom/shared/testkit") || strings.HasPrefix(path, "cutroom/shared/") &&
		strings.HasSuffix(path, "test")
}
