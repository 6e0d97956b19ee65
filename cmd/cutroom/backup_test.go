package main_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

// A server is backed up while it receives files and jobs. No server starts from an incomplete restore. After a
// complete restore, all data acknowledged before the backup exists, and jobs continue.
func TestBackupsSurviveKills(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	data, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept", "here")
	v := &vault{t, data, map[string][]byte{}}
	server := start(t, data, "CUTROOM_LOG_LEVEL=warn")
	client := server.Client()
	var jobs []string
	for range 3 {
		jobs = append(jobs, submit(ctx, t, client, fixtures.tiny))
	}
	done, err := client.Await(bounded(t), jobs[0], nil)
	if err != nil || done.Status != "completed" {
		t.Fatalf("the first job is %+v, %v", done, err)
	}

	var mu sync.Mutex
	stop := make(chan struct{})
	var uploads sync.WaitGroup
	uploads.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			content := []byte(strings.Repeat("a file that is uploaded meanwhile; ", 1+rand.N(5000)))
			id := store(t, client, content).ID
			mu.Lock()
			v.content[id] = content
			mu.Unlock()
		}
	})
	ends := func(within time.Duration, args ...string) bool {
		t.Helper()
		bounded, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ended, err := program.Run(bounded, nil, args...)
		if err == nil && ended.ExitCode != 0 {
			t.Fatalf("cutroom %v: %+v", args, ended)
		}
		return err == nil
	}
	// In each round, backups are killed later and later, until one finishes. On a stalled machine,
	// a backup may finish too early to prove anything, so there may be more rounds.
	const rounds = 20
	killed := 0
	var acknowledged map[string][]byte
	for round := 0; round < 2 || killed < 4 && round < rounds; round++ {
		for within := 5 * time.Millisecond; ; within += within / 3 {
			mu.Lock()
			now := maps.Clone(v.content)
			mu.Unlock()
			done := ends(within, "backup", kept, "--data", data)
			if done || round > 0 { // a complete backup exists
				ends(await.Max, "restore", kept, "--check")
			}
			if done {
				acknowledged = now
				break
			}
			killed++
		}
	}
	close(stop)
	uploads.Wait()
	server.Kill()

	var into string
	broken := 0
	for round := 0; round == 0 || broken < 2 && round < rounds; round++ {
		into = filepath.Join(t.TempDir(), "restored")
		for within := 5 * time.Millisecond; !ends(within, "restore", kept, "--data", into); within += within / 3 {
			broken++
			if _, err := os.Stat(filepath.Join(into, "restoring")); errors.Is(err, os.ErrNotExist) {
				if _, err := os.Stat(filepath.Join(into, "cutroom.db")); err == nil {
					break // the restore finished but was killed before it printed its message
				}
				continue // the restore was killed before it wrote anything
			}
			server, err := program.Launch(into)
			if err != nil {
				t.Fatal(err)
			}
			err = server.Ready(ctx)
			server.Kill()
			if err == nil || !strings.Contains(err.Error(), "is incomplete") {
				t.Fatalf("the server starts with an incomplete restore: %v", err)
			}
		}
	}
	server = start(t, into, "CUTROOM_LOG_LEVEL=warn")
	client = server.Client()
	(&vault{t, into, acknowledged}).wantAll(client)
	for _, id := range jobs {
		job, err := client.Await(bounded(t), id, nil)
		if err != nil || job.Status != "completed" {
			t.Errorf("the job %s is %+v, %v", id, job, err)
		}
		if result, err := client.Content(ctx, id); err != nil || len(result.Body) == 0 {
			t.Errorf("the result of %s: %v", id, err)
		}
	}
	if killed < 4 || broken < 2 || len(acknowledged) == 0 {
		t.Error("too few were killed")
	}
	t.Logf("%d backups and %d restores were killed; %d files", killed, broken, len(acknowledged))
}

func TestInvalidBackupsAreRejected(t *testing.T) {
	t.Parallel()
	data, other := t.TempDir(), t.TempDir()
	server := start(t, data)
	if err := os.WriteFile(filepath.Join(other, "mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept")
	if ended, err := program.Run(t.Context(), nil, "backup", kept, "--data", data); err != nil || ended.ExitCode != 0 {
		t.Fatalf("%+v, %v", ended, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		says string
		args []string
	}{
		{"must be separate folders", []string{"backup", filepath.Join(data, "backups")}},
		{"must be separate folders", []string{"backup", filepath.Join(link, "deep", "er")}},
		{"must be separate folders", []string{"backup", filepath.Dir(data)}},
		{"such as mine", []string{"backup", other}},
		{"no backup", []string{"restore", other}},
		{"does not exist", []string{"restore", filepath.Join(other, "none")}},
		{"is in use", []string{"restore", kept}},
		{"PREFIX", []string{"backup", "s3://"}},
		{"PREFIX", []string{"backup", "s3://bucket/../up"}},
	} {
		ended, err := program.Run(t.Context(), nil, append(test.args, "--data", data)...)
		if err != nil || ended.ExitCode == 0 || !strings.Contains(ended.Stderr, test.says) {
			t.Errorf("cutroom %v ended with %d, %q, %v; want it to say %q", test.args, ended.ExitCode, ended.Stderr, err, test.says)
		}
	}
	server.Kill()
	ended, err := program.Run(t.Context(), nil, "restore", kept, "--data", data)
	if err != nil || !strings.Contains(ended.Stderr, "already contains data") {
		t.Errorf("restore over existing data: %+v, %v", ended, err)
	}
}
