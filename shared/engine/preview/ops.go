package preview

import (
	"fmt"
	"math"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// apply renders a look's operations with fast filters, which are written in C and process slices in parallel.
//
// Operations that leave no fine detail run at half size, as do later operations that add no detail. Operations that
// change only shapes work on luma and chroma.
func (g *graph) apply(link string, l look.Look) (string, error) {
	if len(l.Ops) == 0 {
		return link, nil
	}
	full := g.size
	defer func() { g.size = full }()
	enough := func(s look.Smooth) bool { return g.length(s.Radius) >= halvedFrom }
	for at, op := range l.Ops {
		var err error
		layer, _ := op.(look.Layer)
		switch lines, draws := op.(look.Lines); {
		case g.size == full && look.Softens(l.Ops[at:], enough):
			g.size = partOf(full, g.part(l.Ops[at:]))
			link = g.filter(g.reduce(1), link)
		case g.size == full || look.Coarse(op) || layer.Soft:
		case draws:
			if link, err = g.linesOf(link, lines, full); err != nil {
				return "", err
			}
			continue
		default:
			g.size = g.finer(op, full)
			link = g.colors(link) // must precede restore, which depends on the format
			link = g.filter(g.restore(), link)
		}
		if link, err = g.op(link, op, l.Seed); err != nil {
			return "", err
		}
	}
	if g.size != full {
		link = g.colors(link)
		g.size = full
		link = g.filter(g.restore(), link)
	}
	return link, nil
}

// At this radius, in pixels, and above, smoothing runs at half size.
const halvedFrom = 2.5

// At this radius, in pixels, and above, flattening runs at a third of the size.
const thirdFrom = 4

// part returns the scale divisor for operations that leave no fine detail.
func (g *graph) part(ops []look.Op) int {
	for _, op := range ops {
		if op, ok := op.(look.Flatten); ok && g.length(op.Radius) >= thirdFrom {
			return 3
		}
	}
	return 2
}

func partOf(full catalog.Size, by int) catalog.Size {
	return catalog.Size{Width: evened(full.Width / by), Height: evened(full.Height / by)}
}

// finer returns the size for an operation for which the current picture is too small. Half size is enough for a color
// change that creates edges between patches.
func (g *graph) finer(op look.Op, full catalog.Size) catalog.Size {
	half := partOf(full, 2)
	if grade, ok := op.(look.Grade); ok && !grade.LUT.Nearest && g.size.Width < half.Width {
		return half
	}
	return full
}

func (g *graph) op(link string, op look.Op, seed uint32) (string, error) {
	switch op := op.(type) {
	case look.Smooth:
		return g.shape(link, bilateral(g.length(op.Radius), op.Range, 7)), nil
	case look.Flatten:
		return g.shape(link, g.flatten(op)), nil
	case look.Blur:
		return g.filter(fmt.Sprintf("gblur=sigma=%.3f", g.length(op.Radius)), link), nil
	case look.Clarity:
		return g.clarity(link, op), nil
	case look.Grade:
		return g.grade(link, op.LUT)
	case look.Lines:
		return g.linesOf(link, op, g.size)
	case look.Warp:
		if op.Waves() && g.even() {
			if !g.luma {
				link = g.filter("zscale=m=709:rin=full:r=limited:d=none,format=yuv420p", link)
			}
			g.luma = true // waves are small, so moving only luma looks the same and takes half of the time
			return g.warp(link, op, seed)
		}
	}
	link = g.colors(link)
	switch op := op.(type) { // the rest need RGB
	case look.Pixelate:
		block := g.pixels(op.Block)
		return g.filter(fmt.Sprintf("pixelize=w=%d:h=%d", block, block), link), nil
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

func (g *graph) shape(link, filters string) string {
	if !g.even() {
		// zscale does not support chroma at half-pixel positions.
		return g.filter("format=yuv420p,"+filters+",format=gbrp", g.colors(link))
	}
	if !g.luma {
		g.luma = true
		filters = "zscale=m=170m:rin=full:r=limited:d=none,format=yuv420p," + filters
	}
	return g.filter(filters, link)
}

func (g *graph) even() bool { return g.size.Width%2 == 0 && g.size.Height%2 == 0 }

// colors converts a picture to RGB if it is luma and chroma.
func (g *graph) colors(link string) string {
	if !g.luma {
		return link
	}
	g.luma = false
	return g.filter("zscale=rin=limited:r=full:d=none,format=gbrp", link)
}

func bilateral(radius, within float64, planes int) string {
	return fmt.Sprintf("bilateral=sigmaS=%.3f:sigmaR=%.4f:planes=%d", radius, within, planes)
}

// Color differences below this are flattened within a patch; see [look.Smooth].
const chromaRange = 0.1

// flatten turns luma into flat patches. Chroma is small and soft and does not need a slow median.
func (g *graph) flatten(op look.Flatten) string {
	radius := g.pixels(op.Radius)
	luma := fmt.Sprintf("median=radius=%d:planes=1", radius)
	if radius == 1 {
		// For 3x3 pixels, this filter gives the same result in a fortieth of the time.
		luma = "removegrain=m0=4"
	}
	return luma + "," + bilateral(g.length(op.Radius)/2, chromaRange, 6)
}

// grade changes colors with a table, in 16 bits. The filter is several times faster with 16 bits
// than with 8, which outweighs the conversions. zscale converts in a quarter of scale's time.
func (g *graph) grade(link string, lut *look.LUT) (string, error) {
	if lut == look.Negative() {
		return g.filter("negate", g.colors(link)), nil
	}
	table, err := g.table(lut)
	if err != nil {
		return "", err
	}
	if lut.Nearest {
		link, g.crisp = g.colors(link), true
	}
	g.luma = false
	return g.filter(table, link), nil
}

// clarity works on either luma and chroma or RGB.
func (g *graph) clarity(link string, op look.Clarity) string {
	sharp, wide := g.split(link)
	factor := blurFactor(g.length(op.Radius))
	wide = g.filter(
		fmt.Sprintf("%s,avgblur=sizeX=%d,%s", g.reduce(factor), g.pixels(op.Radius/float64(factor)), g.restore()),
		wide,
	)
	sum := fmt.Sprintf("'clip(%.3f*x-%.3f*y+0.5,0,255)'", 1+op.Amount, op.Amount)
	return g.filter(fmt.Sprintf("lut2=c0=%[1]s:c1=%[1]s:c2=%[1]s", sum), sharp, wide)
}

// linesOf draws lines at the given size over a picture, which may be smaller.
func (g *graph) linesOf(link string, op look.Lines, at catalog.Size) (string, error) {
	picture, drawing := g.split(link)
	light, format := "val", "format=gray"
	if g.luma {
		light, format = "clip((val-16)*255/219,0,255)", "extractplanes=y"
	}
	picture = g.colors(picture)
	biased := levels(fmt.Sprintf("(%s+%[2]f)/(255+%[2]f)*255+0.5", light, 255*look.LinesBias))
	fine, wide := g.split(g.filter(format+",lut=c0="+biased, drawing))
	wide = g.filter(fmt.Sprintf("avgblur=sizeX=%d", g.pixels(op.Width)), wide)
	ratio := g.filter("blend=all_mode=divide", fine, wide)
	if op.Fill != nil {
		table, err := g.table(op.Fill)
		if err != nil {
			return "", err
		}
		picture = g.filter(table, picture)
	}
	if g.size != at {
		g.size = at
		ratio = g.filter(g.zscale(at.Width, at.Height, "bicubic"), ratio)
		picture = g.filter(g.restore(), picture)
	}
	inks := fmt.Sprintf("lutrgb=r=%s:g=%s:b=%s", curve(op, op.Ink[0]), curve(op, op.Ink[1]), curve(op, op.Ink[2]))
	ratio = g.filter(inks, g.triple(ratio))
	return g.filter("blend=all_mode=multiply", picture, ratio), nil
}

// levels adapts an expression to a filter that evaluates it for 65536 levels instead of 256.
func levels(of string) string { return "'if(gt(val,255),0," + of + ")'" }

// curve returns the expression for one channel of the ink. Its input is the ratio of the picture to its surroundings.
func curve(op look.Lines, ink float64) string {
	share := fmt.Sprintf("clip((val/255-%.4f)/%.4f,0,1)", op.From, op.To-op.From)
	return levels(fmt.Sprintf("255*(%.4f+%.4f*(st(0,%s)*ld(0)*(3-2*ld(0))))+0.5", ink, 1-ink, share))
}

func (g *graph) triple(link string) string {
	red, rest := g.split(link)
	green, blue := g.split(rest)
	return g.filter("mergeplanes=0x001020:gbrp", red, green, blue)
}

func (g *graph) bloom(link string, op look.Bloom) string {
	picture, light := g.split(link)
	bright := levels(fmt.Sprintf("max(val-%.2f,0)*%.4f+0.5", 255*op.Threshold, op.Amount/(1-op.Threshold)))
	factor := blurFactor(g.length(op.Radius))
	light = g.filter(fmt.Sprintf("%s,lutrgb=r=%[2]s:g=%[2]s:b=%[2]s,gblur=sigma=%.3f,%s",
		g.reduce(factor), bright, g.length(op.Radius)/float64(factor), g.restore()), light)
	return g.filter("blend=all_mode=screen", picture, light)
}

func (g *graph) layer(link string, op look.Layer, seed uint32) (string, error) {
	g.restless = g.restless || op.Motion.Hold > 0 || math.Hypot(op.Motion.Right, op.Motion.Down) >= rushFrom
	drawn, err := g.picture(op.Draw(g.size.Width, g.size.Height, seed))
	if err != nil {
		return "", err
	}
	mode := map[look.Mode]string{look.Multiply: "multiply", look.Screen: "screen", look.Add: "grainmerge"}[op.Mode]
	drawn = g.move(drawn, op.Motion)
	moving := g.fps > 0 && op.Motion != look.Motion{} // the drawn picture may end later than the main one
	return g.filter(fmt.Sprintf("blend=all_mode=%s:shortest=%t", mode, moving), link, drawn), nil
}

func (g *graph) length(units float64) float64 {
	return units * float64(min(g.size.Width, g.size.Height))
}

// pixels converts units to whole pixels, at least 1.
func (g *graph) pixels(units float64) int { return look.Pixels(units, g.size.Width, g.size.Height) }

// blurFactor returns the factor by which a picture may shrink before a blur, which hides the loss.
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

// full returns a filter that scales to the result's size.
func (g *graph) full() string {
	return fmt.Sprintf("scale=%d:%d:flags=bicubic,setsar=1,format=gbrp", g.size.Width, g.size.Height)
}

// reduce and restore return filters that scale to a fraction of the result's size and back, for planar
// pictures that keep their format.
func (g *graph) reduce(factor int) string {
	return g.zscale(evened(g.size.Width/factor), evened(g.size.Height/factor), "bilinear") + "," + g.planar()
}

func (g *graph) restore() string {
	return g.zscale(g.size.Width, g.size.Height, "bicubic") + "," + g.planar()
}

func (g *graph) zscale(width, height int, filter string) string {
	if g.luma {
		return fmt.Sprintf("zscale=w=%d:h=%d:f=%s:d=none", width, height, filter)
	}
	return fmt.Sprintf("zscale=w=%d:h=%d:f=%s:%s", width, height, filter, keepRange)
}

// evened rounds a side down to an even number, so that chroma has whole pixels.
func evened(side int) int { return max(2, side/2*2) }

// planar returns the filter that keeps the graph's pixel format.
func (g *graph) planar() string {
	if g.luma {
		return "format=yuv420p"
	}
	return "format=gbrp"
}

// zscale must keep the RGB range and must not dither.
const keepRange = "rin=full:r=full:d=none"
