package preview

import (
	"fmt"
	"image"
	"math"

	"cutroom/shared/engine/preview/look"
)

func (g *graph) warp(link string, op look.Warp, seed uint32) (string, error) {
	across, down := op.Draw(g.size.Width, g.size.Height, seed)
	var maps [2]string
	for i, drawn := range []*image.Gray{across, down} {
		drawn, err := g.picture(drawn)
		if err != nil {
			return "", err
		}
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

// shortest returns the option that ends the output with the main picture, because a moving drawn picture may end later.
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
