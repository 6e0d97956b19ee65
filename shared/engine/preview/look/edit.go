package look

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"golang.org/x/image/colornames"
)

// Edit is an ordinary edit that a prompt requests: geometry, time, text or sound. Its filters are FFmpeg's, so it
// works only for finished results.
type Edit struct {
	*operation
	args arguments
	// Phrase is the phrase that requests the edit, verbatim.
	Phrase string
}

// Clip describes a picture or video for the filters of edits. Lengths are in seconds.
type Clip struct {
	Width, Height int
	Length        float64
	// Rate is the input's frame rate. FPS is the result's frame rate, 0 for a picture.
	Rate float64
	FPS  int
	// Right and Down are the offset of the subject from the center, as fractions of the longer side.
	Right, Down float64
	// Face is the height of the largest face without the hair, as a fraction of the longer side.
	Face float64
}

// Stage is the point at which a filter is applied.
type Stage int

const (
	// Early filters work on the input's frames, before they are sampled at the result's rate.
	Early Stage = iota
	// Shape filters change the geometry of frames of any size, with square pixels.
	Shape
	// Late filters work on frames of the result's size, after the look.
	Late
	// Sound filters work on the audio track.
	Sound
)

type kinds int

const (
	angle kinds = 1 << iota
	seconds
	factor
	ratio
	paint
	place
	quotation
	scale
	start
	end
	pixels
	axis
	// share is a part of a clip, such as its half.
	share
)

type filters map[Stage]filtering

type (
	// filtering returns FFmpeg filters. sizing returns the sides of the result, in the unit of its arguments.
	filtering func(arguments, Clip) string
	sizing    func(a arguments, width, height float64) (float64, float64)
	// interval returns the start and the end of a part of a clip, in seconds.
	interval func(a arguments, length float64) (from, to float64)
)

// operation is an entry of the table of ordinary edits.
type operation struct {
	name string
	// rank is the position in the table. Edits are applied in the order of the table, whatever their order in the
	// prompt.
	rank int
	// label names the edit with its arguments. If it is nil, the edit's name is used.
	label func(arguments) string
	takes kinds
	// needs means that the phrase requests nothing without an argument.
	needs bool
	// still means that the edit also works for pictures.
	still   bool
	filters filters
	size    sizing
	length  func(a arguments, length float64) float64
}

// These are the names of edits that need more than filters.
const (
	Reverse    = "reverse"
	Boomerang  = "boomerang"
	Loop       = "loop"
	Stabilize  = "stabilize"
	Title      = "text"
	Mute       = "mute"
	Upscale    = "upscale"
	Resize     = "resize"
	Logo       = "logo"
	Passport   = "passport photo"
	freezeAt   = "freeze at"
	freezeLast = "freeze the last frame"
	padded     = "fit into a square"
	middle     = "keep the middle"
	bothEnds   = "trim both ends"
	middleOut  = "cut out the middle"
	partOut    = "cut out"
)

// operations lists the ordinary edits in the order of application.
func operations() []operation {
	return slices.Concat(grounds(), cuts(), paces(), shapes(), drawings(), endings())
}

func cuts() []operation {
	central := func(a arguments, length float64) (from, to float64) {
		return (length - a.number(1)) / 2, (length + a.number(1)) / 2
	}
	return []operation{
		cutOut("skip the first", func(a arguments, length float64) (from, to float64) { return a.number(1), length }),
		cutOut(bothEnds, func(a arguments, length float64) (from, to float64) { return a.number(1), length - a.number(1) }),
		cutOut("remove the last", func(a arguments, length float64) (from, to float64) { return 0, length - a.number(1) }),
		cutOut("last", func(a arguments, length float64) (from, to float64) { return length - a.number(1), length }),
		cutOut("trim", func(a arguments, length float64) (from, to float64) {
			if len(a.numbers) > 1 {
				return a.numbers[0], a.numbers[1]
			}
			return 0, a.number(1)
		}),
		cutOut(middle, central), gap(middleOut, central),
		gap(partOut, func(a arguments, _ float64) (from, to float64) { return a.numbers[0], a.numbers[1] }),
	}
}

func paces() []operation {
	turn := "asplit[forth][turn];[turn]areverse[back];[forth][back]concat=v=0:a=1"
	return []operation{
		pace("slow motion", 1, 8, arguments.slower),
		pace("faster", 1.0/16, 1, func(a arguments) float64 { return 1 / a.faster() }),
		{
			name: freezeAt, takes: seconds, needs: true, filters: filters{Early: arguments.freeze, Sound: arguments.pause},
			label:  func(a arguments) string { return fmt.Sprintf("freeze at %g s for %g s", a.numbers[0], a.held()) },
			length: func(a arguments, length float64) float64 { return length + a.held() },
		},
		sound(Reverse, "areverse"),
		{
			name: Boomerang, filters: filters{Sound: just(turn)},
			length: func(_ arguments, length float64) float64 { return 2 * length },
		},
	}
}

func shapes() []operation {
	square := func(a arguments, _, _ float64) (float64, float64) { return a.proportion(1), 1 }
	biometric := func(a arguments, _, _ float64) (float64, float64) { return a.proportion(35.0 / 45), 1 }
	doubled := func(_ arguments, width, height float64) (float64, float64) { return 2 * width, 2 * height }
	resize := shaped(Resize, pixels|axis, label("resize to %s", arguments.pixels), arguments.crop, arguments.resized)
	resize.needs = true
	return []operation{
		shaped("rotate", angle|place, arguments.rotation, arguments.rotate, arguments.rotated),
		shaped("mirror", 0, nil, just("hflip"), nil), shaped("flip vertically", 0, nil, just("vflip"), nil),
		shaped("crop", ratio, label("crop to %s", shapeOr(1)), arguments.crop, square),
		shaped(Passport, ratio, label("passport photo (%s)", shapeOr(35.0/45)), arguments.passport, biometric),
		shaped(padded, ratio|paint, arguments.padding, arguments.pad, square),
		shaped("zoom in", factor|place, label("zoom in %gx", arguments.zoom), arguments.closeUp, nil),
		shaped(Upscale, factor, func(arguments) string { return "upscale 2x (bicubic)" }, nil, doubled),
		resize, shaped("denoise", 0, nil, just("hqdn3d=5:4:7:5"), nil),
	}
}

func drawings() []operation {
	late := func(name string, takes kinds, label func(arguments) string, filter filtering) operation {
		return operation{name: name, takes: takes, label: label, filters: filters{Late: filter}}
	}
	still := func(o operation) operation { o.still = true; return o }
	closer := func(a arguments, c Clip) string { return a.glide(c, "t") }
	farther := func(a arguments, c Clip) string { return a.glide(c, "(1-t)") }
	return []operation{
		late("deflicker", 0, nil, just("deflicker=size=7")), {name: Stabilize},
		still(late("letterbox", ratio, label("letterbox %s", shapeOr(2.39)), arguments.letterbox)),
		still(late("border", paint|pixels|scale, arguments.bordering, arguments.border)),
		late("zoom in slowly", factor|place, nil, closer), late("zoom out slowly", factor|place, nil, farther),
		{name: Title, label: arguments.title, takes: quotation | place | paint | scale, needs: true, still: true},
		{name: Logo, takes: place, still: true},
	}
}

func endings() []operation {
	held := func(a arguments, length float64) float64 { return length + a.number(2) }
	looped := func(a arguments, length float64) float64 { return length * float64(a.repeats()) }
	in, out, both := fading("fade in", start), fading("fade out", end), fading("fade in and out", start|end)
	return []operation{
		{name: freezeLast, takes: seconds | end, length: held},
		in, out, both, ofSound(in), ofSound(out), ofSound(both),
		{name: Loop, label: label("loop %dx", arguments.repeats), takes: factor, length: looped},
		sound(Mute, "volume=0"), volume("louder", true), volume("quieter", false),
		sound("normalize the sound", "loudnorm=I=-16:TP=-1.5:LRA=11,aresample=48000"),
		sound("denoise the sound", "afftdn=nf=-25"),
	}
}

// label returns a function that formats an argument.
func label[T any](format string, of func(arguments) T) func(arguments) string {
	return func(a arguments) string { return fmt.Sprintf(format, of(a)) }
}

func shapeOr(otherwise float64) func(arguments) string {
	return func(a arguments) string { return a.shape(otherwise) }
}

func just(filter string) filtering { return func(arguments, Clip) string { return filter } }

func shaped(name string, takes kinds, label func(arguments) string, filter filtering, size sizing) operation {
	return operation{name: name, takes: takes, label: label, still: true, filters: filters{Shape: filter}, size: size}
}

// pace returns the edit of a clip's speed with a name. The function `by` returns the factor by which a clip lasts
// longer, which is from least to most.
func pace(name string, least, most float64, by func(arguments) float64) operation {
	longer := func(a arguments, length float64) float64 {
		if a.lasts > 0 {
			return max(least, min(a.lasts/length, most))
		}
		return by(a)
	}
	early := func(a arguments, c Clip) string {
		by := longer(a, c.Length)
		paced := c.extended() + a.paced(c, by)
		if by > 1 && a.during == (Span{}) && c.Rate/by < float64(c.FPS) {
			paced += fmt.Sprintf(",minterpolate=fps=%d:mi_mode=blend:scd=none", c.FPS)
		}
		return paced
	}
	return operation{
		name: name, takes: factor,
		label: func(a arguments) string {
			if a.lasts > 0 {
				return fmt.Sprintf("%s to %g s", name, a.lasts)
			}
			return fmt.Sprintf("%s %.3gx", name, max(by(a), 1/by(a)))
		},
		filters: filters{
			Early: early, Sound: func(a arguments, c Clip) string { return a.tempo(c, 1/longer(a, c.Length)) },
		},
		length: func(a arguments, length float64) float64 { return a.stretched(length, longer(a, length)) },
	}
}

// shortest is the minimum length of the part that a clip can be cut to, in seconds.
const shortest = 0.2

// cutOut returns an operation that keeps a part of a clip.
func cutOut(name string, kept interval) operation {
	span := func(a arguments, length float64) (from, to float64) {
		if a.unit == share {
			a.numbers = []float64{length * a.number(1)}
		}
		from, to = kept(a, length)
		from = max(0, min(from, length))
		if to = max(0, min(to, length)); to <= from {
			return 0, length
		}
		to = max(to, min(from+shortest, length)) // at least one frame
		return min(from, max(0, to-shortest)), to
	}
	cut := func(a arguments, c Clip, filter, times string) string {
		from, to := span(a, c.Length)
		return fmt.Sprintf("%s=start=%.3f:end=%.3f,%s=PTS-STARTPTS", filter, from, to, times)
	}
	return operation{
		name: name, takes: seconds | share, needs: true,
		label: func(a arguments) string {
			part := map[bool]string{true: "first", false: name}[name == "trim"]
			switch {
			case a.unit == share:
				return strings.Replace(fmt.Sprintf("%s %.0f%%", part, 100*a.number(1)), " 50%", " half", 1)
			case name == "trim" && len(a.numbers) > 1:
				return fmt.Sprintf("from %g s to %g s", a.numbers[0], a.numbers[1])
			}
			return fmt.Sprintf("%s %g s", part, a.number(1))
		},
		filters: filters{
			Early: func(a arguments, c Clip) string { return c.filled() + cut(a, c, "trim", "setpts") },
			Sound: func(a arguments, c Clip) string { return cut(a, c, "atrim", "asetpts") },
		},
		length: func(a arguments, length float64) float64 {
			from, to := span(a, length)
			return to - from
		},
	}
}

// filled returns filters that give every moment of a clip a frame, even if its picture ends before its sound.
func (c Clip) filled() string {
	filters := "tpad=stop=-1:stop_mode=clone,"
	if c.Rate < 2/shortest {
		filters = fmt.Sprintf("fps=%d:start_time=0,", c.FPS) + filters
	}
	return filters
}

// extended returns filters that repeat the last frame of a clip with few frames, because some filters need three.
func (c Clip) extended() string {
	if c.FPS == 0 || c.Length*cmp.Or(c.Rate, float64(c.FPS)) >= 3 {
		return ""
	}
	return c.filled()
}

// gap returns an operation that removes a part of a clip.
func gap(name string, removed interval) operation {
	span := func(a arguments, length float64) (from, to float64) {
		from, to = removed(a, length)
		to = max(0, min(to, length))
		return max(0, min(from, to), to-length+shortest), to
	}
	return operation{
		name: name, takes: seconds, needs: true,
		label: func(a arguments) string {
			if name == middleOut {
				return fmt.Sprintf("%s %g s", name, a.number(1))
			}
			return fmt.Sprintf("%s %g s to %g s", name, a.numbers[0], a.numbers[1])
		},
		filters: filters{
			Early: func(a arguments, c Clip) string {
				from, to := span(a, c.Length)
				return c.filled() + fmt.Sprintf("select='lt(t,%.3f)+gte(t,%.3[2]f)',"+
					"setpts='PTS-gte(T,%.3[2]f)*%.3[3]f/TB'", from, to, to-from)
			},
			Sound: func(a arguments, c Clip) string {
				from, to := span(a, c.Length)
				return fmt.Sprintf("aselect='lt(t,%.3f)+gte(t,%.3f)',asetpts=N/SR/TB", from, to)
			},
		},
		length: func(a arguments, length float64) float64 {
			from, to := span(a, length)
			return length - (to - from)
		},
	}
}

func fading(name string, edges kinds) operation {
	filter := func(name string) filtering {
		return func(a arguments, c Clip) string {
			lasts := min(a.number(1), c.Length/2)
			var both []string
			color := ""
			if name == "fade" {
				color = ":c=" + Hex(a.colorOr("black"))
			}
			if edges&start != 0 {
				both = append(both, fmt.Sprintf("%s=t=in:st=0:d=%.3f%s", name, lasts, color))
			}
			if edges&end != 0 {
				both = append(both, fmt.Sprintf("%s=t=out:st=%.3f:d=%.3f%s", name, c.Length-lasts, lasts, color))
			}
			return strings.Join(both, ",")
		}
	}
	return operation{
		name: name, label: func(a arguments) string { return strings.TrimSuffix(name+" to "+a.color, " to ") },
		takes: seconds | edges | paint, filters: filters{Late: filter("fade"), Sound: filter("afade")},
	}
}

// ofSound returns the operation that changes only the sound.
func ofSound(o operation) operation {
	return operation{name: o.name + " the sound", takes: o.takes &^ paint, filters: filters{Sound: o.filters[Sound]}}
}

func sound(name, filter string) operation {
	return operation{name: name, filters: filters{Sound: just(filter)}}
}

func volume(name string, louder bool) operation {
	return operation{
		name: name, takes: factor,
		label: func(a arguments) string {
			if len(a.numbers) == 0 {
				return name
			}
			return fmt.Sprintf("volume %.0f%%", 100*a.volume(louder))
		},
		filters: filters{Sound: func(a arguments, _ Clip) string {
			return fmt.Sprintf("volume=%.3f", a.volume(louder)) + map[bool]string{true: ",alimiter=level=false"}[louder]
		}},
	}
}

// tempo returns the audio filters for a speed of the part of a clip that the edit is limited to. Below half speed, it
// needs more than one filter.
func (a arguments) tempo(c Clip, speed float64) string {
	chain := ""
	for ; speed < 0.5; speed *= 2 {
		chain += "atempo=0.5,"
	}
	chain += fmt.Sprintf("atempo=%g", speed)
	if a.during == (Span{}) {
		return chain
	}
	from, to := a.during.in(c.Length)
	return fmt.Sprintf("asplit=3[one][two][three];[one]atrim=end=%.3[1]f[before];[two]atrim=%.3[1]f:%.3[2]f,"+
		"asetpts=PTS-STARTPTS,%[3]s[paced];[three]atrim=start=%.3[2]f,asetpts=PTS-STARTPTS[after];"+
		"[before][paced][after]concat=n=3:v=0:a=1", from, to, chain)
}

// paced returns the filters that make the part of a clip that the edit is limited to last longer by a factor.
func (a arguments) paced(c Clip, by float64) string {
	if a.during == (Span{}) {
		return fmt.Sprintf("setpts=%g*PTS", by)
	}
	from, to := a.during.in(c.Length)
	return fmt.Sprintf("setpts='PTS+%g*(clip(T,%.3[2]f,%.3[3]f)-%.3[2]f)/TB'", by-1, from, to)
}

func (a arguments) stretched(length, by float64) float64 {
	from, to := a.during.in(length)
	return length + (to-from)*(by-1)
}

// freeze returns the filters that show a frame for longer, and pause the filters that add as much silence.
func (a arguments) freeze(c Clip) string {
	at := min(math.Round(a.numbers[0]*float64(c.FPS))+1, math.Floor(c.Length*float64(c.FPS))) // counted from 1
	return fmt.Sprintf("fps=%[1]d:start_time=0,loop=loop=%.0[2]f:size=1:start=%.0[3]f,setpts=N/%[1]d/TB",
		c.FPS, a.held()*float64(c.FPS), max(0, at))
}

func (a arguments) pause(Clip) string {
	return fmt.Sprintf("asplit[go][on];[go]atrim=end=%.3[1]f,apad=pad_dur=%.3[2]f[gone];"+
		"[on]atrim=start=%.3[1]f,asetpts=PTS-STARTPTS[rest];[gone][rest]concat=v=0:a=1", max(0.001, a.numbers[0]), a.held())
}

// rotate returns the filters that turn a picture. They crop the corners, which show nothing.
func (a arguments) rotate(Clip) string {
	if math.Mod(a.degrees(), 90) == 0 {
		return [...]string{"null", "transpose=clock", "hflip,vflip", "transpose=cclock"}[int(a.degrees()/90)]
	}
	sin, cos := math.Sincos(a.degrees() * math.Pi / 180)
	return fmt.Sprintf("rotate=%.5f,crop='max(2,iw/(%[2]f+%[3]f*max(iw/ih,ih/iw)))':'max(2,ih/(%[2]f+%[3]f*max(iw/ih,ih/iw)))'",
		a.degrees()*math.Pi/180, math.Abs(cos), math.Abs(sin))
}

func (a arguments) rotated(width, height float64) (float64, float64) {
	if math.Mod(a.degrees(), 180) == 90 {
		return height, width
	}
	return width, height
}

// crop returns the filter that crops a picture around its subject, unless only a number of pixels is requested.
func (a arguments) crop(c Clip) string {
	if a.unit == pixels && a.wanted == 0 {
		return "null"
	}
	return fmt.Sprintf("crop=w='min(iw,max(2,ih*%[1]f))':h='min(ih,max(2,iw/%[1]f))'", a.proportion(1)) + c.around()
}

func (a arguments) passport(c Clip) string {
	const format = "crop=w='min(iw,%[1]g*min(ih,max(iw,ih)*%[2]g))':h='min(ih,min(iw/%[1]g,max(iw,ih)*%[2]g))'"
	return fmt.Sprintf(format, a.proportion(35.0/45), 2*cmp.Or(c.Face, 0.5)) + c.around()
}

func (a arguments) closeUp(c Clip) string {
	return fmt.Sprintf("crop='min(iw,max(2,iw/%[1]g))':'min(ih,max(2,ih/%[1]g))'", a.zoom()) + a.aimed(c).around()
}

func (a arguments) padding() string {
	bars := map[bool]string{true: "blurred", false: a.colorOr("black")}[a.blurred]
	return fmt.Sprintf("fit into %s with %s bars", a.shape(1), bars)
}

// pad returns the filters that add bars.
func (a arguments) pad(c Clip) string {
	if a.blurred {
		return c.extended() + fmt.Sprintf("split[over][under];[under]scale='ceil(max(iw,ih*%[1]f)/4)':'ceil(max(ih,iw/%[1]f)/4)':"+
			"force_original_aspect_ratio=increase,crop='min(iw,ih*%[1]f)':'min(ih,iw/%[1]f)',gblur=sigma=6,scale=4*iw:4*ih[wide];"+
			"[wide][over]overlay=(W-w)/2:(H-h)/2", a.proportion(1))
	}
	return fmt.Sprintf("pad=w='2*ceil(max(iw,ih*%[1]f)/2)':h='2*ceil(max(ih,iw/%[1]f)/2)':x=-1:y=-1:color=%[2]s",
		a.proportion(1), Hex(a.colorOr("black")))
}

func (a arguments) letterbox(c Clip) string {
	return fmt.Sprintf("crop=w='min(iw,ih*%[1]f)':h='min(ih,iw/%[1]f)'%[4]s,pad=%[2]d:%[3]d:-1:-1:black",
		a.proportion(2.39), c.Width, c.Height, c.around())
}

func (a arguments) bordering() string {
	return a.colorOr("white") + map[bool]string{true: " polaroid"}[a.tall] + " border"
}

func (a arguments) border(c Clip) string {
	color := Hex(a.colorOr("white"))
	wide := a.number(max(2, float64(min(c.Width, c.Height))/24*math.Pow(cmp.Or(a.scale, 1), 2)))
	box := fmt.Sprintf("drawbox=c=%s:t=%.0f", color, wide)
	if a.tall {
		foot := min(3*wide, float64(c.Height)/4)
		box += fmt.Sprintf(",drawbox=c=%s:t=fill:y=ih-%.0f", color, foot) + a.during.Enable(c.Length)
	}
	return box
}

// held returns the duration of a frozen frame, in seconds.
func (a arguments) held() float64 {
	if len(a.numbers) > 1 {
		return a.numbers[1]
	}
	return 2
}

// aimed returns the clip with the place that the prompt names, if any, as its subject.
func (a arguments) aimed(c Clip) Clip {
	if a.placed {
		c.Right, c.Down = float64(a.across)/2, float64(a.down)/2
	}
	return c
}

// glide returns the filter that zooms in while the given expression of t grows from 0 to 1, the clip's end.
func (a arguments) glide(c Clip, expression string) string {
	c = a.aimed(c)
	time := fmt.Sprintf("clip((on-1)/%.0f,0,1)", max(1, c.Length*float64(c.FPS)-1)) // on counts from 1
	hidden := fmt.Sprintf("(1-1/%g)*%s", a.zoom(), strings.ReplaceAll(expression, "t", time))
	edges := func(side string, center float64) (near, far string) {
		near = fmt.Sprintf("%s*clip(%.4f-(1-%[3]s)/2,0,%[3]s)", side, center, hidden)
		return near, fmt.Sprintf("%s+%s*(1-%s)", near, side, hidden)
	}
	long := float64(max(c.Width, c.Height))
	left, right := edges("W", 0.5+c.Right*long/float64(c.Width))
	top, bottom := edges("H", 0.5+c.Down*long/float64(c.Height))
	return Camera(left, right, top, bottom)
}

// Camera returns the filter that shows a part of the picture, whose edges are expressions.
func Camera(left, right, top, bottom string) string {
	return fmt.Sprintf("perspective=x0='%[1]s':y0='%[3]s':x1='%[2]s':y1='%[3]s':x2='%[1]s':y2='%[4]s':x3='%[2]s':"+
		"y3='%[4]s':interpolation=cubic:eval=frame", left, right, top, bottom)
}

// around returns the position of a crop around the subject.
func (c Clip) around() string {
	const format = ":x='clip((iw-ow)/2+%.4f*max(iw,ih),0,iw-ow)':y='clip((ih-oh)/2+%.4f*max(iw,ih),0,ih-oh)'"
	return fmt.Sprintf(format, c.Right, c.Down)
}

// Label names the edit for the user, such as "rotate 90°".
func (e Edit) Label() string {
	if e.label != nil {
		return e.label(e.args) + e.args.during.String()
	}
	return e.name + e.args.during.String()
}

// Span returns the part of the clip to which the edit is limited.
func (e Edit) Span() Span { return e.args.during }

func (e Edit) Name() string { return e.name }

// OnlySound reports whether the edit changes nothing but the sound.
func (e Edit) OnlySound() bool {
	return len(e.filters) == 1 && e.filters[Sound] != nil && e.name != Reverse && e.name != Boomerang
}

func (e Edit) Still() bool { return e.still }
func (e Edit) Crops() bool {
	return e.Centers() || e.filters[Late] != nil && (e.name == "letterbox" || strings.HasPrefix(e.name, "zoom"))
}

func (o *operation) isFade() bool { return strings.HasPrefix(o.name, "fade") }

// Enlargement returns the factor by which edits enlarge the part of a frame that they keep.
func Enlargement(edits []Edit) float64 {
	factor := 1.0
	if _, rotates := Find(edits, "rotate"); rotates { // crops the corners
		factor = 1.5
	}
	if zoom, zooms := Find(edits, "zoom in"); zooms {
		factor *= zoom.args.zoom()
	}
	return factor
}

// Centers reports whether the edit moves the subject to the center.
func (e Edit) Centers() bool { return e.name == Passport || e.name == "crop" || e.name == "zoom in" }

// NeedsPerson reports whether the edit needs a person in the picture. ByReference reports whether
// the reference image becomes the background.
func (e Edit) NeedsPerson() bool { return e.isGround() }
func (e Edit) ByReference() bool {
	return e.isGround() && !e.args.removed && e.args.color == "" && e.args.scene == ""
}

// Opaque returns the edit for a video, which cannot be transparent: its background becomes white.
func (e Edit) Opaque() Edit {
	if e.args.removed {
		e.args.color = e.Color("white")
	}
	return e
}

// Clear reports whether the prompt asks for transparency. Removed reports whether the edit removes the background.
// Scene returns the words for a painted background, or "".
func (e Edit) Clear() bool   { return e.args.clear }
func (e Edit) Removed() bool { return e.args.removed }
func (e Edit) Scene() string { return e.args.scene }

// Text returns the text to write. Place returns its position: -1 to 1 from left to right and from top to bottom.
func (e Edit) Text() string              { return e.args.text }
func (e Edit) WithText(text string) Edit { e.args.text = text; return e }
func (e Edit) Place() (across, down float64) {
	switch {
	case e.args.placed:
		return float64(e.args.across), float64(e.args.down)
	case e.name == Logo:
		return 1, 1
	}
	return 0, 1
}

// Box returns the name of the color of a text's box, or "".
func (e Edit) Box() string { return e.args.box }

// Color returns the name of the requested color, or the fallback.
func (e Edit) Color(fallback string) string { return e.args.colorOr(fallback) }

// RGB returns the color with a name, such as "dark red", or transparent if the name is empty.
func RGB(name string) color.RGBA {
	c, known := colornames.Map[strings.Replace(name, "light ", "light", 1)]
	if known || name == "" {
		return c
	}
	shade, plain, _ := strings.Cut(name, " ")
	mixed := map[string][2]int{"light": {4, 153}, "dark": {5, 0}}[shade]
	c = colornames.Map[plain]
	mix := func(v uint8) uint8 { return uint8(int(v)*mixed[0]/10 + mixed[1]) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}

// Hex returns the color with a name in hexadecimal digits.
func Hex(name string) string {
	c := RGB(name)
	return fmt.Sprintf("0x%02x%02x%02x", c.R, c.G, c.B)
}

// Scale returns the size of a text; 1 is usual.
func (e Edit) Scale() float64 { return cmp.Or(e.args.scale, 1) }
func (e Edit) Repeats() int   { return e.args.repeats() }

// HeldLast returns for how many seconds the last frame is shown after the repeats of a loop.
func HeldLast(edits []Edit) float64 {
	if last := edits[len(edits)-1]; last.name == freezeLast {
		return last.args.number(2)
	}
	return 0
}

// Filters returns FFmpeg filters for a stage, joined by commas, or "".
func Filters(edits []Edit, at Stage, clip Clip) string {
	var chain []string
	for _, e := range edits {
		if filter := e.filters[at]; filter != nil {
			first, rest, more := strings.Cut(filter(e.args, clip), ",")
			enable := e.args.during.Enable(clip.Length)
			if e.length != nil {
				enable = "" // its filters contain the limits
			}
			if !strings.Contains(first, "=") {
				enable = strings.Replace(enable, ":", "=", 1) // filters without arguments, such as hflip
			}
			if first += enable; more {
				first += "," + rest
			}
			chain = append(chain, first)
		}
		// A filter that changes the length affects the length that later filters get.
		if e.length != nil && at != Late {
			clip.Length = e.length(e.args, clip.Length)
		}
	}
	return strings.Join(chain, ",")
}

// maxUpscaled is the longest side of an upscaled picture, in pixels. It is at most twice as long as usual.
const maxUpscaled = 4096

func exceeds(width, height, long float64) bool {
	return max(width, height) > min(maxUpscaled, 2*long) || min(width, height) < 16
}

// Exceeds reports whether the edit requests a size that is not possible for a picture of the given size.
func (e Edit) Exceeds(width, height int) bool {
	if e.name != Upscale && e.name != Resize {
		return false
	}
	w, h := e.size(e.args, float64(width), float64(height))
	return exceeds(w, h, float64(max(width, height)))
}

// SizeOf returns a result's size. width and height are its size without the edits. The size fits into the same box,
// unless the result is upscaled.
func SizeOf(edits []Edit, width, height int) (int, int) {
	w, h := float64(width), float64(height)
	long, short := max(w, h), min(w, h)
	for _, e := range edits {
		if e.size == nil {
			continue
		}
		before := [2]float64{w, h}
		w, h = e.size(e.args, w, h)
		if e.name == Upscale || e.name == Resize {
			if exceeds(w, h, long) {
				w, h = before[0], before[1]
			}
			continue
		}
		by := min(long/max(w, h), short/min(w, h))
		w, h = w*by, h*by
	}
	even := func(side float64) int { return max(2, int(math.Round(side/2))*2) }
	return even(w), even(h)
}

// LengthOf returns a result's length in seconds. length is its length without the edits.
func LengthOf(edits []Edit, length float64) float64 {
	for _, e := range edits {
		if e.length != nil {
			length = e.length(e.args, length)
		}
	}
	return length
}

func Find(edits []Edit, name string) (Edit, bool) {
	return find(edits, func(e Edit) bool { return e.name == name })
}

func FindGround(edits []Edit) (Edit, bool) { return find(edits, Edit.isGround) }

func find(edits []Edit, is func(Edit) bool) (Edit, bool) {
	at := slices.IndexFunc(edits, is)
	if at < 0 {
		return Edit{}, false
	}
	return edits[at], true
}
