package preview

import (
	"context"
	"fmt"
	"image"
	"slices"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/garment"
	"cutroom/shared/engine/preview/look"
)

// layCloth puts cloth on the subject: a pattern with the garment's colors and texture replaces the
// clothes' own colors and keeps their folds. Errors: [*engine.Error] if no face is found, because
// clothes are searched for below a face.
func (e *edit) layCloth(ctx context.Context, link string) (string, error) {
	stills, size, apart, err := e.stills(ctx)
	if err != nil {
		return "", err
	}
	seen, err := follow(stills, size, apart)
	if err != nil {
		return "", err
	}
	height := float64(size.Height) / float64(size.Width)
	low := slices.DeleteFunc(slices.Clone(seen), func(s sighting) bool { return (height-s.Face.Y)/s.Face.Size < clothed })
	switch {
	case len(seen) > 0 && len(low) == 0:
		return "", engine.InvalidInput(nil, "There is a face, but too little below it to show clothes.")
	case len(seen) == 0:
		return "", engine.InvalidInput(nil, "No face shows from the front. The preview engine recolors the clothes below one, "+
			"and finds none without. A generative model needs no face: the server's setting CUTROOM_ENGINE connects one.")
	}
	shots := make([]garment.Shot, len(seen))
	for i, s := range seen {
		shots[i] = s.Shot
	}
	clothes := garment.Find(shots, size)
	cloth, err := e.cloth(ctx)
	if err != nil {
		return "", err
	}
	pattern, err := e.picture(cloth)
	if err != nil {
		return "", err
	}
	area, err := e.torso(seen)
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
	// Blurring closes gaps caused by noise and folds.
	mask := e.filter(fmt.Sprintf("%s,%s,format=gray,median=radius=%d,avgblur=sizeX=%d,%s", e.shrink(2), colors,
		e.pixels(0.007), e.pixels(0.0015), e.full()), found)
	mask = e.filter("blend=all_mode=multiply:shortest=1", mask, area)
	folds := e.filter(shade, lit)
	dressed := e.filter("blend=all_mode=grainmerge", folds, e.filter("format=gbrp,"+variation, pattern))
	return e.filter("maskedmerge", plain, dressed, mask), nil
}

// The area below a face that must be visible for its clothes to be found, in face sizes.
const clothed = 1.5

const (
	// The interval in seconds between frames that are searched for faces, and their maximum
	// number: in long clips the interval is larger.
	stillsApart = 0.5
	maxStills   = 24
)

// stills decodes small, evenly spaced pictures. It returns their size and their interval in
// seconds.
func (e *edit) stills(ctx context.Context) (pictures [][]byte, size catalog.Size, apart float64, err error) {
	side := max(e.size.Width, e.size.Height)
	small := *e
	small.graph = graph{folder: e.folder, prefix: "still-", size: catalog.Size{
		Width:  max(2, e.size.Width*garment.FaceSide/side),
		Height: max(2, e.size.Height*garment.FaceSide/side),
	}}
	data := *e.spec.Data
	apart = max(stillsApart, data.Info.Duration.Seconds()/maxStills)
	link := small.input(ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info})
	link = small.filter(fmt.Sprintf("fps=fps=%.6f:start_time=0:round=up", 1/apart), link)
	pixels, err := small.decode(ctx, small.filter("format=rgb24", small.source(link, data)), maxStills)
	if err != nil {
		return nil, small.size, apart, err
	}
	return slices.Collect(slices.Chunk(pixels, 3*small.size.Width*small.size.Height)), small.size, apart, nil
}

type sighting struct {
	at float64
	garment.Shot
}

// follow finds the subject's face in each picture. A face of a very different size is taken for
// another person's.
func follow(pictures [][]byte, size catalog.Size, apart float64) ([]sighting, error) {
	var seen []sighting
	var sizes []float64
	for i, pixels := range pictures {
		if len(pixels) < 3*size.Width*size.Height {
			break
		}
		face, found, err := garment.FindFace(pixels, size)
		if err != nil {
			return nil, err
		}
		if found {
			seen = append(seen, sighting{float64(i) * apart, garment.Shot{Pixels: pixels, Face: face}})
			sizes = append(sizes, face.Size)
		}
	}
	if len(seen) == 0 {
		return nil, nil
	}
	slices.Sort(sizes)
	middle := sizes[len(sizes)/2]
	return slices.DeleteFunc(seen, func(s sighting) bool { return s.Face.Size > 1.7*middle || s.Face.Size < middle/1.7 }), nil
}

// torso returns the link of a mask of the clothes, white on black, that moves with the face.
func (e *edit) torso(seen []sighting) (string, error) {
	width := float64(e.size.Width)
	face := seen[0].Face
	// The torso's box extends this far from the face, in face sizes.
	const beside, above, below = 2.1, 0.7, 4.7
	box := catalog.Size{
		Width: max(2, int(2*beside*face.Size*width)), Height: max(2, int((below-above)*face.Size*width)),
	}
	left, top := face.X-beside*face.Size, face.Y+above*face.Size
	drawn, err := e.picture(drawGray(box, func(x, y float64) float64 { return face.Torso(left+x/width, top+y/width) }))
	if err != nil {
		return "", err
	}
	across := along(seen, func(f garment.Face) float64 { return (f.X - beside*face.Size) * width })
	down := along(seen, func(f garment.Face) float64 { return (f.Y + above*face.Size) * width })
	ground := e.filter(fmt.Sprintf("color=c=black:s=%s:r=%d,format=gbrp", e.size, max(e.fps, 1)))
	return e.filter(fmt.Sprintf("overlay=x='%s':y='%s':format=gbrp,format=gbrp", across, down),
		ground, e.filter("format=gbrp", drawn)), nil
}

// along returns a filter expression for a length that is interpolated linearly between sightings,
// and is constant before the first and after the last.
func along(seen []sighting, length func(garment.Face) float64) string {
	expression := fmt.Sprintf("%.1f", length(seen[len(seen)-1].Face))
	for i := len(seen) - 2; i >= 0; i-- {
		from, to := seen[i], seen[i+1]
		a, b := length(from.Face), length(to.Face)
		expression = fmt.Sprintf("if(lt(t,%.3f),%.1f+(%.1f)*max(0,t-%.3f)/%.3f,%s)",
			to.at, a, b-a, from.at, to.at-from.at, expression)
	}
	return expression
}

func drawGray(size catalog.Size, value func(x, y float64) float64) *image.Gray {
	picture := image.NewGray(image.Rect(0, 0, size.Width, size.Height))
	for y := range size.Height {
		for x := range size.Width {
			picture.Pix[y*picture.Stride+x] = uint8(value(float64(x)+0.5, float64(y)+0.5)*255 + 0.5)
		}
	}
	return picture
}

// A reference image is scaled to this longer side, in pixels, to search it for a garment.
const garmentSide = 384

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
