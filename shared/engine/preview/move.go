package preview

import (
	"fmt"
	"image"
	"math"
	"slices"

	"cutroom/shared/engine/preview/look"
)

// early moves a soft warp to the start, where the picture is still luma and chroma, if the
// operations before it treat all points alike.
func (g *graph) early(ops []look.Op) []look.Op {
	if !g.luma || !g.even() {
		return ops
	}
	for at, op := range ops {
		switch op := op.(type) {
		case look.Smooth, look.Flatten, look.Clarity, look.Grade, look.Bloom:
			continue
		case look.Warp:
			if op.Soft {
				return slices.Concat([]look.Op{op}, ops[:at], ops[at+1:])
			}
		}
		break
	}
	return ops
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

// wave renders a soft warp on luma and chroma. Its maps are drawn at half size.
func (g *graph) wave(link string, op look.Warp, seed uint32) (string, error) {
	still := func(s *look.Sheet) {
		for i := range s.Values {
			s.Values[i] = 0.5
		}
	}
	if op.Across == nil {
		op.Across = still
	}
	if op.Down == nil {
		op.Down = still
	}
	op.Reach *= 2
	across, down := op.Draw(g.size.Width/2, g.size.Height/2, seed)
	var maps [2]string
	for i, drawn := range []*image.Gray{across, down} {
		drawn, err := g.picture(drawn)
		if err != nil {
			return "", err
		}
		luma, chroma := g.split(g.filter("format=gray", drawn))
		luma = g.filter(fmt.Sprintf("zscale=w=%d:h=%d:f=bilinear:%s", g.size.Width, g.size.Height, keepRange), luma)
		chroma = g.filter("lut=c0="+levels(fmt.Sprintf("%[1]d.5+(val-%[1]d)/2", look.WarpZero)), chroma)
		maps[i] = g.move(g.filter("mergeplanes=0x001010:yuv420p", luma, chroma), op.Motion)
	}
	return g.filter("displace=edge=smear", link, maps[0], maps[1]), nil
}

func (g *graph) move(drawn string, motion look.Motion) string {
	switch {
	case g.fps == 0 && motion.Hold > 0:
		return g.filter(fmt.Sprintf("crop=%d:%d:0:0,%s", g.size.Width, g.size.Height, g.drawn()), drawn)
	case g.fps == 0 || motion == look.Motion{}:
		// One picture is enough, because the last picture of an ended input is repeated.
		return g.filter(g.drawn(), drawn)
	case motion.Hold > 0:
		held := max(1, int(math.Round(motion.Hold*float64(g.fps))))
		margin := int(look.JumpMargin * g.length(1))
		return g.filter(fmt.Sprintf("%s,loop=loop=-1:size=1,crop=%d:%d:x='%s':y='%s'",
			g.drawn(), g.size.Width, g.size.Height, jump(look.JumpAcross, held, margin), jump(look.JumpDown, held, margin)), drawn)
	}
	return g.drift(drawn, motion)
}

// drift moves a drawn picture that wraps around. It crops from a tiled picture, which copies nothing.
func (g *graph) drift(drawn string, motion look.Motion) string {
	drawn = g.filter(g.drawn(), drawn)
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
	return g.filter(fmt.Sprintf("loop=loop=-1:size=1,crop=%d:%d:x='%s':y='%s'", g.size.Width, g.size.Height, x, y), drawn)
}

// drawn returns the filter to the pixel format for drawn pictures, which matches the format of the picture below.
func (g *graph) drawn() string {
	switch {
	case g.single:
		return "format=gray"
	case g.luma:
		return "format=yuv420p"
	}
	return "format=gbrp"
}

// shortest returns the option that ends the output with the picture's frames if a drawn picture's frames never end.
func (g *graph) shortest(motion look.Motion) string {
	if g.fps > 0 && motion != (look.Motion{}) {
		return "1"
	}
	return "0"
}

// jump returns the expression for where a layer's visible part starts (see look.JumpAcross).
func jump(step float64, held, margin int) string {
	return fmt.Sprintf("floor(mod(floor(n/%d)*%f,1)*%d)", held, step, margin)
}
