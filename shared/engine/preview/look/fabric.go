package look

import (
	"image"
	"image/color"
	"math"
	"slices"
	"sync"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/engine/preview/look/oklab"
)

// weave is a cloth pattern. For a position in units it returns the fraction of the second color, 0
// to 1, and the surface lighting, around 0.
type weave func(x, y float64, uneven *noise.Field) (second, relief float64)

type pattern struct {
	phrases []string
	weave   weave
}

func patterns() []pattern {
	return []pattern{
		{[]string{"stripe", "striped", "sailor", "pinstripe"}, func(x, y float64, _ *noise.Field) (float64, float64) {
			return smoothstep(-0.1, 0.1, math.Sin(y*2*math.Pi/0.055)), 0
		}},
		{[]string{
			"plaid", "checked", "checkered", "tartan", "flannel", "gingham",
		}, func(x, y float64, _ *noise.Field) (float64, float64) {
			u, v := smoothstep(-0.1, 0.1, math.Sin(x*2*math.Pi/0.09)), smoothstep(-0.1, 0.1, math.Sin(y*2*math.Pi/0.09))
			fine := smoothstep(0.93, 1, max(math.Sin(x*2*math.Pi/0.09+1.6), math.Sin(y*2*math.Pi/0.09+1.6)))
			return 0.5*u + 0.5*v, 0.10 * fine
		}},
		{[]string{"polka", "polka dot", "dotted", "dot"}, func(x, y float64, _ *noise.Field) (float64, float64) {
			u, v := (x+y)/0.06, (x-y)/0.06
			return smoothstep(0.34, 0.28, math.Hypot(u-math.Round(u), v-math.Round(v))), 0
		}},
		{[]string{"floral", "flower", "hawaiian", "tropical"}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			u, v := x/0.085+0.3*uneven.At(x*9, y*9), y/0.085+0.3*uneven.At(x*9+40, y*9)
			du, dv := u-math.Round(u), v-math.Round(v)
			petal := 0.27 + 0.13*math.Cos(5*math.Atan2(dv, du)+9*uneven.At(math.Round(u)*1.7, math.Round(v)*1.7))
			r := math.Hypot(du, dv)
			return smoothstep(petal+0.03, petal-0.03, r) * (1 - 0.8*smoothstep(0.10, 0.07, r)), 0
		}},
		{[]string{
			"leopard", "animal print", "camouflage", "camo",
		}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			n := uneven.Fractal(x*22, y*22, 3)
			return smoothstep(0.04, 0.09, math.Abs(n+0.06)-0.04) * 0.9, 0
		}},
		{[]string{"denim", "jean"}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			twill := math.Sin((x + y) * 2 * math.Pi / 0.006)
			return 0.25 + 0.2*uneven.Fractal(x*6, y*6, 3), 0.05*twill + 0.04*uneven.At(x*160, y*160)
		}},
		{[]string{"leather", "latex", "silk", "satin"}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			folds := uneven.Fractal(x*5, y*3, 3)
			return 0.1, 0.20*folds + 0.16*smoothstep(0.2, 0.5, folds)
		}},
		{[]string{
			"knit", "knitted", "wool", "sweater", "jumper", "cardigan",
		}, func(x, y float64, _ *noise.Field) (float64, float64) {
			u, v := x/0.016, y/0.020
			loop := math.Abs(u-math.Round(u))*1.4 + v
			return 0.15, 0.16 * math.Cos((loop-math.Round(loop))*2*math.Pi)
		}},
		{[]string{
			"sequin", "glitter", "sparkly", "sparkling", "disco",
		}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			u, v := x/0.017, y/0.017
			du, dv := u-math.Round(u), v-math.Round(v)
			flash := uneven.At(math.Round(u)*3.1+0.5, math.Round(v)*3.1+0.5)
			return 0.2 + 0.3*flash, 0.35*flash - 0.25*smoothstep(0.3, 0.5, math.Hypot(du, dv))
		}},
		{[]string{
			"plain", "cotton", "shirt", "dress", "coat", "suit", "jacket", "hoodie",
		}, func(x, y float64, uneven *noise.Field) (float64, float64) {
			return 0.08, 0.04 * uneven.Fractal(x*150, y*150, 2)
		}},
	}
}

// Cloth draws a cloth with the colors and patterns in the prompt, or the seed's if it names none.
// The size is in pixels.
func Cloth(prompt string, seed uint32, width, height int) *image.RGBA {
	tokens := words(prompt)
	source := noise.NewSource(uint64(seed), 2)
	first := oklab.FromHue(source.Between(0.35, 0.75), source.Between(0.12, 0.18), source.Float()*360)
	second := oklab.FromHue(source.Between(0.75, 0.95), source.Between(0.03, 0.09), source.Float()*360)
	known := patterns()
	chosen := known[source.Intn(len(known))].weave
	if len(tokens) > 0 {
		chosen = known[len(known)-1].weave // plain weave weave
	}
	for named, d := range dyesIn(tokens) {
		if named == 0 {
			first = hex(d.color)
		} else {
			second = hex(d.color)
		}
	}
	// Earlier patterns win. Plain garments come last, so that a "striped shirt" is striped.
	for _, candidate := range slices.Backward(known) {
		if slices.ContainsFunc(candidate.phrases, func(phrase string) bool { return has(tokens, phrase) }) {
			chosen = candidate.weave
		}
	}
	placed := noise.NewSource(uint64(seed), 70)
	uneven := noise.NewField(uint64(seed), 71)
	dx, dy, turn := placed.Float(), placed.Float(), placed.Between(-0.12, 0.12)
	sin, cos := math.Sincos(turn)
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	sheet := newSheet(width, height, seed, Motion{})
	sheet.rows(func(row int) {
		for i := range width {
			x, y := float64(i)/sheet.Unit, float64(row)/sheet.Unit
			share, relief := chosen(x*cos+y*sin+dx, y*cos-x*sin+dy, uneven)
			c := first.Lerp(second, clamp(share))
			c.L += relief
			r, g, b := c.SRGB()
			picture.SetRGBA(i, row, color.RGBA{level(r), level(g), level(b), 255})
		}
	})
	return picture
}

func dyesIn(tokens []string) []dye {
	var found []dye
	known := dyes()
	for _, token := range tokens {
		if i := slices.IndexFunc(known, func(d dye) bool { return d.name == token }); i >= 0 {
			found = append(found, known[i])
		}
	}
	return found
}

// Words that do not ask for a different cut of clothes.
var garments = sync.OnceValue(func() map[string]bool {
	return set(`wear wearing wears dress dressed put on in with him her them he she they person man woman girl boy
	model subject somebody someone replace swap change clothe clothes clothing cloth fabric garment outfit top tee shirt
	t tshirt blouse coat suit jacket hoodie sweatshirt blazer vest pullover tunic colored coloured color colour new one
	different his hers their`)
})

func ReadCloth(prompt string) Result {
	tokens := tokenize(prompt)
	r := Result{Understood: []string{}, Empty: len(tokens) == 0}
	all := make([]part, 0, len(tokens))
	var ignored []part
	var texts []string
	denied, blocked, kept := -1, -1, 0
	for _, t := range tokens {
		switch {
		case negations()[t.text]:
			denied, kept = t.clause, kept+1
		case things()[t.text] && !garments()[t.text]:
			blocked = t.clause
		}
		p := part{class: filler, first: t, last: t}
		switch {
		case t.clause == denied:
		case t.clause == blocked:
			p.class = content
			ignored = append(ignored, p)
		case slices.ContainsFunc(dyes(), func(d dye) bool { return d.name == t.text }) || patternWords()[t.text]:
			p.class = named
			texts = append(texts, t.text)
		case !garments()[t.text] && classOf(t.text) == content:
			p.class = content
			ignored = append(ignored, p)
		}
		all = append(all, p)
	}
	for _, text := range texts {
		if !slices.Contains(r.Understood, text) {
			r.Understood = append(r.Understood, text)
		}
	}
	r.Ignored = quote(prompt, all, ignored)
	r.Declined = kept > 0 && len(texts) == 0 && len(ignored) == 0
	return r
}

// Words that name a cloth's pattern or texture.
var patternWords = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{"plain": true, "cotton": true}
	all := patterns()
	for _, p := range all[:len(all)-1] {
		for _, phrase := range p.phrases {
			for _, word := range words(phrase) {
				known[word] = true
			}
		}
	}
	return known
})

type dye struct {
	name  string
	color uint32
}

func dyes() []dye {
	return []dye{
		{"red", 0xc81e28}, {"crimson", 0xa5122a}, {"scarlet", 0xd8281c}, {"burgundy", 0x6d1428}, {"orange", 0xf07818},
		{"yellow", 0xf5cf28}, {"mustard", 0xc8961e}, {"gold", 0xd4a63a}, {"golden", 0xd4a63a}, {"green", 0x1f8a46},
		{"emerald", 0x0c7a58}, {"olive", 0x6b6f2a}, {"khaki", 0x9a8c60}, {"lime", 0x9bd02a}, {"mint", 0x9fdcc0},
		{"teal", 0x11797d}, {"turquoise", 0x2cb5b2}, {"cyan", 0x25b8d8}, {"blue", 0x1f55c8}, {"navy", 0x16244f},
		{"sky", 0x84c0ee}, {"indigo", 0x39318c}, {"denim", 0x35507e}, {"purple", 0x6f2da8}, {"violet", 0x7b3fc4},
		{"lavender", 0xb8a2e0}, {"pink", 0xf07fa8}, {"magenta", 0xd1208f}, {"fuchsia", 0xd1208f}, {"brown", 0x6b4226},
		{"tan", 0xc49a6c}, {"beige", 0xd9c7a3}, {"cream", 0xf3e8cc}, {"ivory", 0xf5efdc}, {"white", 0xf4f4f2},
		{"silver", 0xc0c4ca}, {"gray", 0x808489}, {"grey", 0x808489}, {"black", 0x16171b}, {"leopard", 0xb98244},
	}
}
