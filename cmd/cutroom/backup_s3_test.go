package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
)

// A killed backup leaves the previous backup complete. The next backup adds only new data.
func TestBucketBackupSurvivesKills(t *testing.T) {
	t.Parallel()
	cloud := awstest.Start(t)
	kept := "s3://" + cloud.MakeBucket(t) + "/cutroom/home"
	v := newVault(t, nil)
	runs := func(within time.Duration, args ...string) (string, bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(bounded(t), within)
		defer cancel()
		ended, err := program.Run(ctx, cloud.Environment(), args...)
		if err == nil && ended.ExitCode != 0 {
			t.Fatalf("cutroom %v: %+v", args, ended)
		}
		return ended.Stdout, err == nil
	}
	untilDone := func(args ...string) (killed int) {
		t.Helper()
		for within := 20 * time.Millisecond; ; within += within / 2 {
			if _, done := runs(within, args...); done {
				return killed
			}
			killed++
		}
	}
	backups := untilDone("backup", kept, "--data", v.data)
	runs(await.Max, "restore", kept, "--check")

	// Store more files, then kill the second backup several times. The first must stay complete.
	server := start(t, v.data)
	v.upload(server.Client(), 5)
	stop(t, server)
	for within := 20 * time.Millisecond; ; within += within / 2 {
		printed, done := runs(within, "backup", kept, "--data", v.data)
		runs(await.Max, "restore", kept, "--check")
		if done {
			if !strings.Contains(printed, "25 files") {
				t.Errorf("the second backup printed %q", printed)
			}
			break
		}
		backups++
	}
	into := filepath.Join(t.TempDir(), "restored")
	restores := untilDone("restore", kept, "--data", into)
	if _, err := os.Stat(filepath.Join(into, "restoring")); err == nil {
		t.Error("the restore did not finish")
	}
	(&vault{t, into, v.content}).wantAll(start(t, into).Client())
	if backups < 2 || restores < 1 {
		t.Errorf("too few were killed: %d backups, %d restores", backups, restores)
	}
	t.Logf("%d backups and %d restores were killed", backups, restores)
}
