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
	// If step is above 1, only every step-th frame is read, and it may be replaced by an earlier one.
	step int
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

func (g *graph) warp(link string, op look.Warp, seed uint32) (string, error) {
	across, down := op.Draw(g.size.Width, g.size.Height, seed)
	var maps [2]string
	for i, drawn := range []*image.Gray{across, down} {
		drawn, err := g.picture(drawn)
		if err != nil {
			return "", err
		}
		drawn = g.filter("scale=in_range=pc:out_range=pc,"+g.planar(), drawn) // every level counts
		motion := op.Motion
		if i == 1 && op.Down == nil && motion.Hold == 0 {
			motion = look.Motion{} // this map is the same everywhere
		}
		maps[i] = g.move(drawn, motion)
	}
	return g.filter("displace=edge=smear", link, maps[0], maps[1]), nil
}

func (g *graph) move(drawn string, motion look.Motion) string {
	switch {
	case g.fps == 0 && motion.Hold > 0:
		return g.filter(fmt.Sprintf("crop=%d:%d:0:0,%s", g.size.Width, g.size.Height, g.planar()), drawn)
	case g.fps == 0 || motion == look.Motion{}:
		// One picture is enough, because FFmpeg repeats the last picture of an input that has ended.
		return g.filter(g.planar(), drawn)
	case motion.Hold > 0:
		held := max(1, int(math.Round(motion.Hold*float64(g.fps))))
		margin := int(look.JumpMargin * g.length(1))
		return g.filter(fmt.Sprintf("%s,loop=loop=%d:size=1,crop=%d:%d:x='%s':y='%s'",
			g.planar(), g.count, g.size.Width, g.size.Height, jump(look.JumpAcross, held, margin), jump(look.JumpDown, held, margin)), drawn)
	}
	return g.drift(drawn, motion)
}

// drift moves a drawn picture that wraps around. It crops a tiled picture, which requires no copying.
func (g *graph) drift(drawn string, motion look.Motion) string {
	drawn = g.filter(g.planar(), drawn)
	tile := func(stack string, speed float64, side int) string {
		if speed == 0 {
			return "0"
		}
		one, other := g.split(drawn)
		drawn = g.filter(stack, one, other)
		step := -speed * g.length(1) / float64(g.fps)
		return fmt.Sprintf("mod(mod(n*%.6f,%[2]d)+%[2]d,%[2]d)", step, side)
	}
	x := tile("hstack", motion.Right, g.size.Width)
	y := tile("vstack", motion.Down, g.size.Height)
	return g.filter(fmt.Sprintf("loop=loop=%d:size=1,crop=%d:%d:x='%s':y='%s'", g.count, g.size.Width, g.size.Height, x, y), drawn)
}

// jump returns the expression for where a layer's visible part starts (see look.JumpAcross).
func jump(step float64, held, margin int) string {
	return fmt.Sprintf("floor(mod(floor(n/%d)*%f,1)*%d)", held, step, margin)
}
