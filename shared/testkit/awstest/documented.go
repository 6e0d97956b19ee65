package awstest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Documented returns the calls that testdata/calls.tsv lists for a type such as "Files", by operation.
func Documented(t T, of string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "shared", "testkit", "awstest", "testdata", "calls.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if operation, ok := strings.CutPrefix(cells[0], of+"."); ok && len(cells) > 1 {
			documented[operation] = cells[1]
		}
	}
	return documented
}

// CallList formats counted calls as the docs do: "GetItem, 2 UpdateItem".
func CallList(calls map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		_, operation, dotted := strings.Cut(name, ".")
		if !dotted {
			operation = name
		}
		if n := calls[name]; n > 1 {
			operation = fmt.Sprint(n, " ", operation)
		}
		list = append(list, operation)
	}
	return strings.Join(list, ", ")
}
