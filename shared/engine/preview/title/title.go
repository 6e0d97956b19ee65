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
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"cutroom/shared/domain/catalog"
)

var loaded = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gobold.TTF) })

// Fit returns a text without the characters that the font lacks, and these characters. The font has Latin, Greek and
// Cyrillic letters, but no emoji.
func Fit(text string) (fit, lacking string) {
	parsed, err := loaded()
	if err != nil {
		return text, ""
	}
	var buffer sfnt.Buffer
	fit = strings.Map(func(r rune) rune {
		if glyph, _ := parsed.GlyphIndex(&buffer, r); glyph != 0 || unicode.IsSpace(r) {
			return r
		}
		if unicode.In(r, unicode.Letter, unicode.Symbol, unicode.Number, unicode.Punct) { // not a joiner of emoji
			lacking += string(r)
		}
		return -1
	}, text)
	return strings.Join(strings.Fields(fit), " "), lacking
}

const (
	// widest limits the width of a line, and highest limits the height of the text, as fractions of the picture's.
	widest, highest = 0.9, 0.4
	maxRunes        = 300
)

// Draw draws a text with an outline, as large as fits a picture of the given size. The scale is 1 for letters of the
// usual size. The returned image is as large as the text. The box behind the text may be transparent.
func Draw(text string, ink, box color.Color, size catalog.Size, scale float64) (image.Image, error) {
	parsed, err := loaded()
	if err != nil {
		return nil, err
	}
	if runes := []rune(text); len(runes) > maxRunes {
		text = string(runes[:maxRunes])
	}
	short := float64(min(size.Width, size.Height))
	for pixels := max(scale*short/11, 8); ; pixels *= 0.85 {
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
		outline, around := max(1, pixels/16), image.Black
		if color.GrayModel.Convert(ink).(color.Gray).Y < 64 {
			around = image.White
		}
		margin := int(outline) + 1
		if _, _, _, alpha := box.RGBA(); alpha > 0 {
			margin += int(pixels / 4)
		}
		picture := image.NewRGBA(image.Rect(0, 0, width+2*margin, height*len(lines)+2*margin))
		draw.Draw(picture, picture.Rect, image.NewUniform(box), image.Point{}, draw.Src)
		for i, line := range lines {
			left := (width-font.MeasureString(face, line).Ceil())/2 + margin
			d := font.Drawer{Dst: picture, Src: around, Face: face}
			at := fixed.P(left, i*height+face.Metrics().Ascent.Ceil()+margin)
			for turn := range 24 { // copies around the letters are their outline
				sin, cos := math.Sincos(float64(turn) * math.Pi / 12)
				d.Dot = at.Add(fixed.P(int(math.Round(outline*cos)), int(math.Round(outline*sin))))
				d.DrawString(line)
			}
			d.Src, d.Dot = image.NewUniform(ink), at
			d.DrawString(line)
		}
		return picture, face.Close()
	}
}

// wrap divides words into lines and returns the width of the widest line, in pixels. No line is wider than the given
// maximum.
func wrap(face font.Face, words []string, most int) (lines []string, width int) {
	for _, word := range words {
		last := len(lines) - 1
		if last < 0 || font.MeasureString(face, lines[last]+" "+word).Ceil() > most {
			lines = append(lines, word)
		} else {
			lines[last] += " " + word
		}
	}
	for _, line := range lines {
		width = max(width, font.MeasureString(face, line).Ceil())
	}
	return lines, width
}
