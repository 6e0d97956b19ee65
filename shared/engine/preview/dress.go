package preview

import (
	"context"
	"fmt"
	"image"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/garment"
	"cutroom/shared/engine/preview/look"
)

// dress puts cloth on the subject: a pattern with the garment's colours and
// texture replaces the clothes' own colours and keeps their folds.
func (e *edit) dress(ctx context.Context, link string) (string, error) {
	pixels, size, err := e.sample(ctx, look.Look{})
	if err != nil {
		return "", err
	}
	clothes := garment.Find(pixels, size)
	cloth, err := e.cloth(ctx)
	if err != nil {
		return "", err
	}
	pattern, err := e.picture(cloth)
	if err != nil {
		return "", err
	}
	area, err := e.picture(drawGray(e.size, garment.Body))
	if err != nil {
		return "", err
	}
	colors, err := e.table(clothes.Table)
	if err != nil {
		return "", err
	}
	shade, err := e.table(clothes.Shade())
	if err != nil {
		return "", err
	}

	variation, err := e.table(look.Variation(e.spec.Seed))
	if err != nil {
		return "", err
	}

	plain, rest := e.split(link)
	lit, found := e.split(rest)
	// Blurring closes the gaps that noise and folds leave.
	mask := e.filter(fmt.Sprintf("%s,%s,format=gray,median=radius=%d,avgblur=sizeX=%d,%s", e.shrink(2), colors,
		e.pixels(0.007), e.pixels(0.0015), e.full()), found)
	mask = e.filter("blend=all_mode=multiply", mask, e.filter("format=gbrp", area))
	folds := e.filter(shade, lit)
	dressed := e.filter("blend=all_mode=grainmerge", folds, e.filter("format=gbrp,"+variation, pattern))
	return e.filter("maskedmerge", plain, dressed, mask), nil
}

// drawGray draws a function of the position.
func drawGray(size catalog.Size, value func(x, y float64) float64) *image.Gray {
	picture := image.NewGray(image.Rect(0, 0, size.Width, size.Height))
	for y := range size.Height {
		for x := range size.Width {
			v := value((float64(x)+0.5)/float64(size.Width), (float64(y)+0.5)/float64(size.Height))
			picture.Pix[y*picture.Stride+x] = uint8(v*255 + 0.5)
		}
	}
	return picture
}

// garmentSide is the longer side at which a garment is searched for in a
// reference image, in pixels.
const garmentSide = 384

// cloth draws what the subject is to wear, in the size of the result.
func (e *edit) cloth(ctx context.Context) (image.Image, error) {
	var reference *garment.Reference
	if e.spec.Reference != nil {
		info := e.spec.Reference.Info
		size := catalog.Size{Width: garmentSide, Height: garmentSide}
		if info.Width > 0 && info.Height > 0 {
			longer := max(info.Width, info.Height)
			size = catalog.Size{Width: max(2, garmentSide*info.Width/longer), Height: max(2, garmentSide*info.Height/longer)}
		}
		pixels, err := e.reference(ctx, size)
		if err != nil {
			return nil, err
		}
		reference = &garment.Reference{Size: size, Pixels: pixels}
	}
	return garment.Cloth(reference, e.spec.Prompt, e.spec.Seed, e.size), nil
}
