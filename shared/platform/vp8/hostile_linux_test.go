package vp8_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8"
	"cutroom/shared/platform/vp8/vp8test"
	"cutroom/shared/testkit/await"
)

const hostileFrames = 2000

// encoded holds VP8 streams of the sample clip, with and without the features that live video uses.
var encoded = sync.OnceValues(func() ([][][]byte, error) {
	var all [][][]byte
	for _, options := range []string{
		"-deadline realtime -cpu-used 8 -error-resilient 1 -g 10",
		"-deadline realtime -cpu-used 4 -slices 8 -g 100",
		"-deadline good -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 8 -g 20",
		"-deadline realtime -cpu-used 8 -b:v 60k -g 15",
	} {
		args := []string{"-v", "error", "-i", filepath.Join("..", "..", "..", "testdata", "clip.mp4"),
			"-vf", "scale=322:178", "-frames:v", "30", "-an", "-c:v", "libvpx"}
		args = append(args, append(strings.Fields(options), "-f", "ivf", "-")...)
		file, err := exec.Command("ffmpeg", args...).Output()
		if err != nil {
			return nil, err
		}
		var frames [][]byte
		for file = file[32:]; len(file) > 12; {
			size := binary.LittleEndian.Uint32(file)
			frames = append(frames, file[12:][:size])
			file = file[12+size:]
		}
		all = append(all, frames)
	}
	return all, nil
})

func streams(t testing.TB) [][][]byte {
	t.Helper()
	all, err := encoded()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func broken(frame []byte, random *rand.Rand) []byte {
	frame = bytes.Clone(frame)
	noise := func(in []byte) {
		for i := range in {
			in[i] = byte(random.Uint32())
		}
	}
	at := random.IntN(len(frame))
	switch random.IntN(8) {
	case 0: // flipped bits
		for range 1 + random.IntN(20) {
			frame[random.IntN(len(frame))] ^= 1 << random.IntN(8)
		}
	case 1: // truncated
		return frame[:at]
	case 2: // a zeroed range
		clear(frame[at : at+random.IntN(len(frame)-at)])
	case 3: // flipped bits in the headers, which contain sizes and partitions
		for range 1 + random.IntN(4) {
			frame[random.IntN(min(40, len(frame)))] ^= 1 << random.IntN(8)
		}
	case 4: // noise after a valid header
		noise(frame[min(10, len(frame)):])
	case 5: // pure noise
		noise(frame)
	case 6: // a repeated range and extra bytes at the end
		frame = append(frame[:at:at], append(bytes.Clone(frame[at/2:]), frame...)...)
	case 7: // a changed size
		if len(frame) > 10 {
			binary.LittleEndian.PutUint16(frame[6:], uint16(random.IntN(2000)))
			binary.LittleEndian.PutUint16(frame[8:], uint16(random.IntN(2000)))
		}
	}
	return frame
}

// After damaged video, a good frame still decodes, and there are no more processes, mappings or
// descriptors than before.
func TestBrokenVideoIsHarmless(t *testing.T) {
	l, err := vp8test.Find()
	if err != nil {
		t.Fatal(err)
	}
	before := inventory(t)
	random := rand.New(rand.NewPCG(1, 2))
	all := streams(t)
	c, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var picture image.YCbCr
	results := map[string]int{}
	for i := range hostileFrames {
		stream := all[random.IntN(len(all))]
		frame := stream[0]
		if random.IntN(2) == 0 {
			frame = stream[random.IntN(len(stream))]
		}
		if random.IntN(4) > 0 {
			frame = broken(frame, random)
		}
		shown, err := c.Decode(t.Context(), frame, &picture)
		switch {
		case err == nil && shown:
			results["shown"]++
		case err == nil:
			results["not shown"]++
		case errors.Is(err, vp8.ErrLost):
			results["helper lost: "+err.Error()]++
		case vp8.NeedsKeyFrame(err):
			results[err.Error()]++
		default:
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	t.Logf("of %d frames: %v; the helper's memory is %d MiB", hostileFrames, results, resident(t, c.PID())>>20)
	for what := range results {
		if strings.HasPrefix(what, "helper lost") {
			t.Errorf("%s, %d times", what, results[what])
		}
	}
	if memory := resident(t, c.PID()); memory > 128<<20 {
		t.Errorf("the helper has %d MiB", memory>>20)
	}
	if shown, err := c.Decode(t.Context(), all[0][0], &picture); err != nil || !shown {
		t.Errorf("a good frame afterwards: %v, %v", shown, err)
	}
	c.Close()
	await.Value(t, fmt.Sprintf("at most %+v may remain", before), func() left { return inventory(t) },
		func(now left) bool { return !now.moreThan(before) })
}

func TestHelperIsSandboxed(t *testing.T) {
	c := open(t)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the helper's status lacks %q", want)
		}
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(limits), "\n") {
		for _, limit := range []string{"Max address space", "Max cpu time", "Max file size", "Max open files"} {
			if strings.HasPrefix(line, limit) && strings.Contains(line, "unlimited") {
				t.Errorf("the helper has no limit: %s", line)
			}
		}
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID()))
	if err == nil && bytes.Contains(environment, []byte("HOME=")) {
		t.Errorf("the helper has the server's environment: %q", environment)
	}
}

func TestHelperWorksInEverySandbox(t *testing.T) {
	whole, err := sandbox.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	picture := clip(t, image.Pt(320, 180), 1)[0]
	for _, lacks := range []sandbox.Layers{
		{}, {Seccomp: true}, {Landlock: true}, {Namespaces: true}, {User: true},
		{Seccomp: true, Landlock: true, Namespaces: true, User: true},
	} {
		box := whole.Without(lacks)
		l, err := vp8.Find(t.Context(), box)
		if err != nil {
			t.Errorf("%s: %v", box, err)
			continue
		}
		c, err := l.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if frame, err := c.Encode(t.Context(), picture, vp8.Encoding{Bitrate: 500}); err != nil || !frame.Key {
			t.Errorf("%s: %v", box, err)
		}
		c.Close()
	}
}

type left struct{ descriptors, processes, goroutines, memories int }

func (l left) moreThan(other left) bool {
	return l.descriptors > other.descriptors || l.processes > other.processes ||
		l.goroutines > other.goroutines || l.memories > other.memories
}

func inventory(t *testing.T) left {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		pids, _ := os.ReadFile(task) // the thread may have exited
		children += len(strings.Fields(string(pids)))
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return left{len(open), children, runtime.NumGoroutine(), strings.Count(string(maps), "cutroom-vp8")}
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the system does not report the helper's memory")
	return 0
}

func FuzzDecode(f *testing.F) {
	good := streams(f)
	for _, stream := range good {
		f.Add(stream[0], stream[1])
	}
	c := open(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var picture image.YCbCr
		for _, frame := range [][]byte{first, second} {
			shown, err := c.Decode(t.Context(), frame, &picture)
			if err != nil && (!vp8.NeedsKeyFrame(err) || errors.Is(err, vp8.ErrLost)) {
				t.Fatal(err)
			}
			if size := picture.Rect.Size(); shown && (size.X < 1 || size.X*size.Y > vp8.MaxPixels) {
				t.Fatalf("a picture of %v", size)
			}
		}
	})
}
