// Package ffmpeg runs the programs ffmpeg and ffprobe on untrusted files.
//
// Every run is restricted: the sniffed type forces the demuxer; the protocol whitelist is "file"; memory, CPU
// time, output size, pixels and duration are limited. The program runs in its own process group, which has ended
// when the call returns. Package sandbox also confines a compromised program.
package ffmpeg

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/platform/memorylimit"
	"cutroom/shared/platform/sandbox"
)

// oldestMajor is the oldest FFmpeg release that supports the options used here.
const oldestMajor = 5

// required lists the features that a build of FFmpeg must have. Distributions' builds usually have them.
var required = map[string][]string{
	"encoder": {"libx264", "aac", "png"},
	"decoder": {"h264", "hevc", "vp9", "png", "mjpeg", "webp"},
	"filter":  {"scale", "zscale", "tonemap", "lut3d", "fps", "pad", "bwdif"},
}

// Homebrew's ffmpeg formula lacks zscale, and ffmpeg-full is not put in PATH automatically.
const installation = `"apt-get install ffmpeg" (Debian, Ubuntu) or ` +
	`"brew install ffmpeg-full && brew link ffmpeg-full" (macOS)`

// heifPackage names the package that contains heif-convert.
const heifPackage = "libheif-examples (Debian, Ubuntu; elsewhere libheif or libheif-tools)"

// Tools holds the programs that Find located and checked. Its methods are safe for concurrent use.
type Tools struct {
	// Folder is where temporary folders are created: an absolute path, or "" for the system
	// default. Set it before first use.
	Folder string

	ffmpeg, ffprobe sandbox.Program
	// heif is heif-convert. Its path is empty if the program is not installed.
	heif   sandbox.Program
	box    *sandbox.Sandbox
	limits catalog.Limits
	bounds bounds
	has    coders
	// skipControl skips the control run in inputError, for tests with many bad files.
	skipControl bool
}

func (t *Tools) Sandbox() *sandbox.Sandbox { return t.box }

type bounds struct {
	// memory limits the program's address space, in bytes.
	memory int64
	// runTime limits the CPU time of ffmpeg over all threads. probeTime limits the CPU time of ffprobe.
	runTime, probeTime time.Duration
}

// A command may use pictureTime of CPU time. For each video, it may use perSecond more seconds per second of length,
// and one more second per pixelsPerSecond pixels. Harmless inputs need far less.
const (
	pictureTime     = 30 * time.Second
	perSecond       = 15
	pixelsPerSecond = 10_000_000
)

// timeFor trusts the files' headers. If a header understates the size, the command is killed early.
func (b bounds) timeFor(command Command) time.Duration {
	if command.Frames != nil {
		return b.runTime
	}
	seconds := pictureTime.Seconds() + perSecond*command.Length.Seconds()
	for _, input := range command.Inputs {
		kind, _ := media.Find(input.MIME)
		length := input.Info.Duration.Seconds()
		if kind.Video && input.Info.Width == 0 {
			return b.runTime // not probed
		}
		rate := cmp.Or(input.Info.FrameRate, assumedFrameRate)
		seconds += perSecond * length
		seconds += float64(input.Info.Width) * float64(input.Info.Height) * rate * length / pixelsPerSecond
	}
	return time.Duration(min(seconds, b.runTime.Seconds()) * float64(time.Second))
}

// defaultBounds returns limits far above the needs of any input that the catalog allows. The most
// memory is needed to tone-map 4096x4096 pictures: 1.3 GB plus the thread stacks for each core.
func defaultBounds() bounds {
	cores := runtime.NumCPU()
	return bounds{
		memory:    memoryFor(memorylimit.OfMachine(), cores),
		runTime:   job.MaxAge * time.Duration(cores),
		probeTime: 20 * time.Second, // a third of the time that a request waits for an image
	}
}

// memoryFor returns enough memory for a 4K picture, but at most half of the machine's, in bytes.
// machine is the machine's memory, or 0 if unknown.
func memoryFor(machine int64, cores int) int64 {
	most := int64(4<<30 + cores*32<<20)
	if machine == 0 {
		return most
	}
	return min(most, max(machine/2, 1<<30))
}

// Find looks for ffmpeg and ffprobe in PATH and checks their features. The limits restrict the inputs.
//
// The error is one line that names the missing feature and says how to install it.
func Find(ctx context.Context, limits catalog.Limits) (*Tools, error) {
	tools := &Tools{limits: limits, bounds: defaultBounds()}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for name, program := range map[string]*sandbox.Program{"ffmpeg": &tools.ffmpeg, "ffprobe": &tools.ffprobe} {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("%s is not in PATH; install FFmpeg with %s", name, installation)
		}
		if *program, err = sandbox.NewProgram(ctx, path); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"heif-dec", "heif-convert"} { // heif-convert is the older name
		if path, err := exec.LookPath(name); err == nil {
			if tools.heif, err = sandbox.NewProgram(ctx, path); err != nil {
				return nil, err
			}
			tools.heif = tools.heif.WithPlugins()
			break
		}
	}
	var err error
	if tools.box, err = sandbox.New(ctx); err != nil {
		return nil, err
	}
	return tools, tools.check(ctx)
}

// versionForm matches the start of a banner, such as "ffmpeg version 5.1.9-0+deb12u1 ...", and captures the major
// version.
var versionForm = regexp.MustCompile(`^ffmpeg version n?([0-9]+)\.`)

// leanForm matches a build configuration that leaves out common components.
var leanForm = regexp.MustCompile(`--disable-(all|everything|filter|swscale)`)

// hasFilters reports whether the configuration in a banner shows that the build has the filters.
// Every build that leaves nothing out has all of them except zscale.
func hasFilters(banner string) bool {
	return strings.Contains(banner, "--enable-libzimg") && !leanForm.MatchString(banner)
}

// check asks the program for its codecs. If the configuration does not show the filters, it also asks for these. Each
// query delays startup by a tenth of a second.
func (t *Tools) check(ctx context.Context) error {
	codecs, banner, err := t.list(ctx, "codecs")
	if err != nil {
		return err
	}
	filters := ""
	if !hasFilters(banner) {
		if filters, _, err = t.list(ctx, "filters"); err != nil {
			return err
		}
	}
	t.has = supported(codecs, filters)
	has := t.has
	for _, name := range required["filter"] {
		has["filter "+name] = has["filter "+name] || hasFilters(banner)
	}
	var missing []string
	for kind, names := range required {
		for _, name := range names {
			if !has[kind+" "+name] {
				missing = append(missing, kind+" "+name)
			}
		}
	}
	if found := versionForm.FindStringSubmatch(banner); found != nil {
		if major, _ := strconv.Atoi(found[1]); major < oldestMajor {
			return fmt.Errorf("%s is version %d; version %d or newer is needed", t.ffmpeg.Path, major, oldestMajor)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("%s lacks %s; install a full build of FFmpeg with %s", t.ffmpeg.Path,
			strings.Join(missing, ", "), installation)
	}
	return nil
}

func (t *Tools) list(ctx context.Context, kind string) (listed, banner string, err error) {
	var out bytes.Buffer
	banner, err = t.say(ctx, process{
		program: t.ffmpeg, args: []string{"-" + kind}, stdout: &out, processorTime: t.bounds.probeTime, maxFile: 1,
	})
	if err != nil {
		return "", "", fmt.Errorf("%s -%s: %w", t.ffmpeg.Path, kind, err)
	}
	return out.String(), banner, nil
}

// codersForm matches the coders of a codec that has several coders, or one with a different name:
//
//	DEV.LS h264   H.264 / AVC (decoders: h264 h264_qsv ) (encoders: libx264 )
var codersForm = regexp.MustCompile(`\((decoder|encoder)s: ([^)]*)\)`)

// coders is the set of a build's decoders, encoders and filters. Each is written as its kind and name, such as
// "encoder libx264". "codec h264" means that some decoder for H.264 exists.
type coders map[string]bool

func supported(codecs, filters string) coders {
	has := coders{}
	for line := range strings.Lines(codecs) {
		fields := strings.Fields(line)
		if len(fields) < 2 || len(fields[0]) < 2 {
			continue
		}
		has["codec "+fields[1]] = fields[0][0] == 'D'
		listed := codersForm.FindAllStringSubmatch(line, -1)
		for _, found := range listed {
			for _, name := range strings.Fields(found[2]) {
				has[found[1]+" "+name] = true
			}
		}
		// If a codec has only one coder and both have the same name, the list omits the coder.
		named := func(kind string) bool {
			return slices.ContainsFunc(listed, func(found []string) bool { return found[1] == kind })
		}
		for i, kind := range []string{"decoder", "encoder"} {
			if fields[0][i] == "DE"[i] && !named(kind) {
				has[kind+" "+fields[1]] = true
			}
		}
	}
	for line := range strings.Lines(filters) {
		if fields := strings.Fields(line); len(fields) > 1 {
			has["filter "+fields[1]] = true
		}
	}
	return has
}
