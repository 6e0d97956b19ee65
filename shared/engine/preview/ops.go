package preview

import (
	"fmt"
	"image"
	"math"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// apply renders the operations of a look with filters. They are chosen for
// speed: filters written in C that process slices in parallel.
func (g *graph) apply(link string, l look.Look) (string, error) {
	for at := 0; at < len(l.Ops); {
		softened, did, err := g.halve(link, l.Ops[at:], l.Seed)
		if err != nil {
			return "", err
		}
		if did > 0 {
			link, at = softened, at+did
			continue
		}
		if link, err = g.op(link, l.Ops[at], l.Seed); err != nil {
			return "", err
		}
		at++
	}
	return link, nil
}

// halve renders the first operations at half size, if they leave no detail, and returns how
// many these are. The points that a warp moves before them need no more either.
func (g *graph) halve(link string, ops []look.Op, seed uint32) (out string, did int, err error) {
	warp, warps := ops[0].(look.Warp)
	if warps {
		did, ops = 1, ops[1:]
	}
	soften := g.soften(ops)
	if len(soften) == 0 {
		return "", 0, nil
	}
	link = g.filter(g.reduce(2), link)
	if warps {
		full := g.size
		g.size = catalog.Size{Width: max(1, full.Width/2), Height: max(1, full.Height/2)}
		link, err = g.warp(link, warp, seed)
		g.size = full
		if err != nil {
			return "", 0, err
		}
	}
	link = g.filter(fmt.Sprintf("format=yuv420p,%s,format=gbrp,%s", strings.Join(soften, ","), g.restore()), link)
	return link, did + len(soften), nil
}

// halvedFrom is the radius in pixels from which a picture is smoothed at half size: a smaller
// one would keep detail that half the size has no room for.
const halvedFrom = 2.5

// soften returns the filters of the first operations that leave no detail: they work at
// half size, and with colour at half of that, one after the other, which is far cheaper.
func (g *graph) soften(ops []look.Op) (filters []string) {
	for _, op := range ops {
		switch op := op.(type) {
		case look.Flatten:
			filters = append(filters, fmt.Sprintf("median=radius=%d", g.pixels(op.Radius/2)))
		case look.Smooth:
			if g.length(op.Radius) < halvedFrom {
				return filters
			}
			filters = append(filters, bilateral(g.length(op.Radius)/2, op.Range))
		default:
			return filters
		}
	}
	return filters
}

func (g *graph) op(link string, op look.Op, seed uint32) (string, error) {
	switch op := op.(type) {
	case look.Smooth:
		return g.filter("format=yuv420p,"+bilateral(g.length(op.Radius), op.Range)+",format=gbrp", link), nil
	case look.Pixelate:
		block := g.pixels(op.Block)
		return g.filter(fmt.Sprintf("pixelize=w=%d:h=%d", block, block), link), nil
	case look.Clarity:
		return g.clarity(link, op), nil
	case look.Grade:
		table, err := g.table(op.LUT)
		if err != nil {
			return "", err
		}
		return g.filter(table, link), nil
	case look.Lines:
		return g.lines(link, op)
	case look.Bloom:
		return g.bloom(link, op), nil
	case look.Fringe:
		shift := g.pixels(op.Shift)
		return g.filter(fmt.Sprintf("rgbashift=rh=%d:bh=%d:edge=smear", -shift, shift), link), nil
	case look.Warp:
		return g.warp(link, op, seed)
	case look.Layer:
		return g.layer(link, op, seed)
	}
	return "", fmt.Errorf("preview: no rendering of %T", op)
}

func bilateral(radius, within float64) string {
	return fmt.Sprintf("bilateral=sigmaS=%.3f:sigmaR=%.4f:planes=7", radius, within)
}

func (g *graph) clarity(link string, op look.Clarity) string {
	sharp, wide := g.split(link)
	factor := blurFactor(g.length(op.Radius))
	wide = g.filter(
		fmt.Sprintf("%s,avgblur=sizeX=%d,%s", g.reduce(factor), g.pixels(op.Radius/float64(factor)), g.restore()),
		wide,
	)
	return g.filter(fmt.Sprintf("mix=weights='%.3f %.3f':scale=1", 1+op.Amount, -op.Amount), sharp, wide)
}

func (g *graph) lines(link string, op look.Lines) (string, error) {
	picture, drawing := g.split(link)
	biased := fmt.Sprintf("format=gray,lut=c0='(val+%[1]f)/(255+%[1]f)*255+0.5'", 255*look.LinesBias)
	fine, wide := g.split(g.filter(biased, drawing))
	wide = g.filter(fmt.Sprintf("avgblur=sizeX=%d", g.pixels(op.Width)), wide)
	ratio := g.filter("blend=all_mode=divide", fine, wide)
	share := fmt.Sprintf("clip((val/255-%.4f)/%.4f,0,1)", op.From, op.To-op.From)
	curve := fmt.Sprintf("(st(0,%s)*ld(0)*(3-2*ld(0)))", share)
	channel := func(ink float64) string { return fmt.Sprintf("'255*(%.4f+%.4f*%s)+0.5'", ink, 1-ink, curve) }
	ink := g.filter(
		fmt.Sprintf("format=gbrp,lutrgb=r=%s:g=%s:b=%s", channel(op.Ink[0]), channel(op.Ink[1]), channel(op.Ink[2])), ratio,
	)
	if op.Fill != nil {
		table, err := g.table(op.Fill)
		if err != nil {
			return "", err
		}
		picture = g.filter(table, picture)
	}
	return g.filter("blend=all_mode=multiply", picture, ink), nil
}

func (g *graph) bloom(link string, op look.Bloom) string {
	picture, light := g.split(link)
	bright := fmt.Sprintf("'max(val-%.2f,0)*%.4f+0.5'", 255*op.Threshold, op.Amount/(1-op.Threshold))
	factor := blurFactor(g.length(op.Radius))
	light = g.filter(fmt.Sprintf("%s,lutrgb=r=%[2]s:g=%[2]s:b=%[2]s,gblur=sigma=%.3f,%s",
		g.reduce(factor), bright, g.length(op.Radius)/float64(factor), g.restore()), light)
	return g.filter("blend=all_mode=screen", picture, light)
}

func (g *graph) layer(link string, op look.Layer, seed uint32) (string, error) {
	drawn, err := g.picture(op.Draw(g.size.Width, g.size.Height, seed))
	if err != nil {
		return "", err
	}
	mode := map[look.Mode]string{look.Multiply: "multiply", look.Screen: "screen", look.Add: "grainmerge"}[op.Mode]
	drawn = g.move(drawn, op.Motion)
	return g.filter("blend=all_mode="+mode+":shortest="+g.shortest(op.Motion), link, drawn), nil
}

func (g *graph) warp(link string, op look.Warp, seed uint32) (string, error) {
	across, down := op.Draw(g.size.Width, g.size.Height, seed)
	var maps [2]string
	for i, drawn := range []*image.Gray{across, down} {
		if drawn == nil {
			maps[i] = g.filter(
				fmt.Sprintf("color=c=0x%[1]x%[1]x%[1]x:s=%[2]s:r=%[3]d,format=gbrp", look.WarpZero, g.size, max(g.fps, 1)),
			)
			continue
		}
		var err error
		if maps[i], err = g.picture(drawn); err != nil {
			return "", err
		}
		maps[i] = g.move(maps[i], op.Motion)
	}
	return g.filter("displace=edge=smear", link, maps[0], maps[1]), nil
}

// move returns the frames of a drawn picture that moves.
func (g *graph) move(drawn string, motion look.Motion) string {
	switch {
	case g.fps == 0 && motion.Hold > 0:
		return g.filter(fmt.Sprintf("crop=%d:%d:0:0,format=gbrp", g.size.Width, g.size.Height), drawn)
	case g.fps == 0 || motion == look.Motion{}:
		// One picture is enough: the last one of an input that has ended is
		// repeated.
		return g.filter("format=gbrp", drawn)
	case motion.Hold > 0:
		held := max(1, int(math.Round(motion.Hold*float64(g.fps))))
		margin := int(look.JumpMargin * g.length(1))
		return g.filter(fmt.Sprintf("format=gbrp,loop=loop=-1:size=1,crop=%d:%d:x='%s':y='%s'",
			g.size.Width, g.size.Height, jump(look.JumpAcross, held, margin), jump(look.JumpDown, held, margin)), drawn)
	}
	perFrame := func(speed float64, side int) float64 {
		return -speed * g.length(1) / float64(side) / float64(g.fps)
	}
	return g.filter(fmt.Sprintf("format=gbrp,loop=loop=-1:size=1,scroll=h=%.6f:v=%.6f",
		perFrame(motion.Right, g.size.Width), perFrame(motion.Down, g.size.Height)), drawn)
}

// shortest ends the output with the picture where a drawn picture's frames
// have no end.
func (g *graph) shortest(motion look.Motion) string {
	if g.fps > 0 && motion != (look.Motion{}) {
		return "1"
	}
	return "0"
}

// jump returns the filter expression for where the part of a layer begins that
// stays for a number of frames (see look.JumpAcross).
func jump(step float64, held, margin int) string {
	return fmt.Sprintf("floor(mod(floor(n/%d)*%f,1)*%d)", held, step, margin)
}

// length converts units to pixels.
func (g *graph) length(units float64) float64 {
	return units * float64(min(g.size.Width, g.size.Height))
}

// pixels converts units to whole pixels, at least 1.
func (g *graph) pixels(units float64) int {
	return look.Pixels(units, g.size.Width, g.size.Height)
}

// blurFactor returns by how much a picture may be scaled down before it is
// blurred over a number of pixels: the blur hides the loss.
func blurFactor(pixels float64) int {
	switch {
	case pixels >= 20:
		return 8
	case pixels >= 12:
		return 4
	case pixels >= 5:
		return 2
	}
	return 1
}

// shrink and full scale to a part of the result's size and back.
func (g *graph) shrink(factor int) string {
	return fmt.Sprintf("scale=%d:%d:flags=area", max(1, g.size.Width/factor), max(1, g.size.Height/factor))
}

func (g *graph) full() string {
	return fmt.Sprintf("scale=%d:%d:flags=bicubic,format=gbrp", g.size.Width, g.size.Height)
}

// reduce and restore do the same to what is planar RGB and stays it, in a third of the
// time.
func (g *graph) reduce(factor int) string {
	if factor == 1 {
		return "null"
	}
	return fmt.Sprintf("zscale=w=%d:h=%d:f=bilinear:%s,format=gbrp",
		max(1, g.size.Width/factor), max(1, g.size.Height/factor), asItIs)
}

func (g *graph) restore() string {
	return fmt.Sprintf("zscale=w=%d:h=%d:f=bicubic:%s,format=gbrp", g.size.Width, g.size.Height, asItIs)
}

// asItIs has zscale leave the range of RGB, and not dither.
const asItIs = "rin=full:r=full:d=none"
