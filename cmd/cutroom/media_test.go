package main_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

type media struct {
	// tiny is a 16:9 clip of three frames with sound. tall is the same in 9:16. long lasts four seconds. endless
	// lasts a minute. Editing endless at full size takes so long that tests can interrupt it, even on a slow machine.
	tiny, tall, long, endless []byte
	// picture is a 16:9 PNG.
	picture []byte
	// truncated is a clip that has a complete header but no frames.
	truncated []byte
}

func makeMedia(ctx context.Context, folder string) (media, error) {
	var made media
	var err error
	const h264 = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac -movflags +faststart "
	for _, fixture := range []struct {
		into *[]byte
		name string
		args string
	}{
		{&made.tiny, "tiny.mp4", "-f lavfi -i testsrc2=size=96x54:rate=20:duration=0.15 -f lavfi -i sine=duration=0.15 " +
			h264},
		{&made.tall, "tall.mp4", "-f lavfi -i testsrc2=size=54x96:rate=20:duration=0.15 -f lavfi -i sine=duration=0.15 " +
			h264},
		{&made.long, "long.mp4", "-f lavfi -i testsrc2=size=96x54:rate=20:duration=4 -f lavfi -i sine=duration=4 " + h264},
		{&made.endless, "endless.mp4", "-f lavfi -i testsrc2=size=96x54:rate=2:duration=60 " + h264},
		{&made.picture, "picture.png", "-f lavfi -i testsrc2=size=96x54:rate=1:duration=1 -frames:v 1 "},
	} {
		path := filepath.Join(folder, fixture.name)
		args := append([]string{"-v", "error", "-y"}, strings.Fields(fixture.args)...)
		if out, err := exec.CommandContext(ctx, "ffmpeg", append(args, path)...).CombinedOutput(); err != nil {
			return made, fmt.Errorf("render %s: %w\n%s", fixture.name, err, out)
		}
		if *fixture.into, err = os.ReadFile(path); err != nil {
			return made, err
		}
	}
	header, _, found := bytes.Cut(made.tiny, []byte("mdat"))
	if !found {
		return made, errors.New("the clip has no mdat box")
	}
	made.truncated = append(bytes.Clone(header), "mdat"...)
	return made, nil
}

type report struct {
	Streams []struct {
		CodecType string `json:"codec_type"`
		CodecName string `json:"codec_name"`
		PixFmt    string `json:"pix_fmt"`
		Width     int    `json:"width"`
		Height    int    `json:"height"`
		FrameRate string `json:"avg_frame_rate"`
		StartTime string `json:"start_time"`
		Duration  string `json:"duration"`
		Frames    string `json:"nb_read_frames"`
	}
}

func save(t *testing.T, content []byte) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "media-")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func probe(t *testing.T, content []byte) report {
	t.Helper()
	out := tool(t, "ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json", save(t, content))
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// tool runs ffmpeg or ffprobe and returns its stdout. The test fails if there is any output on stderr.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(bounded(t), name, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &complaints)
	}
	return out
}

func boxes(t *testing.T, content []byte) []string {
	t.Helper()
	var types []string
	for len(content) >= 8 {
		size := int(binary.BigEndian.Uint32(content))
		types = append(types, string(content[4:8]))
		if size < 8 || size > len(content) {
			t.Fatalf("after %v a box claims %d of the remaining %d bytes", types, size, len(content))
		}
		content = content[size:]
	}
	return types
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
