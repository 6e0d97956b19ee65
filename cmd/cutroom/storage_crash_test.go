package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/servertest"
)

// storageKills is how often TestStorageCrash kills the server.
const storageKills = 12

// TestStorageCrash kills a server by SIGKILL during uploads, over and over, and checks
// from outside that the record and the bytes of every acknowledged upload exist. Between
// some of the kills the database is lost, cut off or replaced by an older copy: the start
// is refused, a repair keeps all bytes, and with the newest database restored everything
// is served again.
func TestStorageCrash(t *testing.T) {
	t.Parallel()
	v := &vault{t, t.TempDir(), map[string][]byte{}}
	older := ""
	refused := 0
	for kill := range storageKills {
		server := start(t, v.data)
		// A busy machine may acknowledge none of the uploads below before the kill, and a
		// database that lacks nothing is rightly not refused.
		v.upload(server.Client(), 1)
		v.wantAll(server.Client())
		v.uploadUntilKilled(server, kill)
		if t.Failed() {
			t.Fatalf("after kill %d", kill)
		}
		if kill%4 != 3 {
			if kill%4 == 0 {
				older = v.copyOfDatabase()
			}
			continue
		}
		newest := v.copyOfDatabase()
		reason := "older than the files"
		switch kill / 4 % 4 {
		case 0:
			v.lose("-wal", "-shm")
		case 1:
			v.putBack(older)
		case 2:
			v.lose("", "-wal", "-shm")
			reason = "missing or empty"
		case 3:
			v.lose("-wal", "-shm")
			if err := os.Truncate(v.path(""), 8192); err != nil {
				t.Fatal(err)
			}
			reason = "damaged"
		}
		v.refused(reason)
		refused++
		v.doctor()
		v.wantAllBytes("repaired")
		v.putBack(newest)
		v.doctor() // the repair has made another database the current one
	}
	v.wantAll(start(t, v.data).Client())
	t.Logf("%d kills, %d refused starts, %d acknowledged files", storageKills, refused, len(v.content))
}

// uploadUntilKilled keeps uploads in progress while the server is killed, and records
// those that were acknowledged.
func (v *vault) uploadUntilKilled(server *servertest.Server, kill int) {
	ctx, cancel := context.WithTimeout(v.t.Context(), 100*time.Millisecond+rand.N(300*time.Millisecond))
	defer cancel()
	var (
		mu      sync.Mutex
		clients sync.WaitGroup
	)
	client := server.Client()
	for uploader := range 4 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				content := []byte(strings.Repeat(fmt.Sprintf("kill %d, uploader %d, file %d; ", kill, uploader, n), 1+n%2000))
				body, length, contentType := servertest.Form{servertest.File("file", "a.bin", content)}.Encode()
				answer, err := client.Call(v.t.Context(), "POST", "/v1/files", body, length, "Content-Type", contentType)
				if err != nil || answer.Status != 200 {
					return // ended by the kill or a limit: nothing was acknowledged
				}
				_, rest, _ := strings.Cut(string(answer.Body), `"file_`)
				id, _, _ := strings.Cut(rest, `"`)
				mu.Lock()
				v.content["file_"+id] = content
				mu.Unlock()
			}
		})
	}
	<-ctx.Done()
	server.Kill()
	clients.Wait()
}
