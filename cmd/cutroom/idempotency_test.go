package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// TestKeysOutliveACrash kills the server by SIGKILL while many clients create things
// under keys, over and over. Then all of them repeat everything: answered requests get
// the same answer, and nothing exists twice.
func TestKeysOutliveACrash(t *testing.T) {
	t.Parallel()
	const kills, clients = 4, 8
	data := t.TempDir()
	settings := []string{"CUTROOM_WORKERS=1", "CUTROOM_CATALOG=" + smallPictures(t)}
	sent := &keyed{answers: map[string]string{}}
	lost := 0
	for kill := range kills {
		server := start(t, data, settings...)
		known := sent.answered()
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				for i, answered := 0, true; answered; i++ { // until the kill
					if key := fmt.Sprintf("%d-%d-%d", kill, client, i); client == 0 && i < 4 {
						answered = sent.send(t, server.Client(), "job-"+key)
					} else {
						answered = sent.send(t, server.Client(), "file-"+key)
					}
				}
			})
		}
		after := 1 + rand.IntN(40)
		patience.Until(t, "answers", func() bool { return sent.answered() >= known+after })
		server.Kill()
		all.Wait()
	}
	for _, id := range sent.answers {
		if id == "" {
			lost++
		}
	}
	if lost < kills {
		t.Errorf("%d answers were lost in %d kills, which proves nothing", lost, kills)
	}

	client := start(t, data, settings...).Client()
	files, jobs, remembered := map[string]bool{}, map[string]bool{}, 0
	for key, before := range sent.answers {
		id, replayed, err := create(bounded(t), client, key)
		switch {
		case err != nil:
			t.Errorf("%s, sent again: %v", key, err)
		case before != "" && (id != before || !replayed):
			t.Errorf("%s was answered with %s, and then with %s (replayed: %t)", key, before, id, replayed)
		case before == "" && replayed:
			remembered++
		}
		if made := map[bool]map[string]bool{true: jobs, false: files}[key[0] == 'j']; made[id] {
			t.Errorf("%s is of two keys", id)
		} else {
			made[id] = true
		}
	}
	t.Logf("%d jobs and %d files; of %d answers that were lost %d stood for something", len(jobs), len(files), lost,
		remembered)
	for path, want := range map[string]int{"jobs": len(jobs), "files": len(files)} {
		if got := listed(t, client, path); got != want {
			t.Errorf("%d %s for %d keys", got, path, want)
		}
	}
}

// keyed holds the keys that were sent, and the ids that were answered, if any.
type keyed struct {
	mu      sync.Mutex
	answers map[string]string
}

// answered returns how many answers there were.
func (k *keyed) answered() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range k.answers {
		if id != "" {
			n++
		}
	}
	return n
}

// send sends a request and reports whether it was answered.
func (k *keyed) send(t *testing.T, client *servertest.Client, key string) bool {
	id, replayed, err := create(bounded(t), client, key)
	if replayed {
		t.Errorf("%s was never sent before", key)
	}
	if err != nil {
		id = "" // the server was killed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[key] = id
	return err == nil
}

// create creates a job or a file, by the first letters of the key.
func create(ctx context.Context, client *servertest.Client, key string) (id string, replayed bool, err error) {
	path, form := "/v1/files", servertest.Form{servertest.File("file", "note.txt", []byte(key))}
	if key[0] == 'j' {
		path, form = "/v1/jobs/gen-image-2", servertest.Form{servertest.File("data", "picture.png", fixtures.picture),
			servertest.Text("prompt", key)}
	}
	body, length, contentType := form.Encode()
	answer, err := client.Call(ctx, http.MethodPost, path, body, length, "Content-Type", contentType, "Idempotency-Key",
		key)
	if err != nil {
		return "", false, err
	}
	var made struct {
		ID  string
		Job string `json:"job_id"`
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &made) != nil {
		return "", false, (*servertest.Refusal)(&answer)
	}
	return made.ID + made.Job, answer.Header.Get("Idempotent-Replayed") == "true", nil
}

// listed counts the account's jobs or files.
func listed(t *testing.T, client *servertest.Client, of string) (count int) {
	t.Helper()
	for cursor := ""; ; {
		answer, err := client.Get(bounded(t), "/v1/"+of+"?limit=1000"+cursor)
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s, %v", answer.Status, answer.Body, err)
		}
		page := map[string]json.RawMessage{}
		var entries []any
		var next *string
		if json.Unmarshal(answer.Body, &page) != nil || json.Unmarshal(page[of], &entries) != nil ||
			json.Unmarshal(page["next_cursor"], &next) != nil {
			t.Fatalf("the page is %s", answer.Body)
		}
		count += len(entries)
		if next == nil {
			return count
		}
		cursor = "&cursor=" + *next
	}
}
