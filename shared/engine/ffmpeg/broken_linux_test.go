package ffmpeg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/media/mediatest"
)

// An update in progress may damage a program while it starts.
func TestBrokenProgramIsNotInvalidInput(t *testing.T) {
	clip, picture := mediatest.Video{}.Make(t), mediatest.Image{}.Make(t)
	t.Setenv("TMPDIR", t.TempDir())
	folder, whole := t.TempDir(), map[string]string{}
	for _, name := range []string{"ffmpeg", "ffprobe", "false", "true", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		whole[name] = path
	}
	copyProgram(t, whole["ffmpeg"], filepath.Join(folder, "ffmpeg"))
	copyProgram(t, whole["ffprobe"], filepath.Join(folder, "ffprobe"))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	tools := findAnew(t)
	if everything(t, tools, clip, picture) != 4 {
		t.Fatal("runs fail with copies of the programs")
	}
	for _, name := range []string{"ffmpeg", "ffprobe"} {
		for _, other := range []string{"false", "true", "cat"} {
			copyProgram(t, whole[other], filepath.Join(folder, name))
			if everything(t, tools, clip, picture) == 4 {
				t.Errorf("all runs succeed although %s is %s", name, other)
			}
		}
		copyProgram(t, whole[name], filepath.Join(folder, name))
	}
}

func copyProgram(t *testing.T, from, path string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o755) //nolint:gosec // an executable
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
