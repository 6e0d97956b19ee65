package awstest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Documented returns the calls that testdata/calls.md lists for the operations of a type,
// such as "Files", by operation.
func Documented(t T, of string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "shared", "testkit", "awstest", "testdata", "calls.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		if operation, ok := strings.CutPrefix(strings.TrimSpace(cells[1]), "`"+of+"."); ok {
			documented[strings.TrimSuffix(operation, "`")] = strings.TrimSpace(cells[2])
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
