package functions_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/file"
	"cutroom/shared/domain/origin"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/lambdatest"
)

// ownPicture returns a picture with the signature that a deployment's worker gives its results. The worker publishes
// its certificates for verifiers.
func (w *world) ownPicture(t *testing.T) []byte {
	t.Helper()
	who, _ := c2patest.NewIdentity(t)
	must(t, w.signers.Add(t.Context(), who.Chain()))
	must(t, w.signers.Add(t.Context(), who.Chain())) // another worker does this at the same time
	content, err := os.ReadFile(c2patest.SignedPicture(t, who))
	must(t, err)
	return content
}

// verified stores a file and verifies its credentials. size is the size in the file's record.
func (w *world) verified(t *testing.T, f *lambdatest.Function, content []byte, size int64) (int, origin.Report, string) {
	t.Helper()
	id := "file_0B" + rand.Text()[:22]
	now := time.Now().UTC()
	must(t, w.files.Create(t.Context(), file.File{
		ID: id, Account: "acme", Key: "key", Filename: "a.png", MIME: "image/png", Size: size, MD5: md5Of(content),
		Blob: "files/" + id, CreatedAt: now, Lifetime: time.Hour, ExpiresAt: now.Add(time.Hour),
	}, 0))
	w.store(t, "files/"+id, content)
	event, err := os.ReadFile(filepath.Join("..", "events", "c2pa", "file.json"))
	must(t, err)
	answer, err := f.Request(t.Context(), bytes.ReplaceAll(event, []byte(sampleClip), []byte(id)))
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	var report origin.Report
	_ = json.Unmarshal(body, &report) // the body may be an error instead of a report
	return answer.Status, report, string(body)
}

func TestHostileFilesDoNotStopVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(t, "c2pa")
	own := w.ownPicture(t)
	tampered := bytes.Clone(own)
	tampered[len(tampered)-20]++
	elsewhere, err := os.ReadFile(filepath.Join("..", "testdata", "clip.mp4"))
	must(t, err)
	expect := func(name string, content []byte, size int64, status int, state string, its bool) {
		t.Helper()
		got, report, body := w.verified(t, f, content, size)
		if got != status || report.State != state || report.Own != its {
			t.Errorf("%s: %d %s", name, got, body)
		}
	}
	sized := func(content []byte) int64 { return int64(len(content)) }
	expect("its own", own, sized(own), 200, origin.Valid, true)
	expect("a changed one", tampered, sized(tampered), 200, origin.Invalid, false)
	expect("an unsigned one", elsewhere, sized(elsewhere), 200, origin.None, false)
	expect("no picture", []byte("a text"), 6, 200, origin.Unreadable, false)
	expect("nothing at all", nil, 0, 200, origin.Unreadable, false)
	expect("a file that is too large", own, 256<<20+1, 413, "", false)
	source := mathrand.New(mathrand.NewPCG(1, 2))
	for i := range 40 {
		broken := bytes.Clone(own)
		how := fmt.Sprintf("cut after %d bytes", len(own)*i/40)
		if i%2 == 0 {
			broken = broken[:len(own)*i/40]
		} else {
			for range 1 + source.IntN(16) {
				broken[source.IntN(len(broken))] = byte(source.Uint32())
			}
			how = fmt.Sprintf("with other bytes, %d", i)
		}
		status, report, body := w.verified(t, f, broken, sized(broken))
		if status != 200 || report.State == "" || report.State == origin.Trusted {
			t.Errorf("a file %s: %d %s", how, status, body)
		}
	}
	expect("its own after all of them", own, sized(own), 200, origin.Valid, true)
	if log := f.Log(); strings.Count(log, "Content Credentials can be verified") != 1 {
		t.Errorf("the function searched for the library more than once:\n%s", log)
	}
}

func TestMissingLibraryIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(t, "c2pa", "CUTROOM_C2PA_LIBRARY="+filepath.Join(t.TempDir(), "none.so"))
	for range 2 {
		status, _, body := w.verified(t, f, []byte("a text"), 6)
		if status != 404 || !strings.Contains(body, "cutroom inspect") {
			t.Errorf("%d %s", status, body)
		}
	}
	if n := strings.Count(f.Log(), "cannot be verified"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, f.Log())
	}
}
