package scripts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// system is a machine as preflight.sh sees it. It maps the programs in PATH to scripts that stand in for them.
type system map[string]string

const (
	goNew    = `case $1 in version) echo "go version go1.26.8 linux/amd64" ;; env) echo local ;; esac`
	goOld    = `case $1 in version) echo "go version go1.24.4 linux/amd64" ;; env) echo local ;; esac`
	goFetch  = `case $1 in version) echo "go version go1.24.4 linux/amd64" ;; env) echo auto ;; esac`
	goOldest = `echo "go version go1.19.8 linux/amd64"`

	ffmpegNew = `case "$*" in
-version) echo "ffmpeg version 5.1.9-0+deb12u1 Copyright" ;;
*-encoders) echo " V....D libx264 H.264" ;;
*-filters) echo " .SC zscale V->V" ;;
esac`
	ffmpegOld   = `echo "ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright"`
	ffmpegSmall = `case "$*" in -version) echo "ffmpeg version 7.1 Copyright" ;; *) echo " V....D libopenh264" ;; esac`

	// installs records its arguments and installs a fake ffmpeg that has all features.
	installs = `echo "$(basename "$0") $*" >>"$NOTES"
case "$*" in *ffmpeg*) for name in ffmpeg ffprobe heif-convert; do cp "$ABLE" "$FOLDER/$name"; done ;; esac`
	asks    = `exit 1`
	asksNot = `[ "$1" = -n ] && shift
exec "$@"`
	root, user = `echo 0`, `echo 1000`
)

// everywhere lists the programs that every system has.
var everywhere = []string{
	"sh", "awk", "basename", "cat", "chmod", "cp", "dirname", "env", "grep", "mktemp", "rm", "sed", "tail", "tr", "true",
}

// preflight runs the script for a target on a system. It returns the exit code, the output and the installations.
func (s system) preflight(t *testing.T, target string, settings ...string) (code int, says, installed string) {
	t.Helper()
	folder, beside := t.TempDir(), t.TempDir()
	for _, name := range everywhere {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, folder, "uname", `case ${1:-} in -m) echo x86_64 ;; *) echo Linux ;; esac`)
	for name, script := range s {
		tool(t, folder, name, script)
	}
	certificates, notes := filepath.Join(beside, "certificates"), filepath.Join(beside, "notes")
	if err := os.WriteFile(certificates, []byte("some"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(folder, "sh"), "preflight.sh", target)
	// Unset HOME. Otherwise this machine's own Go, which the script also finds, would still write
	// telemetry there after the test.
	command.Env = append([]string{
		"PATH=" + folder, "FOLDER=" + folder, "NOTES=" + notes, "ABLE=" + tool(t, beside, "ffmpeg", ffmpegNew),
		"SSL_CERT_FILE=" + certificates,
	}, settings...)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	noted, _ := os.ReadFile(notes)
	return command.ProcessState.ExitCode(), string(out), string(noted)
}

// One command installs all missing tools. It runs only if it needs no password.
func TestMissingToolsAreReportedFirst(t *testing.T) {
	const noCertificates = "SSL_CERT_FILE=/nonexistent"
	for name, c := range map[string]struct {
		system    system
		setting   string
		code      int
		says      string // the command, or the message
		installed string
	}{
		"nothing is missing": {system{"id": user, "go": goNew, "ffmpeg": ffmpegNew, "ffprobe": ffmpegNew, "heif-convert": "true"}, "", 0, "", ""},
		"root installs FFmpeg": {
			system{"id": root, "go": goNew, "apt-get": installs}, "", 0,
			"    apt-get update && env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ffmpeg libheif-examples\n",
			"apt-get update\napt-get install -y --no-install-recommends ffmpeg libheif-examples\n",
		},
		"sudo without a password installs it": {
			system{"id": user, "go": goNew, "apt-get": installs, "sudo": asksNot}, "", 0, "    sudo apt-get update && sudo env ",
			"apt-get update\napt-get install -y --no-install-recommends ffmpeg libheif-examples\n",
		},
		"sudo with a password is for people": {
			system{"id": user, "go": goNew, "apt-get": installs, "sudo": asks}, "", 1,
			"Run it, and make run again:\n\n    sudo apt-get update && sudo env ", "",
		},
		"neither root nor sudo": {
			system{"id": user, "go": goNew, "apt-get": installs}, "", 1,
			"Run it as root, or ask those who administer this machine to, and make run again:\n\n    apt-get update && env ", "",
		},
		"an installation that fails": {
			system{"id": root, "go": goNew, "apk": "echo no such package; exit 1"}, "", 1, "no such package\nThe installation failed.", "",
		},
		"an installation without effect": {
			system{"id": root, "go": goNew, "apk": "echo done"}, "", 1, "After the installation these are still missing: FFmpeg.", "",
		},
		"Go is never installed": {
			system{"id": root, "go": goOld, "apt-get": installs}, noCertificates, 1,
			"Go 1.26 or later (this is go1.24.4), certificates of authorities, FFmpeg.\n", "",
		},
		"one command for everything": {
			system{"id": root, "go": goOldest, "apt-get": installs}, noCertificates, 1,
			"apt-get install -y --no-install-recommends ca-certificates ffmpeg libheif-examples curl && ", "",
		},
		"a Go that fetches a newer one": {system{"id": user, "go": goFetch, "ffmpeg": ffmpegNew, "ffprobe": ffmpegNew, "heif-convert": "true"}, "", 0, "", ""},
		"an FFmpeg without heif-convert": {
			system{"id": user, "go": goNew, "ffmpeg": ffmpegNew, "ffprobe": ffmpegNew, "apt-get": installs}, "", 1,
			"heif-convert, which reads HEIC and AVIF pictures.\n", "",
		},
		"an old FFmpeg":  {system{"id": user, "go": goNew, "ffmpeg": ffmpegOld, "ffprobe": ffmpegOld, "heif-convert": "true"}, "", 1, "an FFmpeg from version 5", ""},
		"a small FFmpeg": {system{"id": user, "go": goNew, "ffmpeg": ffmpegSmall, "ffprobe": ffmpegSmall, "heif-convert": "true"}, "", 1, "with ffprobe, libx264 and zscale", ""},
		"Fedora without RPM Fusion": {
			system{"id": root, "go": goNew, "dnf": installs, "rpm": "exit 1"}, "", 1,
			".noarch.rpm && dnf install -y --allowerasing ffmpeg libheif-tools\n", "",
		},
		"Fedora with RPM Fusion": {
			system{"id": root, "go": goNew, "dnf": installs, "rpm": "exit 0"}, "", 0,
			"    dnf install -y --allowerasing ffmpeg libheif-tools\n", "dnf install -y --allowerasing ffmpeg libheif-tools\n",
		},
		"Arch":   {system{"id": user, "go": goOld, "pacman": installs}, "", 1, "--noconfirm --needed go ffmpeg libheif\n", ""},
		"Alpine": {system{"id": user, "go": goNew, "apk": installs, "doas": asks}, "", 1, "    doas apk add ffmpeg libheif-tools\n", ""},
		"macOS": {
			system{"id": user, "go": goOld, "brew": installs, "uname": "echo Darwin"}, noCertificates, 1,
			"    brew install go ffmpeg-full libheif && brew link ffmpeg-full\n", "",
		},
		"an engine whose results are signed": {
			system{"id": user, "go": goNew, "ffmpeg": ffmpegNew, "ffprobe": ffmpegNew, "heif-convert": "true", "apt-get": installs},
			"CUTROOM_ENGINE=comfyui:http://127.0.0.1:8188", 1, "--no-install-recommends python3 python3-venv\n", "",
		},
		"an engine with everything it needs": {
			system{"id": user, "go": goNew, "ffmpeg": ffmpegNew, "ffprobe": ffmpegNew, "heif-convert": "true", "python3": "exit 0"},
			"CUTROOM_ENGINE=comfyui:http://127.0.0.1:8188", 0, "", "",
		},
		"another system": {system{"id": root, "go": goNew}, "", 1, "Install these yourself, because no package provides them here: FFmpeg.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, says, installed := c.system.preflight(t, "run", c.setting)
			if code != c.code || !strings.Contains(says, c.says) || installed != c.installed {
				t.Errorf("exit code %d, installed %q, and said\n%s\nwant %d, %q and\n%s", code, installed, says, c.code,
					c.installed, c.says)
			}
			if commands := regexp.MustCompile(`(?m)^    \S`).FindAllString(says, -1); len(commands) > 1 {
				t.Errorf("%d commands, want one:\n%s", len(commands), says)
			}
			if c.code == 0 && c.says == "" && says != "" {
				t.Errorf("said %q although nothing is missing", says)
			}
		})
	}
}

// The pinned command line of CDK needs Node.js 18, and CDK supports only later versions.
func TestOldNodeIsReported(t *testing.T) {
	for version, c := range map[string]struct {
		code int
		says string
	}{
		"v16.20.2": {1, "make synth needs these missing programs: Node.js 18 or later with npm.\n"},
		"v20.20.2": {0, "AWS CDK no longer supports Node.js v20.20.2: install 22 or 24.\n"},
		"v24.1.0":  {0, ""},
	} {
		machine := system{"id": user, "go": goNew, "python3": "exit 0", "npm": "exit 0", "node": "echo " + version}
		for _, target := range []string{"synth", "diff"} {
			want := strings.Replace(c.says, "synth", target, 1)
			if code, says, _ := machine.preflight(t, target); code != c.code || !strings.HasPrefix(says, want) || want == "" && says != "" {
				t.Errorf("%s, %s: exit code %d, and said\n%s", target, version, code, says)
			}
		}
	}
}

func TestEveryTargetListsItsNeeds(t *testing.T) {
	makefile := read(t, "Makefile")
	targets := regexp.MustCompile(`(?m)^([a-z-]+):(.*?)##`).FindAllStringSubmatch(makefile, -1)
	if len(targets) == 0 {
		t.Fatal("the Makefile has no target")
	}
	for _, target := range targets {
		if slices.Contains([]string{"help", "clean", "local-aws-stop"}, target[1]) {
			continue // common tools are enough
		}
		t.Run(target[1], func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(target[2]+" ", " need-"+target[1]+" ") {
				t.Errorf("%s does not check its tools: need-%[1]s is missing in%s", target[1], target[2])
			}
			code, says, installed := system{"id": user, "apt-get": installs}.preflight(t, target[1], "CONTEXT=",
				"IMAGES=an-image")
			if code != 1 || installed != "" || !strings.Contains(says, "make "+target[1]+" needs these missing programs: ") {
				t.Errorf("exit code %d, installed %q, and said\n%s", code, installed, says)
			}
		})
	}
}

func tool(t *testing.T, folder, name, script string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
