// Package title draws text for pictures.
package title

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"cutroom/shared/domain/catalog"
)

var loaded = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gobold.TTF) })

// CanDraw reports whether the font has the letters of a text: Latin, Greek and Cyrillic.
func CanDraw(text string) bool {
	for _, r := range text {
		if unicode.IsLetter(r) && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
			return false
		}
	}
	return true
}

const (
	// widest limits the width of a line, and highest limits the height of the text, as fractions of the picture's.
	widest, highest = 0.9, 0.4
	maxRunes        = 300
)

// Draw draws a text with an outline, as large as fits a picture of the given size. The returned image is as large as
// the text. Unknown colors are white.
func Draw(text, name string, size catalog.Size) (image.Image, error) {
	parsed, err := loaded()
	if err != nil {
		return nil, err
	}
	if runes := []rune(text); len(runes) > maxRunes {
		text = string(runes[:maxRunes])
	}
	short := float64(min(size.Width, size.Height))
	for pixels := max(short/11, 8); ; pixels *= 0.85 {
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: pixels, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return nil, err
		}
		lines, width := wrap(face, strings.Fields(text), int(widest*float64(size.Width)))
		height := face.Metrics().Height.Ceil()
		fits := width <= int(widest*float64(size.Width)) && height*len(lines) <= int(highest*float64(size.Height))
		if !fits && pixels > 8 {
			face.Close()
			continue
		}
		outline := max(1, int(pixels/16))
		letters := image.NewAlpha(image.Rect(0, 0, width+2*outline, height*len(lines)+2*outline))
		for i, line := range lines {
			left := (width-font.MeasureString(face, line).Ceil())/2 + outline
			base := i*height + face.Metrics().Ascent.Ceil() + outline
			d := font.Drawer{Dst: letters, Src: image.Opaque, Face: face, Dot: fixed.P(left, base)}
			d.DrawString(line)
		}
		picture := image.NewRGBA(letters.Rect)
		draw.DrawMask(picture, picture.Rect, image.Black, image.Point{}, grown(letters, outline), image.Point{}, draw.Over)
		draw.DrawMask(picture, picture.Rect, image.NewUniform(named(name)), image.Point{}, letters, image.Point{}, draw.Over)
		return picture, face.Close()
	}
}

// grown returns a mask that is larger by a radius in pixels. It copies the mask to points on two circles, which
// leaves no gaps for letters of this weight.
func grown(mask *image.Alpha, radius int) *image.Alpha {
	large := image.NewAlpha(mask.Rect)
	copy(large.Pix, mask.Pix)
	for _, r := range []float64{float64(radius), float64(radius) / 2} {
		for turn := range 24 {
			sin, cos := math.Sincos(float64(turn) * math.Pi / 12)
			shift := int(math.Round(r*sin))*mask.Stride + int(math.Round(r*cos))
			from, to := max(0, -shift), min(len(mask.Pix), len(mask.Pix)-shift)
			for i := from; i < to; i++ {
				large.Pix[i+shift] = max(large.Pix[i+shift], mask.Pix[i])
			}
		}
	}
	return large
}

// wrap divides words into lines and returns the width of the widest line, in pixels. No line is wider than the given
// maximum.
func wrap(face font.Face, words []string, most int) (lines []string, width int) {
	line := ""
	for i, word := range words {
		next := strings.TrimSpace(line + " " + word)
		if line != "" && font.MeasureString(face, next).Ceil() > most {
			lines, next = append(lines, line), word
		}
		if line = next; i == len(words)-1 {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		width = max(width, font.MeasureString(face, line).Ceil())
	}
	return lines, width
}

func named(name string) color.Color {
	known, ok := map[string]color.RGBA{
		"red": {230, 30, 30, 255}, "orange": {255, 150, 20, 255}, "yellow": {255, 225, 40, 255}, "green": {40, 190, 70, 255},
		"teal": {20, 180, 180, 255}, "blue": {50, 110, 240, 255}, "purple": {150, 70, 220, 255}, "pink": {255, 110, 180, 255},
		"brown": {130, 80, 40, 255}, "black": {30, 30, 30, 255}, "gray": {150, 150, 150, 255},
	}[name]
	if !ok {
		return color.White
	}
	return known
}
