package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"cutroom/shared/domain/file"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/servertest"
)

// versionsFolder contains a fixture for each version: NAME.tar.gz is the data folder of a killed
// server, and NAME.json describes its contents.
var versionsFolder = filepath.Join("testdata", "versions")

type version struct {
	// Schema is the database's schema version. MadeAt is when the fixture was made.
	Schema int       `json:"schema"`
	MadeAt time.Time `json:"made_at"`
	// Key is a permanent key of the fixture's account.
	Key string `json:"key"`
	// Files maps stored files' ids to the SHA-256 of their contents. Ended maps ended jobs' ids to the SHA-256 of
	// their results. Open lists open jobs.
	Files map[string]string `json:"files"`
	Ended map[string]string `json:"ended"`
	Open  []string          `json:"open"`
	// Completions is the expected usage: chat completions and opened sessions, but not batch requests.
	Completions int `json:"completions"`
	// More describes data that only the fixtures of v0.1.0 and later versions contain.
	More *versionMore `json:"more,omitempty"`
}

type versionMore struct {
	// Budget is the account's monthly budget for jobs.
	Budget int `json:"budget"`
	// Batch is an unfinished batch with the given number of requests.
	Batch          string `json:"batch"`
	BatchCalls     int    `json:"batch_calls"`
	SessionSeconds int    `json:"session_seconds"`
	// Notified is a job whose webhook delivery failed and is due to be retried.
	Notified string `json:"told"`
	// Announced is an announced upload that has not arrived yet. Content is what to upload.
	Announced string `json:"announced"`
	Content   string `json:"content"`
}

func digestOf(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

func ask(t *testing.T, server *servertest.Server, key, method, path, body string, into any) {
	t.Helper()
	client := &servertest.Client{URL: server.InferenceURL()}
	answer, err := client.Call(bounded(t), method, path, strings.NewReader(body), int64(len(body)),
		"Content-Type", "application/json", "Authorization", "Bearer "+key)
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, into) != nil {
		t.Fatalf("%s %s: %d %s, %v", method, path, answer.Status, answer.Body, err)
	}
}

func (v version) requests(t *testing.T, server *servertest.Server) int {
	t.Helper()
	requests, _ := v.used(t, server)
	return requests
}

func (v version) used(t *testing.T, server *servertest.Server) (requests, sessionSeconds int) {
	t.Helper()
	day := v.MadeAt.UTC().Format(time.DateOnly)
	var used struct {
		Data []struct {
			Requests       int
			BatchRequests  int `json:"batch_requests"`
			SessionSeconds int `json:"session_seconds"`
		}
	}
	ask(t, server, v.Key, http.MethodGet, "/v1/usage?from="+day+"&to="+day, "", &used)
	for _, row := range used.Data {
		requests += row.Requests - row.BatchRequests
		sessionSeconds += row.SessionSeconds
	}
	return requests, sessionSeconds
}

// After an upgrade, earlier usage still counts and unfinished jobs complete.
func TestEarlierVersionsCanBeOpened(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(versionsFolder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("the fixtures are %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			data, v := unpacked(t, strings.TrimSuffix(name, ".json"))
			server := start(t, data, "CUTROOM_LOG_LEVEL=warn", fastBatches(t))
			v.want(t, data, server)
		})
	}
}

// fastBatches returns a setting that removes the limit on requests per minute, so that batches do not take minutes.
func fastBatches(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tiers.yaml")
	tiers := "default: {pending_jobs: 100, realtime_sessions: 5}\ndev: {realtime_sessions: 5}\n"
	if err := os.WriteFile(name, []byte(tiers), 0o600); err != nil {
		t.Fatal(err)
	}
	return "CUTROOM_TIERS=" + name
}

// want fails the test unless all of the fixture's data exists.
func (v version) want(t *testing.T, data string, server *servertest.Server) {
	t.Helper()
	ctx := steps(t)
	client := &servertest.Client{URL: server.URL(), Key: v.Key}
	var listed struct{ Files []storedFile }
	call(t, client, http.MethodGet, "/v1/files", nil, "", &listed)
	kept := map[string]bool{}
	for content := range (&vault{t: t, data: data}).bytesBelow("blobs/files") {
		kept[digestOf([]byte(content))] = true
	}
	found := 0
	for _, f := range listed.Files {
		digest, known := v.Files[f.ID]
		if !known && v.More != nil {
			continue // a result of the batch, which may have ended by now
		}
		if !kept[digest] {
			t.Errorf("the bytes of the file %s are missing", f.ID)
		}
		found++
	}
	if found != len(v.Files) || found == 0 {
		t.Errorf("%d files are listed, want %d", found, len(v.Files))
	}
	for id, digest := range v.Ended {
		answer, err := client.Content(ctx, id)
		if err != nil || answer.Status != http.StatusOK || digestOf(answer.Body) != digest {
			t.Errorf("the result of %s: status %d, %v", id, answer.Status, err)
		}
	}
	for _, id := range v.Open {
		job, err := client.Await(bounded(t), id, nil)
		if err != nil || job.Status != "completed" {
			t.Errorf("the job %s that had not ended is %+v, %v", id, job, err)
		}
	}
	if counted := v.requests(t, server); counted != v.Completions || counted == 0 {
		t.Errorf("%d completions were counted, want %d", counted, v.Completions)
	}
	if v.More != nil {
		v.More.want(t, data, server, v)
	}
}

// want fails the test unless the additional data exists and its processing continues.
func (m versionMore) want(t *testing.T, data string, server *servertest.Server, v version) {
	t.Helper()
	ctx := steps(t)
	client := &servertest.Client{URL: server.URL(), Key: v.Key}
	ended, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, "budgets", "list", "--account", "acme", "--json")
	if err != nil || ended.ExitCode != 0 || !strings.Contains(ended.Stdout, fmt.Sprint(m.Budget)) {
		t.Errorf("the budget of %d: %+v, %v", m.Budget, ended, err)
	}
	if _, seconds := v.used(t, server); seconds != m.SessionSeconds || seconds == 0 {
		t.Errorf("sessions were open for %d s, want %d", seconds, m.SessionSeconds)
	}
	var deliveries struct {
		Deliveries []struct{} `json:"deliveries"`
	}
	call(t, client, http.MethodGet, "/v1/jobs/"+m.Notified+"/deliveries", nil, "", &deliveries)
	if len(deliveries.Deliveries) == 0 {
		t.Errorf("the webhook attempts of %s are missing", m.Notified)
	}
	eventually(t, "the batch ends", func() bool {
		var batch struct {
			Status string
			Counts struct{ Completed, Failed int } `json:"request_counts"`
		}
		ask(t, server, v.Key, http.MethodGet, "/v1/batches/"+m.Batch, "", &batch)
		if batch.Status == "completed" && (batch.Counts.Completed != m.BatchCalls || batch.Counts.Failed != 0) {
			t.Fatalf("the batch is %+v, want %d calls", batch, m.BatchCalls)
		}
		return batch.Status == "completed"
	})
	m.wantAnnounced(t, data, server, client)
}

// wantAnnounced fails the test unless the server accepts the announced upload.
func (m versionMore) wantAnnounced(
	t *testing.T, data string, server *servertest.Server, client *servertest.Client,
) {
	t.Helper()
	if answer, err := client.Get(bounded(t), "/v1/files/"+m.Announced); err != nil || answer.Status != http.StatusNotFound {
		t.Errorf("the file exists before its bytes arrive: %d, %v", answer.Status, err)
	}
	// The client's upload URL has expired, so sign another one. The announcement is still valid,
	// because its times are shifted.
	secret, err := os.ReadFile(filepath.Join(data, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := api.NewUploadURLs(bytes.TrimSpace(secret), time.Now).Sign(t.Context(),
		file.File{ID: m.Announced, CreatedAt: time.Now(), UploadUntil: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&servertest.Client{URL: server.URL()}).Call(bounded(t), http.MethodPut, signed.URL,
		strings.NewReader(m.Content), int64(len(m.Content)))
	if err != nil || answer.Status != http.StatusOK && answer.Status != http.StatusNoContent {
		t.Errorf("the bytes of the announced upload: %d %s, %v", answer.Status, answer.Body, err)
	}
	var found storedFile
	call(t, client, http.MethodGet, "/v1/files/"+m.Announced, nil, "", &found)
}

func TestNewerVersionIsRejected(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(versionsFolder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("the fixtures are %v, %v", names, err)
	}
	data, v := unpacked(t, strings.TrimSuffix(names[0], ".json"))
	kept, into := filepath.Join(t.TempDir(), "kept"), filepath.Join(t.TempDir(), "restored")
	for _, args := range [][]string{{"backup", kept, "--data", data}, {"restore", kept, "--data", into}} {
		if ended, err := program.Run(t.Context(), nil, args...); err != nil || ended.ExitCode != 0 {
			t.Fatalf("cutroom %v: %+v, %v", args, ended, err)
		}
	}
	restored := start(t, into, "CUTROOM_LOG_LEVEL=warn", fastBatches(t))
	v.want(t, into, restored)
	restored.Kill()

	change(t, filepath.Join(into, "cutroom.db"), setNewer)
	server, err := program.Launch(into)
	if err != nil {
		t.Fatal(err)
	}
	err = server.Ready(bounded(t))
	server.Kill()
	if err == nil || !strings.Contains(err.Error(), "version 9999, but this program supports only versions up to") {
		t.Errorf("the server started on a newer folder: %v", err)
	}
	// A backup from a newer version is rejected too.
	makeNewer(t, kept)
	for _, args := range [][]string{
		{"backup", kept + "2", "--data", into}, {"keys", "list", "--data", into}, {"restore", kept, "--data", t.TempDir()},
	} {
		ended, err := program.Run(t.Context(), nil, args...)
		if err != nil || ended.ExitCode == 0 || !strings.Contains(ended.Stderr, "supports only versions up to") {
			t.Errorf("cutroom %v of a newer folder: %+v, %v", args, ended, err)
		}
	}
}

func change(t *testing.T, path string, do func(db *sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if err := errors.Join(do(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func makeNewer(t *testing.T, kept string) {
	t.Helper()
	path := filepath.Join(kept, "manifest.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(kept, "database", manifest["id"].(string))
	change(t, records, setNewer)
	content, err := os.ReadFile(records)
	if err != nil {
		t.Fatal(err)
	}
	manifest["database"] = map[string]any{"size": len(content), "sha256": digestOf(content)}
	if text, err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func setNewer(db *sql.DB) error {
	_, err := db.Exec("pragma user_version = 9999")
	return err
}

// unpacked unpacks a fixture as if it had just been made.
func unpacked(t *testing.T, name string) (data string, v version) {
	t.Helper()
	facts, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(facts, &v); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data = t.TempDir()
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(data, header.Name)
		content, err := io.ReadAll(files)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change(t, filepath.Join(data, "cutroom.db"), func(db *sql.DB) error {
		return shift(t.Context(), db, v.MadeAt, time.Since(v.MadeAt)-time.Second)
	})
	return data, v
}

// shift adds a duration to all times near the given one, in a database of any version. Times are
// integers in milliseconds. The audit log is left out, because it must not change.
func shift(ctx context.Context, db *sql.DB, near time.Time, by time.Duration) error {
	columns, err := texts(ctx, db, `select 'update "' || m.name || '" set "' || c.name || '" = "' || c.name || '" + ?1
		where "' || c.name || '" between ?2 and ?3' from sqlite_schema m, pragma_table_info(m.name) c
		where m.type = 'table' and c.type like 'integer' and m.name <> 'audit'`)
	if err != nil {
		return err
	}
	const span = 366 * 24 * time.Hour
	for _, column := range columns {
		if _, err := db.ExecContext(ctx, column, by.Milliseconds(), near.Add(-span).UnixMilli(),
			near.Add(span).UnixMilli()); err != nil {
			return fmt.Errorf("%s: %w", column, err)
		}
	}
	return nil
}

func texts(ctx context.Context, db *sql.DB, query string) ([]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}
