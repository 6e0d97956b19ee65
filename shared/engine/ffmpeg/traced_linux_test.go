package ffmpeg_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// This environment variable lists the files that the traced process decodes.
const traceRole = "CUTROOM_TEST_DECODE"

// The files refer to other files, have false headers, or are damaged. Every file and socket that
// FFmpeg opens is checked, whether or not the sandbox would block it.
func TestHostileFilesOpenNoOtherFiles(t *testing.T) {
	if list := os.Getenv(traceRole); list != "" {
		decodeAll(t, list)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed; scripts/test.sh installs it")
	}
	tr := setTrap(t)
	set := mediatest.HostileSet(t, tr.address, tr.file)
	folder := t.TempDir()
	content, err := json.Marshal(set)
	list, trace := filepath.Join(folder, "list"), filepath.Join(folder, "trace")
	if err == nil {
		err = os.WriteFile(list, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strace, "-f", "--seccomp-bpf", "-qq", "-s", "4096", "-o", trace, "-e",
		"trace=openat,open,socket,connect,bind,execve,clone,clone3",
		os.Args[0], "-test.run=^TestHostileFilesOpenNoOtherFiles$")
	cmd.Env = append(os.Environ(), traceRole+"="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	own := map[string]bool{}
	for _, file := range set {
		own[file.Path] = true
	}
	opened := readTrace(t, trace)
	for path := range opened {
		delete(own, path)
		if !mayOpen(set, path) {
			t.Errorf("FFmpeg opened %q", path)
		}
	}
	if len(own) > len(set)/2 {
		t.Errorf("of %d files %d were not opened: the trace is incomplete", len(set), len(own))
	}
	if n := tr.accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	t.Logf("%d hostile files; %d files opened, all of them FFmpeg's own or the one to decode", len(set), len(opened))
}

func decodeAll(t *testing.T, list string) {
	content, err := os.ReadFile(list)
	var set []mediatest.HostileFile
	if err == nil {
		err = json.Unmarshal(content, &set)
	}
	if err != nil {
		t.Fatal(err)
	}
	tools := find(t).ThatTrustTheMachine()
	for i, file := range set {
		probe := tools.ProbeVideo
		if kind, _ := media.Find(file.MIME); kind.Image {
			probe = tools.ProbeImage
		}
		_, probed := probe(t.Context(), file.Path, file.MIME)
		if file.Refused && probed != nil && i%6 > 0 {
			// Only every sixth rejected file is also passed to Run.
			checkCode(t, probed, job.InvalidInput)
			continue
		}
		run := tools.Run(t.Context(), ffmpeg.Command{
			Folder: t.TempDir(), Inputs: []ffmpeg.Source{{Path: file.Path, MIME: file.MIME}},
			Args: []string{
				"-map", "0:V:0", "-frames:v", "3", "-vf", "scale=16:16", "-c:v", "png", "-f", "image2", "result-%d.png",
			},
		})
		for what, err := range map[string]error{"probe": probed, "run": run} {
			if err != nil && engine.AsError(err).Code != job.InvalidInput {
				t.Errorf("%s, %s: got %v", file.Name, what, err)
			}
		}
		if file.Refused && probed == nil && run == nil {
			t.Errorf("%s was decoded", file.Name)
		}
	}
}

// Each line of strace names a process and a call. If another process's line interrupts a call, the
// call takes two lines, of which the first ends with "unfinished".
var (
	executed = regexp.MustCompile(`^(\d+) +execve\("[^"]*/ff(?:mpeg|probe)".*(?: = 0| <unfinished \.\.\.>)$`)
	box      = regexp.MustCompile(`^(\d+) +execve\("/proc/self/exe", \["cutroom-sandbox",`)
	begun    = regexp.MustCompile(`^(\d+) +(?:clone3?\(|<\.\.\. clone3? resumed>).*\) += (\d+)`)
	call     = regexp.MustCompile(`^(\d+) +(\w+)\((.*)`)
	named    = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// readTrace returns the files that FFmpeg opened. A socket or another program fails the test.
func readTrace(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoders, opened, programs := map[string]bool{}, map[string]bool{}, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if found := executed.FindStringSubmatch(line); found != nil {
			decoders[found[1]] = true
			programs++
			continue
		}
		// An exited process's id can be reused for the sandbox of a later process.
		if found := box.FindStringSubmatch(line); found != nil {
			delete(decoders, found[1])
			continue
		}
		if found := begun.FindStringSubmatch(line); found != nil && decoders[found[1]] {
			decoders[found[2]] = true
		}
		found := call.FindStringSubmatch(line)
		if found == nil || !decoders[found[1]] {
			continue
		}
		switch found[2] {
		case "open", "openat":
			if name := named.FindStringSubmatch(found[3]); name != nil {
				opened[name[1]] = true
			}
		case "socket", "connect", "bind", "execve":
			t.Errorf("FFmpeg called %s", line)
		}
	}
	if err := lines.Err(); err != nil || programs == 0 {
		t.Fatalf("%d programs in the trace, %v", programs, err)
	}
	return opened
}

// mayOpen reports whether FFmpeg may open a path: a hostile file itself, a result, or a system file.
func mayOpen(set []mediatest.HostileFile, path string) bool {
	for _, file := range set {
		if file.Path == path {
			return true
		}
	}
	for _, system := range []string{"/lib/", "/usr/lib/", "/etc/ld.so", "/proc/", "/sys/", "/dev/null", "/etc/gcrypt/"} {
		if strings.HasPrefix(path, system) {
			return true
		}
	}
	return strings.HasPrefix(path, "result-")
}
