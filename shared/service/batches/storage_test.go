package batches_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
)

var (
	seeds = flag.Int("storage-seeds", 3, "how many random sequences of calls TestStorageCountMatchesDiskUsage makes")
	seed  = flag.Uint64("storage-seed", 1, "the first of them")
)

const quota = 40_000

// counted finds by binary search how many bytes count toward an account's storage.
func (w *world) counted(account string) int64 {
	w.Helper()
	const far = int64(1) << 40
	probe := file.Reservation{Account: account, ID: "probe", Until: w.now()}
	low, high := int64(0), far // the count is between low and high
	for low < high {
		middle := (low + high) / 2
		_, err := w.db.Files().Reserve(w.Context(), probe, 1, 1, middle+1, w.now())
		w.must(w.db.Files().Release(w.Context(), probe))
		switch {
		case err == nil:
			high = middle
		case fault.Is(err, fault.Limited):
			low = middle + 1
		default:
			w.Fatal(err)
		}
	}
	return low
}

// onDisk returns the bytes in the blob folder, counting a file with several hard links once.
func (w *world) onDisk() (bytes int64) {
	w.Helper()
	seen := map[uint64]bool{}
	w.must(filepath.WalkDir(w.folder, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if node := info.Sys().(*syscall.Stat_t).Ino; !seen[node] {
			seen[node] = true
			bytes += info.Size()
		}
		return nil
	}))
	return bytes
}

// An account cannot exceed its storage by deleting the files of its batches.
func TestBatchesCountTowardsStorage(t *testing.T) {
	w := newWorld(t)
	var made []batch.Batch
	for range 5 {
		f, err := w.uploadWithin("me", strings.NewReader(lines(100)), quota)
		if fault.Is(err, fault.Limited) {
			break
		}
		w.must(err)
		b, err := w.service.Create(t.Context(), w.request(f, quota))
		w.must(w.files.Delete(t.Context(), "me", f.ID))
		if fault.Is(err, fault.Limited) {
			break
		}
		w.must(err)
		made = append(made, b)
	}
	if disk := w.onDisk(); disk > quota {
		t.Errorf("the account may store %d bytes but has %d", quota, disk)
	}
	if len(made) == 0 || len(made) == 5 {
		t.Fatalf("%d batches were made", len(made))
	}
	for _, b := range made {
		_, err := w.service.Cancel(t.Context(), "me", b.ID)
		w.must(err)
	}
	w.run()
	for _, b := range made {
		ended := w.reaches(b, batch.Cancelled)
		if ended.Failures != "" { // the batch was validated before it was cancelled
			w.must(w.files.Delete(t.Context(), "me", ended.Failures))
		}
	}
	await.Until(w, "the storage to be free", func() bool { return w.counted("me") == 0 })
	if disk := w.onDisk(); disk > 0 {
		t.Errorf("%d bytes are left", disk)
	}
}

func TestBatchWaitsForStorage(t *testing.T) {
	w := newWorld(t)
	long := `{"text": "` + strings.Repeat("x", 10_000) + `"}`
	w.tier.StoredBytes = quota
	w.set(func(_ context.Context, body string) gateway.BatchResponse {
		time.Sleep(5 * time.Millisecond) // results are kept every 10 ms
		answer := answered("me", "key_me", body)
		answer.Body = []byte(long)
		return answer
	})
	w.intervals.Keep = 10 * time.Millisecond
	w.runner = w.newRunner()
	const calls = 100
	f, err := w.uploadWithin("me", strings.NewReader(lines(calls)), quota)
	w.must(err)
	b, err := w.service.Create(t.Context(), w.request(f, quota))
	w.must(err)
	w.run()
	await.Until(w, "the storage to be full", func() bool { return w.counted("me") > quota })
	before := w.counted("me")
	time.Sleep(100 * time.Millisecond)
	if most := before + 50_000; w.counted("me") > most {
		t.Errorf("the batch continued: %d bytes are stored", w.counted("me"))
	}
	if all, _ := w.calls(); all == calls {
		t.Error("all calls were made although the storage was full")
	}
	w.mu.Lock()
	w.tier.StoredBytes = 0
	w.mu.Unlock()
	w.reaches(b, batch.Completed)
}

// All bytes on disk count. Once the batches have ended, nothing beyond those bytes counts.
func TestStorageCountMatchesDiskUsage(t *testing.T) {
	for n := range uint64(*seeds) {
		w := newWorld(t)
		random := rand.New(rand.NewPCG(*seed+n, 0))
		w.set(func(_ context.Context, body string) gateway.BatchResponse { return answered("me", "key_me", body) })
		stop := w.run()
		sweeper := &file.Sweeper{Store: w.db.Files(), Blobs: w.blobs, Now: w.now}
		var files []file.File
		var batches []batch.Batch
		for range 40 {
			switch random.IntN(7) {
			case 0, 1:
				f, err := w.uploadWithin("me", strings.NewReader(lines(1+random.IntN(100))), quota)
				if err == nil {
					files = append(files, f)
				} else if !fault.Is(err, fault.Limited) {
					t.Fatal(err)
				}
			case 2, 3:
				if len(files) == 0 {
					continue
				}
				b, err := w.service.Create(t.Context(), w.request(files[random.IntN(len(files))], quota))
				switch {
				case err == nil:
					batches = append(batches, b)
				case !fault.Is(err, fault.Limited) && !fault.Is(err, fault.NotFound):
					t.Fatal(err)
				}
			case 4:
				if len(files) > 0 {
					i := random.IntN(len(files))
					if err := w.files.Delete(t.Context(), "me", files[i].ID); err != nil && !fault.Is(err, fault.NotFound) {
						t.Fatal(err)
					}
				}
			case 5:
				if len(batches) > 0 {
					b := batches[random.IntN(len(batches))]
					if _, err := w.service.Cancel(t.Context(), "me", b.ID); err != nil && !fault.Is(err, fault.Conflict) {
						t.Fatal(err)
					}
				}
			case 6: // the process dies and another takes over
				w.dead.Store(true)
				stop()
				w.must(w.db.Files().ReleaseAll(t.Context()))
				w.runner = w.newRunner()
				if random.IntN(4) == 0 {
					w.ahead.Add(int64(batch.Window))
				}
				stop = w.run()
			}
			w.must(sweeper.Sweep(t.Context()))
			// The size of a results file is counted a moment after it is written.
			await.Until(w, fmt.Sprintf("seed %d: the count to equal the bytes on disk", *seed+n), func() bool {
				return w.onDisk() <= w.counted("me")
			})
		}
		for _, b := range batches {
			await.Until(w, "the batches to end", func() bool {
				b, err := w.service.Get(t.Context(), "me", b.ID)
				w.must(err)
				return b.Status.Ended()
			})
		}
		await.Until(w, "the blobs of batches to be deleted", func() bool {
			left, err := w.db.Batches().Finished(t.Context(), 1)
			w.must(err)
			return len(left) == 0
		})
		stop()
		w.must(sweeper.Sweep(t.Context()))
		if disk, counted := w.onDisk(), w.counted("me"); disk != counted {
			t.Fatalf("seed %d: at the end %d bytes are on disk but %d count", *seed+n, disk, counted)
		}
	}
}

func (w *world) request(f file.File, limit int64) batch.Request {
	return batch.Request{Account: f.Account, Key: "key_" + f.Account, Endpoint: endpoint, Input: f.ID, StoredBytes: limit}
}
