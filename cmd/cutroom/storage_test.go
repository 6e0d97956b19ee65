package main_test

import (
	"bytes"
	"crypto/md5"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/bench/filled"
	"cutroom/shared/testkit/servertest"
)

// vault is a data folder with acknowledged uploads.
type vault struct {
	t       *testing.T
	data    string
	content map[string][]byte
}

// newVault returns a vault whose server was killed. If early is set, it is called before the last uploads.
func newVault(t *testing.T, early func(v *vault)) *vault {
	t.Helper()
	v := &vault{t, t.TempDir(), map[string][]byte{}}
	server := start(t, v.data)
	v.upload(server.Client(), 10)
	if early != nil {
		early(v)
	}
	v.upload(server.Client(), 10)
	server.Kill()
	return v
}

func (v *vault) copied(t *testing.T) *vault {
	t.Helper()
	other := &vault{t, t.TempDir(), maps.Clone(v.content)}
	if err := os.CopyFS(other.data, os.DirFS(v.data)); err != nil {
		t.Fatal(err)
	}
	return other
}

func (v *vault) upload(client *servertest.Client, files int) {
	v.t.Helper()
	for range files {
		content := fmt.Appendf(nil, "file %d", len(v.content))
		v.content[store(v.t, client, content).ID] = content
	}
}

func (v *vault) path(end string) string { return filepath.Join(v.data, "cutroom.db"+end) }

func (v *vault) copyOfDatabase() string {
	v.t.Helper()
	folder := v.t.TempDir()
	for _, end := range []string{"", "-wal"} {
		content, err := os.ReadFile(v.path(end))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "cutroom.db"+end), content, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.t.Fatal(err)
		}
	}
	return folder
}

// putBack replaces the database with the copy in folder and removes its journal files.
func (v *vault) putBack(folder string) {
	v.t.Helper()
	v.lose("", "-wal", "-shm")
	if err := os.CopyFS(v.data, os.DirFS(folder)); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vault) lose(ends ...string) {
	v.t.Helper()
	for _, end := range ends {
		if err := os.Remove(v.path(end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.t.Fatal(err)
		}
	}
}

// bytes returns the contents of all files in the blob folder, as a set.
func (v *vault) bytes() map[string]bool { return v.bytesBelow("blobs") }

func (v *vault) bytesBelow(folder string) map[string]bool {
	v.t.Helper()
	all := map[string]bool{}
	for _, file := range filesIn(v.t, filepath.Join(v.data, folder)) {
		content, err := os.ReadFile(filepath.Join(v.data, folder, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the running server moves blobs that have no record
		}
		if err != nil {
			v.t.Fatal(err)
		}
		all[string(content)] = true
	}
	return all
}

// wantAllBytes checks that the bytes of all acknowledged uploads still exist.
func (v *vault) wantAllBytes(when string) {
	v.t.Helper()
	have := v.bytes()
	for id, content := range v.content {
		if !have[string(content)] {
			v.t.Errorf("%s: the bytes of %s are missing", when, id)
		}
	}
}

// wantAll checks that every file has a record and can be read.
func (v *vault) wantAll(client *servertest.Client) {
	v.t.Helper()
	have := v.bytesBelow("blobs/files")
	for id, content := range v.content {
		var f storedFile
		call(v.t, client, http.MethodGet, "/v1/files/"+id, nil, "", &f)
		if f.MD5 != fmt.Sprintf("%x", md5.Sum(content)) || !have[string(content)] {
			v.t.Errorf("%s: the record is %+v, and its bytes exist: %t", id, f, have[string(content)])
		}
	}
}

// startFails checks that the server does not start, gives the reason, and changes nothing.
func (v *vault) startFails(reason string) {
	v.t.Helper()
	before := v.bytes()
	server, err := program.Launch(v.data)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(server.Kill)
	err = server.Ready(bounded(v.t))
	if err == nil {
		v.t.Fatal("the server started")
	}
	code := "exited with code 1:"
	if strings.Contains(reason, "damaged") {
		code = "exited with code 8:" // systemd does not restart the service after this exit code
	}
	for _, words := range []string{
		reason, "cutroom.db with its cutroom.db-wal", "cutroom doctor --repair", code,
	} {
		if !strings.Contains(err.Error(), words) {
			v.t.Errorf("the start failed with\n%v\nwhich does not contain %q", err, words)
		}
	}
	if after := v.bytes(); len(after) != len(before) {
		v.t.Errorf("%d blobs became %d", len(before), len(after))
	}
	// Creating a key must not create another database either.
	if reason == "missing or empty" {
		ended, err := program.Run(bounded(v.t), []string{"CUTROOM_DATA=" + v.data}, "keys", "create", "--account", "acme")
		if err != nil || ended.ExitCode == 0 {
			v.t.Errorf("keys create: %+v, %v", ended, err)
		}
	}
}

func (v *vault) doctor() string {
	v.t.Helper()
	ended, err := program.Run(bounded(v.t), []string{"CUTROOM_DATA=" + v.data}, "doctor", "--repair")
	if err != nil || ended.ExitCode != 0 {
		v.t.Fatalf("doctor --repair: %+v, %v", ended, err)
	}
	return ended.Stdout
}

// Without its database, the server does not start and changes nothing. After a repair, it starts. Every acknowledged
// upload is still intact, even if the database has no record of it.
func TestServerDoesNotStartWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	var older string
	whole := newVault(t, func(v *vault) { older = v.copyOfDatabase() })
	for name, c := range map[string]struct {
		lose   func(v *vault)
		reason string
	}{
		"a lost log":    {func(v *vault) { v.lose("-wal", "-shm") }, "older than the stored files"},
		"an older copy": {func(v *vault) { v.putBack(older) }, "older than the stored files"},
		"another database": {func(v *vault) {
			other := newVault(v.t, nil)
			v.putBack(other.copyOfDatabase())
		}, "does not belong to the stored files"},
		"missing":                {func(v *vault) { v.lose("", "-wal", "-shm") }, "missing or empty"},
		"missing beside its log": {func(v *vault) { v.lose("", "-shm") }, "missing or empty"},
		"empty": {func(v *vault) {
			v.lose("-wal", "-shm")
			if err := os.Truncate(v.path(""), 0); err != nil {
				v.t.Fatal(err)
			}
		}, "missing or empty"},
		"damaged": {func(v *vault) {
			v.lose("-wal", "-shm")
			if err := os.WriteFile(v.path(""), bytes.Repeat([]byte("no database "), 10000), 0o600); err != nil {
				v.t.Fatal(err)
			}
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := whole.copied(t)
			newest := v.copyOfDatabase()
			c.lose(v)
			v.startFails(c.reason)
			v.wantAllBytes("after the failed start")
			v.doctor()
			v.wantAllBytes("repaired")
			server := start(t, v.data)
			v.wantAllBytes("started")
			stop(t, server)
			if printed := v.doctor(); !strings.Contains(printed, "set aside on") {
				t.Errorf("the unknown files are not listed:\n%s", printed)
			}
			// The newest database is restored, and all files exist again.
			v.putBack(newest)
			server, err := program.Launch(v.data)
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Ready(bounded(t)); err != nil {
				server.Kill()
				v.doctor() // this database has newer records than the one after the repair
				server = start(t, v.data)
			}
			endWith(t, server)
			v.wantAll(server.Client())
			v.upload(server.Client(), 1)
			stop(t, server)
			v.wantAll(start(t, v.data).Client())
		})
	}
}

// A repair requires that the server is stopped. It lists the blobs without a record.
func TestUnknownFilesAreSetAside(t *testing.T) {
	t.Parallel()
	v := newVault(t, nil)
	for _, name := range []string{"files/file_one", "files/file_two", "jobs/job_x/data"} {
		path := filepath.Join(v.data, "blobs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, fixtures.tiny, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	server := start(t, v.data)
	eventually(t, "the log counts the blobs that were set aside", func() bool {
		return strings.Contains(server.Log(), "set aside") && strings.Contains(server.Log(), "blobs=3")
	})
	ended, err := program.Run(bounded(t), []string{"CUTROOM_DATA=" + v.data}, "doctor", "--repair")
	if err != nil || ended.ExitCode == 0 || !strings.Contains(ended.Stderr, "stop the server") {
		t.Errorf("a repair while a server runs: %+v, %v", ended, err)
	}
	stop(t, server)
	if printed := v.doctor(); !strings.Contains(printed, "3 files") || !strings.Contains(printed, "files/file_two") {
		t.Errorf("a repair does not list the files:\n%s", printed)
	}
}

// In a partly saved database, an account's byte count may differ from the sum of its rows. A repair recalculates it.
func TestRepairRecountsStorage(t *testing.T) {
	t.Parallel()
	v := newVault(t, nil)
	database, err := sql.Open("sqlite", v.path(""))
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	_, err = database.ExecContext(t.Context(), `
		insert into reservation (id, account, bytes, until) values ('one', 'other', 7, 0);
		update storage set bytes = 1 << 40 where account = 'dev';
		delete from storage where account = 'other';
		insert into storage (account, bytes) values ('gone', 5)`)
	if err != nil {
		t.Fatal(err)
	}
	v.doctor()
	size := 0
	for _, content := range v.content {
		size += len(content)
	}
	var got string
	err = database.QueryRowContext(t.Context(),
		"select group_concat(account || ' ' || bytes, ', ' order by account) from storage").Scan(&got)
	if want := fmt.Sprintf("dev %d, other 7", size); err != nil || got != want {
		t.Errorf("storage has %q, %v; want %q", got, err, want)
	}
}

// When root runs commands on another user's data folder, that user stays the owner of every file.
func TestRootKeepsOwnerOfDataFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	const other = 65534
	v := newVault(t, nil)
	err := filepath.WalkDir(v.data, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, other, other))
	})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.WriteFile(elsewhere, nil, 0o600),
		os.Symlink(elsewhere, filepath.Join(v.data, "link"))); err != nil {
		t.Fatal(err)
	}
	v.lose("", "-wal", "-shm")
	v.doctor()
	newKey(t, v.data, nil, "--account", "acme")
	err = filepath.WalkDir(v.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != other {
			t.Errorf("%s is root's", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the target of a link changed its owner: %v", err)
	}
}

func TestFailedBackupKeepsTheLastOne(t *testing.T) {
	t.Parallel()
	v := newVault(t, nil)
	if err := filled.Write(t.Context(), v.path(""), filled.Files{
		Account: "many", Count: 60_000, Name: filled.LongName, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "backup")
	run := func(args ...string) servertest.Ended {
		t.Helper()
		ended, err := program.Run(bounded(t), []string{"CUTROOM_DATA=" + v.data}, args...)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if ended := run("backup", saved); ended.ExitCode != 0 {
		t.Fatalf("the first backup: %+v", ended)
	}
	v.wipe()
	if ended := run("backup", saved); ended.ExitCode == 0 || !strings.Contains(ended.Stderr, "damaged") {
		t.Errorf("a backup of the damaged database: %+v", ended)
	}
	if ended := run("restore", "--check", saved); ended.ExitCode != 0 || !strings.Contains(ended.Stdout, "is complete") {
		t.Errorf("the last good backup: %+v", ended)
	}
}

// wipe overwrites some pages in the middle of the database. The write-ahead log must be empty.
func (v *vault) wipe() {
	v.t.Helper()
	file, err := os.OpenFile(v.path(""), os.O_RDWR, 0)
	if err != nil {
		v.t.Fatal(err)
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte{0xa5}, 64<<10), info.Size()/2&^0xffff)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		v.t.Fatal(err)
	}
	if size, err := os.Stat(v.path("-wal")); err == nil && size.Size() > 0 {
		v.t.Fatal("the log is not empty")
	}
}

func TestServerLocksItsNewBlobs(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	start(t, first)
	if err := os.Symlink(filepath.Join(first, "blobs"), filepath.Join(second, "blobs")); err != nil {
		t.Fatal(err)
	}
	startFails(t, []string{"CUTROOM_DATA=" + first}, "CUTROOM_DATA", first, "another server")
	startFails(t, []string{"CUTROOM_DATA=" + second}, filepath.Join(first, "blobs"), "in use by another server")
}
