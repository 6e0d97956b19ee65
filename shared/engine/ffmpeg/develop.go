package ffmpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

// In CPU time.
const developTime = 20 * time.Second

// turns maps Exif orientations to the filters that rotate a picture upright.
var turns = map[int]string{
	2: "hflip", 3: "hflip,vflip", 4: "vflip",
	5: "transpose=cclock_flip", 6: "transpose=clock", 7: "transpose=clock_flip", 8: "transpose=cclock",
}

// ReadImage probes an image and returns it as a browser shows it: upright, in sRGB, and only the first frame of
// an animation. The result is the file itself or a PNG in the folder. Errors: as for ProbeVideo.
func (t *Tools) ReadImage(ctx context.Context, folder, path, mime string) (engine.Input, error) {
	input, err := t.develop(ctx, folder, engine.Input{Path: path, MIME: mime}, 0, developTime)
	if err != nil {
		return engine.Input{}, err
	}
	input.Info, err = t.ProbeImage(ctx, input.Path, input.MIME)
	return input, err
}

// develop is like ReadImage but does not probe, and returns videos unchanged. If side is not 0, it limits the longer
// side of a picture that needs conversion. A larger picture is also scaled down.
func (t *Tools) develop(ctx context.Context, folder string, input engine.Input, side int,
	most time.Duration) (engine.Input, error) {
	if kind, _ := media.Find(input.MIME); !kind.Image || kind.Video {
		return input, nil
	}
	file, err := os.Open(input.Path)
	if err != nil {
		return input, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return input, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	if err := precheckContent(file, stat.Size(), input.MIME, t.checkImage); err != nil {
		return input, err
	}
	still, err := media.InspectStill(file, stat.Size(), input.MIME)
	if err != nil {
		return input, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	heif := isHEIF(input.MIME)
	filters, cube := corrections(still)
	if filters == nil && !heif {
		return input, nil
	}
	work, err := os.MkdirTemp(folder, "picture-")
	if err != nil {
		return input, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	switch {
	case heif:
		if input, still, err = t.unpack(ctx, work, file, stat.Size(), still, most); err != nil {
			return input, err
		}
		filters, cube = corrections(still)
	case len(still.Frames) > 0:
		input.Path = filepath.Join(work, "frame.webp")
		if err := write(input.Path, still.Frames[0].Static(file)); err != nil {
			return input, err
		}
	}
	if err := write(filepath.Join(work, profileTable), bytes.NewReader(cube)); err != nil {
		return input, err
	}
	if side > 0 {
		filters = append([]string{"setsar=1", scaled(side)}, filters...)
	}
	// The picture is now upright and in sRGB, so drop metadata that would rotate or recolor it again.
	filters = append(filters, "sidedata=mode=delete", "setparams=color_primaries=bt709:color_trc=iec61966-2-1")
	source, err := t.inputArgs(Source{Path: input.Path, MIME: input.MIME, Options: []string{"-noautorotate"}})
	if err != nil {
		return input, err
	}
	args := append(append(t.globalArgs(), "-filter_threads", "1"), source...)
	err = t.explainProbe(ctx, t.run(ctx, process{
		program: t.ffmpeg, folder: work, inputs: []string{input.Path},
		args: append(args, "-map", "0:v:0", "-vf", strings.Join(filters, ","), "-frames:v", "1", "-map_metadata", "-1",
			"-c:v", "png", "-compression_level", "1", "-update", "1", "-f", "image2", "file:developed.png"),
		processorTime: most, maxFile: int64(t.maxAlloc()),
	}))
	return engine.Input{Path: filepath.Join(work, "developed.png"), MIME: "image/png"}, err
}

const profileTable = "profile.cube"

func isHEIF(mime string) bool { return mime == "image/heic" || mime == "image/avif" }

// corrections returns the filters that ffmpeg needs, or nil. cube is a color table that the filters may read.
func corrections(still media.Still) (filters []string, cube []byte) {
	if still.CMYK {
		filters = append(filters, "format=rgb24")
	}
	if len(still.Frames) > 0 {
		f := still.Frames[0]
		filters = append(filters, fmt.Sprintf("format=rgba,pad=%d:%d:%d:%d:color=black@0", f.Width, f.Height, f.X, f.Y))
	}
	if turn := turns[still.Orientation]; turn != "" {
		filters = append(filters, "format=rgb24|rgba", turn)
	}
	transfer, primaries := transfers[still.Transfer], colours[still.Primaries]
	switch cube = toSRGB(still.Profile); {
	case cube != nil:
		filters = append(filters, "format=rgb24|rgba|rgb48|rgba64", "lut3d=file="+profileTable+":interp=tetrahedral",
			"format=rgb24|rgba")
	case still.Profile != nil:
	case still.Gamma > 0 && math.Abs(still.Gamma*2.2-1) > 0.02:
		curve := fmt.Sprintf("'maxval*pow(val/maxval,%f)'", 1/(2.2*still.Gamma))
		filters = append(filters, "format=rgb24|rgba|rgb48|rgba64", fmt.Sprintf("lutrgb=r=%[1]s:g=%[1]s:b=%[1]s", curve))
	case transfer != "":
		info := media.Info{Transfer: transfer, Primaries: primaries, Matrix: "gbr"}
		filters = append(filters, "format=gbrp16", toneMap(info, "iw:ih"), "format=rgb24")
	case primaries != "":
		filters = append(filters, "format=gbrp16", "setparams=color_trc=iec61966-2-1:colorspace=gbr:color_primaries="+primaries,
			"zscale=p=bt709", "format=rgb24")
	}
	return filters, cube
}

// These are FFmpeg's names for the color properties (ITU-T H.273) that can be converted.
var (
	transfers = map[int]string{16: "smpte2084", 18: "arib-std-b67"}
	colours   = map[int]string{9: "bt2020", 12: "smpte432"}
)

// unpack converts a HEIC or AVIF file to a PNG in the folder and returns the remaining corrections.
func (t *Tools) unpack(ctx context.Context, folder string, file io.ReaderAt, size int64, still media.Still,
	most time.Duration) (engine.Input, media.Still, error) {
	input := engine.Input{Path: filepath.Join(folder, unpacked), MIME: "image/png"}
	if t.heif.Path == "" {
		return input, still, engine.InvalidInput(nil, "This server lacks heif-convert, which reads HEIC and AVIF pictures."+
			"Install the package %s, or send a JPEG or PNG.", heifPackage)
	}
	if size > maxHEIF {
		return input, still, engine.InvalidInput(nil, "A HEIC or AVIF picture may be at most %d MiB.", maxHEIF>>20)
	}
	err := t.convertHEIF(ctx, folder, io.NewSectionReader(file, 0, size), still.Others, most)
	if err != nil {
		return input, still, t.explainProbe(ctx, err)
	}
	opened, err := os.Open(input.Path)
	if err != nil {
		return input, still, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	defer opened.Close()
	stat, err := opened.Stat()
	if err != nil {
		return input, still, fmt.Errorf("ffmpeg: develop: %w", err)
	}
	converted, err := media.InspectStill(opened, stat.Size(), input.MIME)
	// heif-convert has already rotated the picture.
	return input, media.Still{Profile: converted.Profile, Transfer: still.Transfer, Primaries: still.Primaries}, err
}

// In bytes. The file is copied before the conversion.
const maxHEIF = 256 << 20

const unpacked = "unpacked.png"

// others holds the offsets of the flag bytes of all pictures in the file except the main one.
func (t *Tools) convertHEIF(ctx context.Context, folder string, from io.Reader, others []int64, most time.Duration) error {
	copied := filepath.Join(folder, "picture.heif")
	if err := write(copied, from); err != nil {
		return err
	}
	if err := hide(copied, others); err != nil {
		return fmt.Errorf("ffmpeg: develop: %w", err)
	}
	err := t.run(ctx, process{
		program: t.heif, args: []string{"picture.heif", unpacked}, folder: folder, inputs: []string{copied},
		processorTime: most, maxFile: int64(t.maxAlloc()),
	})
	if _, missing := os.Stat(filepath.Join(folder, unpacked)); err == nil && missing != nil {
		return &failure{program: t.heif.Path, err: missing}
	}
	return err
}

// stills maps the brands of sequences to picture brands, because older versions of heif-convert reject sequences.
var stills = map[string]string{"avis": "avif", "msf1": "heic", "hevc": "heic", "hevx": "heic"}

// hide makes heif-convert decode only the main picture. It marks the other pictures as hidden, and a sequence as a
// picture.
func hide(path string, flags []int64) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var brand [4]byte
	const brandAt = 8
	if _, err := file.ReadAt(brand[:], brandAt); err == nil && stills[string(brand[:])] != "" {
		if _, err := file.WriteAt([]byte(stills[string(brand[:])]), brandAt); err != nil {
			return err
		}
	}
	for _, at := range flags {
		var flag [1]byte
		if _, err := file.ReadAt(flag[:], at); err != nil {
			return err
		}
		if _, err := file.WriteAt([]byte{flag[0] | 1}, at); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, from io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("ffmpeg: develop: %w", err)
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("ffmpeg: develop: %w", err)
	}
	return nil
}
