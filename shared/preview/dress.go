package preview

import (
	"context"
	"fmt"
	"image"
	"math"

	"cutroom/shared/look"
	"cutroom/shared/model"
)

// dress puts cloth on the subject: a pattern with the garment's colours and
// texture takes the place of the clothes' own colours and keeps their folds.
// Where the clothes are is a guess: about the middle of the picture, in colours
// that are found there and not at the borders.
func (e *edit) dress(ctx context.Context, link string) (string, error) {
	pixels, size, err := e.sample(ctx, look.Look{})
	if err != nil {
		return "", err
	}
	region := findClothes(pixels, size)
	cloth, err := e.cloth(ctx)
	if err != nil {
		return "", err
	}
	pattern, err := e.picture(cloth)
	if err != nil {
		return "", err
	}
	area, err := e.picture(drawGray(e.size, bodyArea))
	if err != nil {
		return "", err
	}
	colors, err := e.table(region.table)
	if err != nil {
		return "", err
	}
	shade, err := e.table(region.shade())
	if err != nil {
		return "", err
	}

	variation, err := e.table(look.Variation(e.spec.Seed))
	if err != nil {
		return "", err
	}

	plain, rest := e.split(link)
	lit, found := e.split(rest)
	// Blurring joins what noise and folds tore apart.
	mask := e.filter(fmt.Sprintf("%s,%s,format=gray,median=radius=%d,avgblur=sizeX=%d,%s", e.shrink(2), colors,
		e.pixels(0.007), e.pixels(0.0015), e.full()), found)
	mask = e.filter("blend=all_mode=multiply", mask, e.filter("format=gbrp", area))
	folds := e.filter(shade, lit)
	dressed := e.filter("blend=all_mode=grainmerge", folds, e.filter("format=gbrp,"+variation, pattern))
	return e.filter("maskedmerge", plain, dressed, mask), nil
}

// bodyArea says how likely clothes are at a place, both 0 to 1: a column in the
// middle that leaves out the height of a head.
func bodyArea(x, y float64) float64 {
	across := math.Abs(x-0.5) / 0.27
	down := math.Abs(y-0.66) / 0.42
	d := math.Pow(across, 2.4) + math.Pow(down, 3)
	return max(0, min(1, (1.12-d)/0.4))
}

// drawGray draws a function of the place.
func drawGray(size model.Size, value func(x, y float64) float64) *image.Gray {
	picture := image.NewGray(image.Rect(0, 0, size.Width, size.Height))
	for y := range size.Height {
		for x := range size.Width {
			v := value((float64(x)+0.5)/float64(size.Width), (float64(y)+0.5)/float64(size.Height))
			picture.Pix[y*picture.Stride+x] = uint8(v*255 + 0.5)
		}
	}
	return picture
}
