package mediatest

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed encodings.txt
var encodings string

// Encodings returns a clip for each container and pair of encoders. Their colors change over time.
//
// One ffmpeg process makes all clips of a line, because starting it takes longer than making a clip.
func Encodings(t testing.TB) (clips []Clip) {
	options := map[string]string{}
	for line := range strings.Lines(encodings) {
		container, pairs, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, found := strings.CutPrefix(container, "="); found {
			options[name] = pairs
		} else if container != "#" {
			clips = append(clips, encodingsOf(t, container, strings.Fields(pairs), options)...)
		}
	}
	return clips
}

func encodingsOf(t testing.TB, container string, pairs []string, options map[string]string) (clips []Clip) {
	folder := t.TempDir()
	args := []string{
		"-v", "error", "-f", "lavfi", "-i", "testsrc2=s=128x96:r=25:d=1,format=yuv444p",
		"-f", "lavfi", "-i", beeps + ":d=1",
	}
	made := sync.OnceValue(func() error {
		out, err := exec.CommandContext(t.Context(), "ffmpeg", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	for i, pair := range pairs {
		picture, sound, _ := strings.Cut(pair, ":")
		more := fmt.Sprintf("-map 0 -vf hue=h=180*t -threads 1 -strict -2 -b:v 2M -c:v %s %s", picture, options[picture])
		if sound != "" {
			more += fmt.Sprintf(" -map 1 -ar 48000 -c:a %s %s %s", sound, options["."+container], options[sound])
		} else {
			more += " " + options["."+container]
		}
		if picture != "gif" {
			more += " -pix_fmt yuv420p"
		}
		path := filepath.Join(folder, fmt.Sprintf("%d.%s", i, container))
		args = append(append(args, strings.Fields(more)...), path)
		clips = append(clips, Clip{Name: container + " " + pair, Make: func(t testing.TB) string {
			if err := made(); err != nil {
				t.Fatal(err)
			}
			return path
		}})
	}
	return clips
}
