//go:build docker

package imagetest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

func volume(t *testing.T) string {
	t.Helper()
	name := docker(t, "volume", "create", "--label", label, "cutroom-test-"+strings.ToLower(rand.Text()))
	t.Cleanup(func() {
		if _, err := tryDocker(context.WithoutCancel(t.Context()), "volume", "rm", name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// startServer starts the one-machine server on a volume. It returns a client with the given key or,
// if the key is "", with a new key made on the command line.
func startServer(t *testing.T, data, key string) (*container, *servertest.Client) {
	t.Helper()
	c := start(t, imageOf("cutroom"),
		[]string{"--publish", "127.0.0.1::8080", "--publish", "127.0.0.1::8081", "--volume", data + ":/data"}, nil)
	client := &servertest.Client{URL: c.ready(8080), Key: key}
	c.ready(8081)
	if key == "" {
		client.Key = docker(t, "exec", c.id, "cutroom", "keys", "create", "--account", account)
	}
	return c, client
}

// The image runs as its own user, has no shell, can write only to /data, and carries the common labels.
func TestServerImageIsHardened(t *testing.T) {
	t.Parallel()
	c, _ := startServer(t, volume(t), "")
	if user := c.state(".Config.User"); user != "10001:10001" {
		t.Errorf("it runs as %s", user)
	}
	c.seenHealthy()
	if changed := docker(t, "diff", c.id); changed != "" {
		t.Errorf("the server wrote outside its volume:\n%s", changed)
	}
	if _, err := tryDocker(t.Context(), "exec", c.id, "/bin/sh", "-c", "true"); err == nil {
		t.Error("the image has a shell")
	}
	version := docker(t, "image", "inspect", "--format", `{{index .Config.Labels "org.opencontainers.image.version"}}`,
		imageOf("cutroom"))
	if printed := docker(t, "exec", c.id, "cutroom", "--version"); version == "" || printed != "cutroom "+version {
		t.Errorf("the image has version %q, but the program prints %q", version, printed)
	}
	// A process that decodes an untrusted file can reach only that file: see docs/sandbox.md.
	found := docker(t, "exec", c.id, "cutroom", "doctor")
	for _, layer := range []string{"seccomp", "Landlock"} {
		if !strings.Contains(found, layer) {
			t.Errorf("doctor does not report %s:\n%s", layer, found)
		}
	}
}

func TestImagesReportTheirVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cutroom", "cutroom-worker", "cutroom-media", "cutroom-realtime"} {
		saysWhatItIs(t, name)
	}
}

func saysWhatItIs(t *testing.T, name string) {
	t.Helper()
	const ask = `{{.Config.User}} {{index .Config.Labels "org.opencontainers.image.title"}}` +
		` {{index .Config.Labels "org.opencontainers.image.licenses"}} {{index .Config.Healthcheck.Test 0}}`
	printed := docker(t, "image", "inspect", "--format", ask, imageOf(name))
	if !strings.HasPrefix(printed, "10001:10001 "+name+" Apache-2.0") || !strings.HasSuffix(printed, " CMD") {
		t.Errorf("%s prints %q", name, printed)
	}
}

// The image's FFmpeg reads every type of file that the service accepts, with the codecs that cameras and the web use.
func TestServerEditsEveryType(t *testing.T) {
	t.Parallel()
	_, client := startServer(t, volume(t), "")
	pictures := map[string]mediatest.Image{
		"png": {}, "png of 16 bits": {PixelFormat: "rgba64be"}, "jpg": {Name: "a.jpg", Orientation: 6},
		"webp": {Name: "a.webp"}, "gif": {Name: "a.gif"}, "bmp": {Name: "a.bmp"}, "tif": {Name: "a.tif"},
		"avif": {Name: "a.avif"}, "heic": {Name: "a.heic", Orientation: 6}, "turned png": {Orientation: 5},
	}
	for name, picture := range pictures {
		t.Run("an image "+name, func(t *testing.T) {
			t.Parallel()
			path := picture.Make(t)
			generate(t, client, read(t, path), "a pencil sketch")
		})
	}
	videos := map[string]mediatest.Video{
		"mp4": {}, "mov, turned": {Name: "a.mov", Rotation: 90}, "3gp": {Name: "a.3gp"}, "mkv": {Name: "a.mkv"},
		"webm": {Name: "a.webm"}, "webm of VP8": {Name: "a.webm", Codec: "libvpx"}, "avi": {Name: "a.avi"},
		"ts": {Name: "a.ts"}, "ogv": {Name: "a.ogv"}, "flv": {Name: "a.flv"}, "gif": {Name: "a.gif"},
		"HEVC": {Codec: "libx265"}, "HDR": {Codec: "libx265", PixelFormat: "yuv420p10le", HDR: true},
		"ProRes": {Name: "a.mov", Codec: "prores_ks", PixelFormat: "yuv422p10le"},
		"AV1":    {Codec: "libaom-av1", Args: []string{"-cpu-used", "8"}},
		"MPEG-2": {Name: "a.ts", Codec: "mpeg2video"},
		"MJPEG":  {Name: "a.avi", Codec: "mjpeg", PixelFormat: "yuvj420p"},
	}
	for name, video := range videos {
		t.Run("a video "+name, func(t *testing.T) {
			t.Parallel()
			path := video.Make(t)
			submitted, err := client.Submit(t.Context(), "gen-2.1", servertest.Form{
				servertest.File("data", filepath.Base(path), read(t, path)), servertest.Text("prompt", "an oil painting"),
			})
			if err != nil {
				t.Fatal(err)
			}
			completed(t, client, submitted.ID)
		})
	}
}

func TestServerHasEveryFilter(t *testing.T) {
	t.Parallel()
	_, client := startServer(t, volume(t), "")
	picture := read(t, "../../../testdata/reference.jpg")
	for _, prompt := range look.Names() {
		generate(t, client, picture, prompt)
	}
	// Generating a video needs filters that editing a file does not.
	made, err := client.Submit(t.Context(), "gen-pro-t2v", servertest.Form{
		servertest.Text("prompt", "aurora over the mountains"),
	})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, client, made.ID)
}

// The preview engine's look tests run inside the image, to check that its FFmpeg renders every look correctly.
func TestServerDrawsEveryLook(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "preview.test")
	build := exec.CommandContext(await.TestContext(t), "go", "test", "-c", "-o", program, "./shared/engine/preview")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	options := slices.Concat([]string{"run", "--rm", "--label", label, "--tmpfs", "/tmp:mode=1777"}, hardened, []string{
		"--volume", root + ":/source:ro", "--workdir", "/source/shared/engine/preview",
		"--volume", program + ":/preview.test:ro", "--entrypoint", "/preview.test", imageOf("cutroom"),
		"-test.v", "-test.run", "^(TestLooksHaveTheirProperties|TestScenesDiffer|TestTryOnKeepsFace)$",
	})
	if printed := docker(t, options...); !strings.Contains(printed, "--- PASS: TestLooksHaveTheirProperties") {
		t.Errorf("the looks were not drawn:\n%s", printed)
	}
}

func generate(t *testing.T, client *servertest.Client, picture []byte, prompt string) {
	t.Helper()
	body, length, contentType := servertest.Form{
		servertest.File("data", "picture", picture), servertest.Text("prompt", prompt), servertest.Text("resolution", "480p"),
	}.Encode()
	answer, err := client.Call(t.Context(), http.MethodPost, "/v1/generate/gen-image-2", body, length,
		"Content-Type", contentType)
	if err != nil || answer.Status != http.StatusOK || !bytes.HasPrefix(answer.Body, []byte("\x89PNG")) {
		t.Errorf("%s: %d %.300s, %v", prompt, answer.Status, answer.Body, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
