package functions_test

import (
	"path/filepath"
	"slices"
	"testing"

	"cutroom/functions"
)

// Every folder with a program is in the table, and every function has sample events.
func TestTableListsEveryFunction(t *testing.T) {
	programs, err := filepath.Glob(filepath.Join("*", "main.go"))
	must(t, err)
	var folders []string
	for _, program := range programs {
		folders = append(folders, filepath.Dir(program))
	}
	names := functions.Names()
	slices.Sort(names)
	if !slices.Equal(names, folders) {
		t.Errorf("the table has %v, the folders are %v", names, folders)
	}
	for _, name := range names {
		events, err := filepath.Glob(filepath.Join("..", "events", name, "*.want.json"))
		if err != nil || len(events) == 0 {
			t.Errorf("%s has no events in events/%s", name, name)
		}
	}
}
