package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/testkit/servertest"
)

const (
	uploadSize  = 1 << 30
	uploadPairs = 3
	// uploadBar is the maximum upload time, as a multiple of the floor. uploadMemoryBar is the maximum memory, in
	// bytes, on top of the idle server's.
	uploadBar       = 1.0
	uploadMemoryBar = 24 << 20
)

// upload posts 1 GiB with curl. The floor runs tee and md5sum on the same file, followed by a sync.
func (b *bench) upload(ctx context.Context) error {
	source := filepath.Join(b.folder, "large.mp4")
	if err := b.makeLargeClip(source); err != nil {
		return err
	}
	defer os.Remove(source)
	server, stop, err := b.serve(ctx, "upload", "CUTROOM_MAX_UPLOAD=2GiB")
	if err != nil {
		return err
	}
	defer stop()
	idle, err := memory(server.PID(), "VmRSS")
	if err != nil {
		return err
	}

	f := uploadFigures{idle: idle}
	for pair := range uploadPairs {
		var post, floor time.Duration
		steps := []func() error{
			func() (err error) { floor, err = b.teeAndSum(ctx, source); return err },
			func() (err error) {
				var reached int64
				post, reached, err = b.post(ctx, server, source)
				f.peak = max(f.peak, reached)
				return err
			},
		}
		if pair%2 == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		f.posts, f.floors = append(f.posts, post), append(f.floors, floor)
		f.ratios = append(f.ratios, post.Seconds()/floor.Seconds())
	}
	b.reportUpload(f)
	return nil
}

// uploadFigures holds the measurements of the uploads: the times of each upload and its floor, each
// upload's time as a multiple of its floor, and the server's memory in bytes, idle and at its peak.
type uploadFigures struct {
	posts, floors []time.Duration
	ratios        []float64
	idle, peak    int64
}

func (b *bench) reportUpload(f uploadFigures) {
	ratios := slices.Sorted(slices.Values(f.ratios))
	middle := ratios[len(ratios)/2]
	b.table.add(row{
		what:     "upload of 1 GiB",
		measured: short(median(f.posts)),
		floor:    short(median(f.floors)) + " tee, md5sum, fsync",
		ratio:    fmt.Sprintf("%.2f x (%.2f to %.2f)", middle, ratios[0], ratios[len(ratios)-1]),
		bar:      fmt.Sprintf("%.1f x", uploadBar),
		verdict:  verdictOf(middle <= uploadBar),
	})
	b.table.add(row{
		what:     "the server's memory during the upload",
		measured: mebibytes(f.peak),
		floor:    mebibytes(f.idle) + " idle",
		ratio:    "+" + mebibytes(f.peak-f.idle),
		bar:      "+" + mebibytes(uploadMemoryBar),
		verdict:  verdictOf(f.peak-f.idle <= uploadMemoryBar),
	})
}

// makeLargeClip writes the sample clip and a box that players skip, so that the file has the
// required size and can still be edited.
func (b *bench) makeLargeClip(path string) error {
	clip, err := os.ReadFile(b.clip)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	box := binary.BigEndian.AppendUint32(nil, uint32(uploadSize-len(clip)))
	box = append(box, "free"...)
	// Use random bytes, which file systems cannot compress.
	noise := io.LimitReader(rand.NewChaCha8([32]byte{}), int64(uploadSize-len(clip)-len(box)))
	if _, err := io.Copy(file, io.MultiReader(bytes.NewReader(clip), bytes.NewReader(box), noise)); err != nil {
		return err
	}
	// Sync, so that write-back does not slow down the measurement.
	return file.Sync()
}

// teeAndSum is the floor: it reads, hashes and syncs the bytes to disk.
func (b *bench) teeAndSum(ctx context.Context, source string) (time.Duration, error) {
	target := filepath.Join(b.folder, "copy")
	defer os.Remove(target)
	begun := time.Now()
	if out, err := exec.CommandContext(ctx, "sh", "-c", `tee "$2" <"$1" | md5sum && sync "$2"`, "sh", source,
		target).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("tee: %w\n%s", err, out)
	}
	return time.Since(begun), nil
}

// post uploads the file as a job. It returns the response time and the server's peak memory up to the response,
// in bytes. It waits until the job has ended, so that the engine does not slow down the next measurement.
func (b *bench) post(ctx context.Context, server *servertest.Server,
	source string) (took time.Duration, peak int64, err error) {
	if err := forgetPeak(server.PID()); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	out, err := exec.CommandContext(ctx, "curl", "--silent", "--show-error", "--fail-with-body", "--noproxy", "*",
		"-H", "x-api-key: "+servertest.Key, "-F", "data=@"+source, "-F", "prompt=a watercolor painting",
		server.URL()+"/v1/jobs/gen-2.1").CombinedOutput()
	took = time.Since(begun)
	if err != nil {
		return 0, 0, fmt.Errorf("curl: %w\n%s", err, out)
	}
	if peak, err = memory(server.PID(), "VmHWM"); err != nil {
		return 0, 0, err
	}
	var job servertest.Job
	if err := json.Unmarshal(out, &job); err != nil {
		return 0, 0, fmt.Errorf("curl printed %q: %w", out, err)
	}
	if job, err = server.Client().Await(ctx, job.ID, nil); err != nil {
		return 0, 0, err
	}
	if job.Status != "completed" {
		return 0, 0, fmt.Errorf("the job of the upload is %s: %+v", job.Status, job.Error)
	}
	return took, peak, nil
}

// memory reads a process's resident memory, in bytes: "VmRSS" is the current value, and "VmHWM" is
// the peak since forgetPeak.
func memory(pid int, field string) (int64, error) {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory can only be measured on Linux: %w", err)
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of process %d", field, pid)
}

func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
