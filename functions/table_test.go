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
	if err != nil {
		t.Fatal(err)
	}
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

func TestFunctionGetsOnlyItsSettings(t *testing.T) {
	f, ok := functions.Find("arrived")
	if !ok {
		t.Fatal("the function arrived is missing")
	}
	got := f.Environment([]string{"CUTROOM_BUCKET=b", "CUTROOM_JOBS_TABLE=j", "CUTROOM_FILES_TABLE=f", "AWS_REGION=r"})
	if want := []string{"CUTROOM_BUCKET=b", "CUTROOM_FILES_TABLE=f", "AWS_REGION=r"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := functions.Find("unknown"); ok {
		t.Error("found a function that does not exist")
	}
}
