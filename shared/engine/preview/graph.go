package preview

import (
	"bufio"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
)

// graph is a filter graph under construction, together with the files that it reads. Between
// filters, pictures are planar RGB (initially in the result's size) or luma and chroma.
type graph struct {
	folder, prefix string
	size           catalog.Size
	// luma is true while pictures are 8-bit 4:2:0 (luma, and chroma at half size) and still in the
	// input's color matrix.
	luma bool
	// crisp is true if pictures have few-colored blocks whose edges must stay sharp.
	crisp bool
	// restless is true if a texture jumps, or moves farther per frame than an encoder searches for motion.
	restless bool
	// fps is 0 for a single picture. count is the result's number of frames. Drawn pictures end there. Otherwise they
	// would keep FFmpeg busy if the input had no frames.
	fps, count int
	frames     *ffmpeg.Frames
	inputs     []ffmpeg.Source
	chains     []string
	labels     int
}

// A texture is restless at this speed or above, in units per second. At 720 lines and 20 frames per second, this speed
// is 14 pixels per frame. Encoders search 16 pixels.
const rushFrom = 0.4

func (g *graph) stir(motion look.Motion) {
	g.restless = g.restless || motion.Hold > 0 || math.Hypot(motion.Right, motion.Down) >= rushFrom
}

func (g *graph) label() string {
	g.labels++
	return fmt.Sprintf("[v%d]", g.labels)
}

// filter passes links through filters and returns the output link's name.
func (g *graph) filter(filters string, links ...string) string {
	out := g.label()
	g.chains = append(g.chains, strings.Join(links, "")+filters+out)
	return out
}

func (g *graph) split(link string) (string, string) {
	a, b := g.label(), g.label()
	g.chains = append(g.chains, link+"split"+a+b)
	return a, b
}

func (g *graph) String() string { return strings.Join(g.chains, ";") }

func (g *graph) input(source ffmpeg.Source) string {
	number := len(g.inputs)
	if g.frames != nil {
		number++
	}
	g.inputs = append(g.inputs, source)
	return g.filter(source.Picture(number))
}

func (g *graph) picture(picture image.Image) (string, error) {
	name := fmt.Sprintf("%spicture%d.png", g.prefix, len(g.inputs))
	path := filepath.Join(g.folder, name)
	file, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<16)
	// The file is read only once, so its size does not matter. Compressing it would take a fifth of the time.
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(out, picture); err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	if err := out.Flush(); err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	source := ffmpeg.Source{Path: path, MIME: "image/png"}
	if g.fps > 0 {
		source.Options = []string{"-framerate", fmt.Sprint(g.fps)}
	}
	return g.input(source), nil
}

func (g *graph) table(lut *look.LUT) (string, error) {
	g.labels++
	name := fmt.Sprintf("%stable%d.m3d", g.prefix, g.labels)
	file, err := os.Create(filepath.Join(g.folder, name))
	if err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	defer file.Close()
	if err := lut.WriteM3D(file); err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	if lut.Nearest {
		return fmt.Sprintf("lut3d=file=%s:interp=nearest", name), nil
	}
	from := keepRange
	if g.luma {
		from = "rin=limited:r=full:d=none"
	}
	return fmt.Sprintf("zscale=%s,format=gbrp16,lut3d=file=%s:interp=tetrahedral,zscale=%s,format=gbrp", from, name,
		keepRange), nil
}
