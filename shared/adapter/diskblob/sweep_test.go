package diskblob_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

func put(t *testing.T, store *diskblob.Store, name, text string) {
	t.Helper()
	if _, err := store.Put(t.Context(), name, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// names returns the listed names in order. A prefix ends with a slash.
func names(t *testing.T, listing iter.Seq2[blob.Entry, error]) []string {
	t.Helper()
	names := []string{}
	for entry, err := range listing {
		if err != nil {
			t.Fatal(err)
		}
		name := entry.Name
		if entry.Prefix {
			name += "/"
		} else {
			name += fmt.Sprint("=", entry.Size)
		}
		if entry.StoredAt.IsZero() {
			t.Errorf("%s has no time", name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestListingsShowBlobsAndPrefixes(t *testing.T) {
	store, _ := open(t)
	for i, name := range []string{"top", "jobs/b/data", "jobs/a/data", "jobs/a/deep/er", "jobs/ab", "jobsite/x"} {
		put(t, store, name, strings.Repeat("x", i))
	}
	for _, c := range []struct {
		prefix         string
		children, list []string
	}{
		{"", []string{"jobs/", "jobsite/", "top=0"},
			[]string{"jobs/a/data=2", "jobs/a/deep/er=3", "jobs/ab=4", "jobs/b/data=1", "jobsite/x=5", "top=0"}},
		{"jobs", []string{"jobs/a/", "jobs/ab=4", "jobs/b/"},
			[]string{"jobs/a/data=2", "jobs/a/deep/er=3", "jobs/ab=4", "jobs/b/data=1"}},
		{"jobs/", []string{"jobs/a/", "jobs/ab=4", "jobs/b/"},
			[]string{"jobs/a/data=2", "jobs/a/deep/er=3", "jobs/ab=4", "jobs/b/data=1"}},
		{"jobs/a/deep", []string{"jobs/a/deep/er=3"}, []string{"jobs/a/deep/er=3"}},
		{"unknown", []string{}, []string{}},
	} {
		if got := names(t, store.Children(t.Context(), c.prefix)); !slices.Equal(got, c.children) {
			t.Errorf("children of %q: %v, want %v", c.prefix, got, c.children)
		}
		if got := names(t, store.List(t.Context(), c.prefix)); !slices.Equal(got, c.list) {
			t.Errorf("list of %q: %v, want %v", c.prefix, got, c.list)
		}
	}
}

func TestListingsShowEntireLargeFolder(t *testing.T) {
	store, root := open(t)
	put(t, store, "jobs/job_0", "")
	for i := range 1000 {
		if err := os.Mkdir(filepath.Join(root, "jobs", fmt.Sprint("job_x", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, store.Children(t.Context(), "jobs")); len(got) != 1001 {
		t.Errorf("%d children, want 1001", len(got))
	}
}

func TestListingCanStopEarly(t *testing.T) {
	store, _ := open(t)
	for _, name := range []string{"a/1", "a/2", "b/1", "b/2"} {
		put(t, store, name, "")
	}
	seen := 0
	for _, err := range store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("got %d entries, want the first only", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range store.List(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's error", err)
		}
	}
	for _, err := range store.Children(t.Context(), "../a") {
		if err == nil {
			t.Error("listed outside of the store")
		}
	}
}

func TestDeleteAllDeletesPrefix(t *testing.T) {
	store, root := open(t)
	for _, name := range []string{"jobs/a/data", "jobs/a/deep/er", "jobs/ab/data", "jobs/b"} {
		put(t, store, name, "")
	}
	for range 2 {
		if err := store.DeleteAll(t.Context(), "jobs/a"); err != nil {
			t.Fatal(err)
		}
		if got, want := names(t, store.List(t.Context(), "")), []string{"jobs/ab/data=0", "jobs/b=0"}; !slices.Equal(got,
			want) {
			t.Errorf("left %v, want %v", got, want)
		}
	}
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, prefix := range []string{"", ".", "..", ".tmp", "jobs/../.."} {
		if err := store.DeleteAll(t.Context(), prefix); err == nil {
			t.Errorf("DeleteAll of %q: no error", prefix)
		}
	}
}

// Every Put succeeds, and its blob is either complete or deleted.
func TestDeleteAllIsSafeDuringPut(t *testing.T) {
	store, root := open(t)
	const rounds = 100
	var writers, sweeper sync.WaitGroup
	for writer := range 2 {
		writers.Go(func() {
			for round := range rounds {
				name := fmt.Sprint("jobs/a/", writer, "/", round)
				if _, err := store.Put(t.Context(), name, strings.NewReader("bytes")); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	sweeper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := store.DeleteAll(t.Context(), "jobs/a"); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
	})
	writers.Wait()
	close(done)
	sweeper.Wait()
	for _, name := range names(t, store.List(t.Context(), "")) {
		if !strings.HasSuffix(name, "=5") {
			t.Errorf("%s is incomplete", name)
		}
	}
	if err := store.DeleteAll(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := store.Head(t.Context(), "jobs/a/0/0"); !fault.Is(err, fault.NotFound) {
		t.Errorf("error %v", err)
	}
}
