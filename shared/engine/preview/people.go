package preview

import (
	"context"
	"fmt"
	"image"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/person"
	"cutroom/shared/engine/preview/scene"
)

const (
	// A clip is searched for faces every searchedApart seconds. A clip that would need more than maxSearched searches
	// is searched less often.
	searchedApart = 0.5
	maxSearched   = 60
	// maxDetail limits how many times a picture's mask is larger than the network's masks.
	maxDetail = 8
	// scanned is the fraction of a job's progress that is used for making the masks.
	scanned = 0.45
)

// people records where a clip shows people.
type people struct {
	// size is the size of masks.
	size catalog.Size
	// masks is a file of one mask per frame, with one byte per pixel, or nil.
	masks *os.File
	faces [][]person.Face
	every int
}

func (p *people) seen() bool {
	return slices.ContainsFunc(p.faces, func(faces []person.Face) bool { return len(faces) > 0 })
}

// scan finds the people and faces that the request needs. The function `read` returns the link of the frames to scan.
// If there is no person, scan drops the edits that need one.
func (e *edit) scan(ctx context.Context, read func(e *edit) string) error {
	masked, faces := e.needsMasks(), e.paints()
	if !masked && !faces {
		return nil
	}
	coarse, detail := person.SizeFor(e.size), 2
	if e.fps == 0 { // one picture may take longer
		detail = max(2, min(max(e.size.Width, e.size.Height)/max(coarse.Width, coarse.Height)/2*2, maxDetail))
	}
	size := catalog.Size{Width: detail * coarse.Width, Height: detail * coarse.Height}
	found := &people{size: size, every: 1}
	if e.fps > 0 {
		found.every = max(1, int(float64(e.fps)*max(searchedApart, e.spec.Duration.Seconds()/maxSearched)))
	}
	small := *e
	small.graph = graph{folder: e.folder, prefix: "scan-", size: size, fps: e.fps, step: found.every}
	if e.has(look.Stabilize) {
		small.size, small.step = e.size, 1 // measure motion in the result's pixels, between all frames
	}
	if masked {
		small.step = 1
	}
	link := small.colors(read(&small))
	if small.size != size {
		link = small.filter(fmt.Sprintf("scale=%d:%d:flags=area", size.Width, size.Height), link)
	}
	s := &scanner{
		people: found, coarse: coarse, detail: detail, step: small.step, frame: make([]byte, 3*size.Width*size.Height),
		begin: func() error { return e.drawing.Acquire(ctx, 1) }, end: func() { e.drawing.Release(1) },
	}
	if masked {
		var err error
		if found.masks, err = os.Create(filepath.Join(e.folder, "masks.gray")); err != nil {
			return fmt.Errorf("preview: %w", err)
		}
		e.closers = append(e.closers, found.masks)
		if s.finder, err = person.NewFinder(coarse); err != nil {
			return err
		}
		s.once = !faces
		s.written = func() { e.report("analyze", scanned*float64(s.frames)/float64(max(1, e.length()))) }
	}
	err := small.stream(ctx, small.filter("format=rgb24", link), max(1, e.length()), s)
	switch {
	case s.err != nil:
		return s.err
	case err != nil:
		return err
	case !found.seen():
		e.asked = e.asked.WithoutPeople()
		return nil
	}
	e.people = found
	marked := &areas{people: found, once: s.once, left: max(1, e.length())}
	e.frames = &ffmpeg.Frames{Reader: &frameReader{next: marked.next}, Size: size, FPS: max(1, e.fps)}
	return nil
}

// scanner receives frames, which have three bytes per pixel and the size of masks.
type scanner struct {
	people *people
	// coarse is the size of the network's masks. Frames are detail times larger.
	coarse catalog.Size
	detail int
	finder *person.Finder
	// step is the number of the clip's frames for which one received frame stands. If once is set, the search ends at
	// the first face.
	step           int
	once           bool
	frame          []byte
	filled, frames int
	written        func()
	err            error
	// begin and end are called before and after the work on a frame. begin waits for the turn to draw.
	begin func() error
	end   func()
}

func (s *scanner) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(s.frame[s.filled:], rest)
		s.filled, rest = s.filled+n, rest[n:]
		if s.filled == len(s.frame) {
			if s.err = s.next(); s.err != nil {
				return 0, s.err
			}
			s.filled, s.frames = 0, s.frames+s.step
		}
	}
	return len(p), nil
}

func (s *scanner) next() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	double := catalog.Size{Width: 2 * s.coarse.Width, Height: 2 * s.coarse.Height}
	twice := shrunk(s.frame, double, s.detail/2)
	if s.frames%s.people.every == 0 && !(s.once && s.people.seen()) {
		faces, err := person.Faces(twice, double)
		if err != nil {
			return err
		}
		s.people.faces = append(s.people.faces, faces)
	}
	if s.finder == nil {
		return nil
	}
	small := shrunk(twice, s.coarse, 2)
	mask := make([]byte, len(small)/3)
	s.finder.Mask(small, mask)
	s.written()
	if _, err := s.people.masks.Write(person.Refine(mask, small, s.coarse, s.frame, s.detail)); err != nil {
		return fmt.Errorf("preview: %w", err)
	}
	return nil
}

// shrunk returns a picture of the given size, made from a picture that is a whole number of times larger.
func shrunk(picture []byte, size catalog.Size, by int) []byte {
	if by == 1 {
		return picture
	}
	small, row := make([]byte, 0, 3*size.Width*size.Height), 3*by*size.Width
	for y := 0; y < by*size.Height; y += by {
		for x := range size.Width {
			for channel := range 3 {
				sum := by * by / 2
				for i := range by * by {
					sum += int(picture[(y+i/by)*row+3*(x*by+i%by)+channel])
				}
				small = append(small, byte(sum/by/by))
			}
		}
	}
	return small
}

// areas makes frames that mark people in red and faces in green.
type areas struct {
	*people
	once         bool
	frames, left int
	mask, frame  []byte
}

func (a *areas) next() ([]byte, error) {
	if a.left == 0 {
		return nil, io.EOF
	}
	pixels := a.size.Width * a.size.Height
	a.frame, a.mask = make([]byte, 3*pixels), make([]byte, pixels)
	if a.masks != nil {
		// If the clip is shorter than its header says, repeat its last mask.
		for at := a.frames; at >= 0; at-- {
			if n, err := a.masks.ReadAt(a.mask, int64(at*pixels)); n == pixels {
				break
			} else if err != nil && err != io.EOF {
				return nil, fmt.Errorf("preview: %w", err)
			}
		}
	}
	for i, v := range a.mask {
		a.frame[3*i] = v
	}
	if !a.once {
		a.drawFaces(float64(a.frames) / float64(a.every))
	}
	a.frames, a.left = a.frames+1, a.left-1
	return a.frame, nil
}

// drawFaces draws the faces at the given time, which is counted in searches. If two successive searches find faces
// near each other, they are one face that moves. Other faces appear or vanish.
func (a *areas) drawFaces(time float64) {
	before := min(int(time), len(a.faces)-1)
	after, share := min(before+1, len(a.faces)-1), time-float64(before)
	near := func(one, other person.Face) bool {
		return math.Hypot(one.X-other.X, one.Y-other.Y) < 1.5*one.Size && max(one.Size/other.Size, other.Size/one.Size) < 1.7
	}
	for _, from := range a.faces[before] {
		at := slices.IndexFunc(a.faces[after], func(to person.Face) bool { return near(from, to) })
		if at < 0 {
			a.drawFace(from, 1-share)
			continue
		}
		to := a.faces[after][at]
		mix := func(a, b float64) float64 { return a + (b-a)*min(share, 1) }
		a.drawFace(person.Face{X: mix(from.X, to.X), Y: mix(from.Y, to.Y), Size: mix(from.Size, to.Size)}, 1)
	}
	for _, to := range a.faces[after] {
		if !slices.ContainsFunc(a.faces[before], func(from person.Face) bool { return near(from, to) }) {
			a.drawFace(to, share)
		}
	}
}

// drawFace draws a soft ellipse around the eyes, the nose and the mouth.
func (a *areas) drawFace(f person.Face, strength float64) {
	width := float64(a.size.Width)
	top, bottom := int((f.Y-f.Size)*width), int((f.Y+f.Size)*width)
	left, right := int((f.X-f.Size)*width), int((f.X+f.Size)*width)
	for y := max(0, top); y < min(bottom, a.size.Height); y++ {
		for x := max(0, left); x < min(right, a.size.Width); x++ {
			u, v := ((float64(x)+0.5)/width-f.X)/f.Size, ((float64(y)+0.5)/width-f.Y)/f.Size
			inside := min(max((1-math.Hypot(u/0.66, (v-0.06)/0.84))/0.35, 0), 1)
			pixel := &a.frame[3*(y*a.size.Width+x)+1]
			*pixel = max(*pixel, uint8(255*strength*inside*inside*(3-2*inside)))
		}
	}
}

// needsMasks reports whether the request is about people or their background.
func (e *edit) needsMasks() bool {
	_, found := look.FindGround(e.asked.Edits)
	return found || len(e.asked.Areas) > 0
}

// paints reports whether a requested look erases faces.
func (e *edit) paints() bool { return erasesFaces(e.look()) || erasesFaces(e.lookOf(look.Person)) }

func erasesFaces(asked look.Look) bool {
	return slices.ContainsFunc(asked.Names, func(name string) bool {
		return slices.Contains([]string{"watercolor", "oil painting", "impressionist"}, name)
	})
}

func (e *edit) lookOf(area look.Area) look.Look {
	if len(e.asked.Areas) == 0 {
		return look.Look{Seed: e.spec.Seed}
	}
	return look.ParseArea(e.spec.Prompt, area, e.spec.Seed)
}

// area returns the link of a gray mask of the result's size.
func (e *edit) area(plane, filters string) string {
	return e.filter(fmt.Sprintf("format=gbrp,extractplanes=%s,gblur=sigma=1.2,zscale=w=%d:h=%d:f=bicubic:%s%s",
		plane, e.size.Width, e.size.Height, keepRange, filters), "[0:v:0]")
}

// paint applies a look but preserves facial features.
func (e *edit) paint(ctx context.Context, link string, asked look.Look) (string, error) {
	if e.people == nil || !erasesFaces(asked) {
		return e.draw(ctx, link, asked)
	}
	const (
		reach   = 0.03
		strokes = 0.3 // the fraction of the strokes that remains in faces
	)
	link = e.colors(link)
	plain, rest := e.split(link)
	painted, err := e.draw(ctx, rest, asked)
	if err != nil {
		return "", err
	}
	factor := blurFactor(e.graph.length(reach))
	soft := fmt.Sprintf("%s,gblur=sigma=%.3f,%s", e.reduce(factor), e.graph.length(reach)/float64(factor), e.restore())
	sharp, wide := e.split(plain)
	features := e.filter("blend=all_mode=grainextract", sharp, e.filter(soft, wide))
	under, rest := e.split(painted)
	over, rest := e.split(rest)
	over = e.filter(fmt.Sprintf("blend=all_mode=normal:all_opacity=%g", strokes), over, e.filter(soft, rest))
	over = e.filter("blend=all_mode=grainmerge", over, features)
	return e.filter("maskedmerge", under, over, e.triple(e.area("g", ""))), nil
}

// composite applies the looks of areas, and replaces the background. cut is the link of a mask of
// the people if the background becomes transparent, otherwise "".
func (e *edit) composite(ctx context.Context, link string) (out, cut string, err error) {
	if !e.needsMasks() || e.people == nil {
		return link, "", nil
	}
	wanted, replaced := look.FindGround(e.asked.Edits)
	edge := "clip((val-88)*255/144,0,255)"
	if replaced { // avoid a fringe of the old background
		edge = "clip((val-128)*255/112,0,255)"
	}
	mask := e.area("r", ",lut=c0="+levels(edge))
	if replaced && wanted.Removed() && wanted.Color("") == "" {
		return link, mask, nil
	}
	figure, ground := e.split(link)
	planar := e.luma
	if figure, err = e.paint(ctx, figure, e.lookOf(look.Person)); err != nil {
		return "", "", err
	}
	figure = e.planes(figure, planar)
	if replaced {
		ground, err = e.ground(ctx, ground, wanted)
	} else {
		ground, mask, err = e.backdrop(ctx, ground, mask)
	}
	if err != nil {
		return "", "", err
	}
	ground = e.planes(ground, planar)
	if !planar {
		return e.filter("maskedmerge", ground, figure, e.triple(mask)), "", nil
	}
	mask, rest := e.split(mask)
	first, second := e.split(e.filter(e.zscale(e.size.Width/2, e.size.Height/2, "bilinear"), rest))
	return e.filter("maskedmerge", ground, figure, e.filter("mergeplanes=0x001020:yuv420p", mask, first, second)), "", nil
}

// planes converts a picture to luma and chroma in the input's color matrix if luma is true, otherwise to RGB.
func (e *edit) planes(link string, luma bool) string {
	switch {
	case !luma:
		return e.colors(link)
	case e.luma:
		return link
	}
	e.luma = true
	return e.filter("zscale=m="+matrixOf(e.spec.Data.Info)+":rin=full:r=limited:d=none,format=yuv420p", link)
}

// backdrop applies the look of the background. People do not bleed into it.
func (e *edit) backdrop(ctx context.Context, link, mask string) (out, rest string, err error) {
	asked := e.lookOf(look.Background)
	radius := 0.0
	asked.Ops = slices.DeleteFunc(asked.Ops, func(op look.Op) bool {
		blur, found := op.(look.Blur)
		if found {
			radius = 1.8 * e.graph.length(blur.Radius)
		}
		return found
	})
	if len(asked.Ops) > 0 {
		link, err = e.draw(ctx, link, asked)
	}
	if err != nil || radius == 0 {
		return link, mask, err
	}
	rest, mask = e.split(mask)
	factor := blurFactor(radius)
	blur := fmt.Sprintf("gblur=sigma=%.3f", radius/float64(factor))
	weights, first := e.split(e.filter(e.zscale(evened(e.size.Width/factor), evened(e.size.Height/factor), "bilinear")+",negate", mask))
	link = e.colors(e.filter(e.reduce(factor), link))
	link = e.filter("blend=all_mode=multiply", link, e.triple(first))
	link = e.filter("blend=all_mode=divide", e.filter(blur, link), e.triple(e.filter(blur, weights)))
	return e.filter(e.zscale(e.size.Width, e.size.Height, "bilinear")+","+e.planar(), link), rest, nil
}

// ground returns the link of the new background. link is the link of the old background.
func (e *edit) ground(ctx context.Context, link string, wanted look.Edit) (string, error) {
	plain := func(name string) string {
		link = e.colors(link)
		return e.filter(fmt.Sprintf("drawbox=c=%s:t=fill,format=gbrp", name), link)
	}
	switch {
	case wanted.Color("") == "green": // the green of studio screens
		return plain("0x00b140"), nil
	case wanted.Color("") != "":
		return plain(look.Hex(wanted.Color(""))), nil
	}
	e.chains, e.luma = append(e.chains, link+"nullsink"), false
	if wanted.Scene() == "" {
		shape := float64(e.size.Width) / float64(e.size.Height)
		pixels, err := e.reference(ctx, e.size, fmt.Sprintf("crop=w='min(iw,ih*%[1]f)':h='min(ih,iw/%[1]f)',", shape))
		if err != nil {
			return "", err
		}
		rows := image.NRGBA{Pix: pixels, Stride: 4 * e.size.Width, Rect: image.Rect(0, 0, e.size.Width, e.size.Height)}
		drawn, err := e.picture(&rows)
		return e.filter("format=gbrp", drawn), err
	}
	size := paintedSize(e.size)
	frame := make([]byte, 3*size.Width*size.Height)
	// The first time of day that the text names is used, so "day" is only the default.
	if err := scene.Choose(wanted.Scene()+" day", e.spec.Seed).Paint(ctx, frame, size.Width, size.Height, 0); err != nil {
		return "", err
	}
	rows := image.NewNRGBA(image.Rect(0, 0, size.Width, size.Height))
	for i := range size.Width * size.Height {
		copy(rows.Pix[4*i:], []byte{frame[3*i], frame[3*i+1], frame[3*i+2], 255})
	}
	drawn, err := e.picture(rows)
	if err != nil {
		return "", err
	}
	return e.draw(ctx, e.filter(e.full(), drawn), look.Scenery(wanted.Scene(), e.spec.Seed))
}
