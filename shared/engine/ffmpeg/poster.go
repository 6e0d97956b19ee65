package ffmpeg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

const (
	// thumbnailSide is the longer side of a thumbnail at most, in pixels, and maxThumbnail
	// its size in bytes (docs/contract/jobs.md#thumbnails).
	thumbnailSide = 320
	maxThumbnail  = 20_000
	// posterTime is the processor time that the first picture of a file may take: the
	// largest image takes about a second. laterTime is the processor time of the search
	// for a later picture, which decodes two seconds of a video.
	posterTime, laterTime = 4 * time.Second, 2 * time.Second
	// bestPoster and worstPoster are qualities of a JPEG. The first is good enough
	// for the size; even noise is small with the last.
	bestPoster, worstPoster = 80, 10
)

// format is how large a picture is: its longer side at most, in pixels, and its size in bytes.
type format struct{ side, size int }

func formatOf(picture engine.Depicted) format {
	if picture.Poster {
		return format{engine.PosterSide, engine.MaxPoster}
	}
	return format{thumbnailSide, maxThumbnail}
}

// decoded is the size of a file with so many such pictures, decoded, at most.
func (f format) decoded(pictures int) int64 {
	return int64(pictures) * (maxStillHeader + 4*int64(f.side)*int64(f.side))
}

// Where a video begins blank, its picture is one of maxCandidates pictures, which are
// candidatesApart seconds apart.
const maxCandidates, candidatesApart = 9, 0.25

const (
	// blankBelow is the standard deviation of the brightness, 0 to 255, below which a
	// picture shows nothing: it is black, white or of another single colour.
	blankBelow = 8.0
	// clearFrom is the share of the largest deviation from which a candidate is taken: the
	// first that has it is the earliest at which a fade from black is over.
	clearFrom = 0.8
)

// Posters returns a picture of each file, for a video its first one, or where that is blank
// one of its first two seconds that is not, as a JPEG: a thumbnail of at most 320 pixels on
// the longer side and 20 KB, or a poster of at most [engine.PosterSide] and
// [engine.MaxPoster]. The files belong together, as a result and its input do: where the
// thumbnail of one would be blank all have a picture of the same time, as an edit draws
// something on black too. It writes into the folder. One start of ffmpeg makes the first
// pictures, as that takes longer than the pictures do; a video that is looked through takes
// another for each.
//
// Errors: the context's; [*engine.Error]. One file that cannot be decoded fails
// all.
func (t *Tools) Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error) {
	if err := t.firstPictures(ctx, folder, of); err != nil {
		return nil, err
	}
	posters := make([][]byte, len(of))
	blank := make([]bool, len(of))
	for i, picture := range of {
		first, err := firstStill(filepath.Join(folder, posterFile(i)), formatOf(picture).side)
		if err != nil {
			return nil, err
		}
		if posters[i], err = first.encode(formatOf(picture)); err != nil {
			return nil, err
		}
		blank[i] = !picture.Poster && isVideo(picture.Input) && first.blank()
	}
	if slices.Contains(blank, true) {
		t.lookLater(ctx, folder, of, blank, posters)
	}
	return posters, ctx.Err()
}

// lookLater replaces the pictures of videos, some of which begin blank, by those of the time
// at which the last of these shows something. A video that cannot be decoded that far keeps
// its own. The search leaves a quarter of the context's time, so that Posters still returns
// the first pictures.
func (t *Tools) lookLater(ctx context.Context, folder string, of []engine.Depicted, blank []bool, posters [][]byte) {
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/4))
		defer cancel()
	}
	stills := make([][]still, len(of))
	from := 0
	for i, picture := range of {
		if picture.Poster || !isVideo(picture.Input) || ctx.Err() != nil {
			continue
		}
		var err error
		if stills[i], err = t.candidates(ctx, folder, picture, maxCandidates); err == nil && blank[i] {
			from = max(from, clearest(stills[i]))
		}
	}
	for i, picture := range of {
		found := stills[i]
		if picture.Poster && isVideo(picture.Input) && ctx.Err() == nil {
			found, _ = t.candidates(ctx, folder, picture, from+1)
		}
		if len(found) == 0 {
			continue
		}
		if encoded, err := found[min(from, len(found)-1)].encode(formatOf(picture)); err == nil {
			posters[i] = encoded
		}
	}
}

// isVideo reports whether the file may have more than one picture.
func isVideo(input engine.Input) bool {
	kind, _ := media.Find(input.MIME)
	return kind.Video
}

// firstPictures writes the first picture of each file to its posterFile. A file of which
// two are wanted is decoded once.
func (t *Tools) firstPictures(ctx context.Context, folder string, of []engine.Depicted) error {
	args := append(t.globalArgs(), "-filter_threads", "1")
	var paths, outputs []string
	largest := int64(0)
	for i, picture := range of {
		number := slices.Index(paths, picture.Path)
		if number < 0 {
			number = len(paths)
			source := Source{Path: picture.Path, MIME: picture.MIME, Options: []string{"-threads", "1"}}
			options, err := t.inputArgs(source)
			if err != nil {
				return err
			}
			args, paths = append(args, options...), append(paths, picture.Path)
		}
		outputs = append(outputs, "-map", fmt.Sprintf("%d:V:0", number), "-vf", fitted(formatOf(picture).side),
			"-frames:v", "1", "-c:v", "pam", "-f", "image2pipe", "file:"+posterFile(i))
		largest = max(largest, formatOf(picture).decoded(1))
	}
	err := t.run(ctx, process{
		program: t.ffmpeg, args: append(args, outputs...), folder: folder, inputs: paths,
		processorTime: posterTime * time.Duration(len(paths)), background: true, maxFile: largest,
	})
	return t.explainProbe(ctx, err)
}

func posterFile(i int) string { return fmt.Sprintf("poster-%d.pam", i) }

// laterFile has the candidates of a video that begins blank.
const laterFile = "poster-later.pam"

// candidates returns the candidates of a video, at most the given number. For a poster it
// returns only the last one, as the others are large too. If the time ends before ffmpeg
// does, candidates returns the pictures that were written by then.
func (t *Tools) candidates(ctx context.Context, folder string, of engine.Depicted, most int) ([]still, error) {
	source := Source{
		Path: of.Path, MIME: of.MIME,
		Options: []string{"-threads", "1", "-t", fmt.Sprint(maxCandidates * candidatesApart)},
	}
	options, err := t.inputArgs(source)
	if err != nil {
		return nil, err
	}
	args := append(append(t.globalArgs(), "-filter_threads", "1"), options...)
	err = t.run(ctx, process{
		program: t.ffmpeg, folder: folder, inputs: []string{of.Path},
		args: append(args, "-map", "0:V:0", "-vf", fmt.Sprintf(
			"select='isnan(prev_selected_t)+gte(t-prev_selected_t,%g)',%s", candidatesApart, fitted(formatOf(of).side),
		), "-frames:v", fmt.Sprint(most), "-vsync", "passthrough", "-c:v", "pam", "-f", "image2pipe", "file:"+laterFile),
		processorTime: laterTime, background: true, maxFile: formatOf(of).decoded(most),
	})
	var ended *failure
	late := errors.As(err, &ended) && ended.overTime || errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return nil, err
	}
	var found []still
	err = eachStill(filepath.Join(folder, laterFile), formatOf(of).side, most, func(one still) {
		if of.Poster {
			found = nil
		}
		found = append(found, one)
	})
	if late && len(found) > 0 {
		return found, nil // the last picture may be cut off
	}
	return found, err
}

// clearest returns which of the pictures is the first that shows about as much as any.
func clearest(stills []still) int {
	most := 0.0
	for _, s := range stills {
		most = max(most, s.deviation())
	}
	return max(0, slices.IndexFunc(stills, func(s still) bool { return s.deviation() >= clearFrom*most }))
}

// Picture is what the pictures of a graph are like, of which thumbnails are made.
type Picture struct {
	Size catalog.Size
	// Limited is true of luma and chroma, which have the range of video; others are red,
	// green and blue, with alpha if Alpha is true.
	Limited, Alpha bool
}

// ThumbnailFilters returns the filters that make a picture one that ReadThumbnail reads,
// written as "-c:v pam -f image2pipe". zscale takes a third of what scale does, which goes by
// luma and chroma from colours to colours.
func (p Picture) ThumbnailFilters() string {
	planes := "gbrp"
	if p.Alpha {
		planes = "gbrap"
	}
	return fmt.Sprintf("zscale=%s:f=bicubic:%s,format=%s,format=rgba", within(thumbnailSide), p.fullRange(), planes)
}

// PosterFilters returns the filters that make a picture one of the size of posters, to be
// written as a JPEG. The sides of the picture are even.
func (p Picture) PosterFilters() string {
	if max(p.Size.Width, p.Size.Height) > engine.PosterSide {
		// A side may be odd then, which zscale has no chroma for.
		return scaled(engine.PosterSide) + ":out_color_matrix=bt601:out_range=pc,format=yuvj420p"
	}
	return "zscale=m=170m:" + p.fullRange() + ",format=yuvj420p"
}

// fullRange are the options of zscale for full range. Frames of colours may still say that
// they are of the range that the video had.
func (p Picture) fullRange() string {
	if p.Limited {
		return "rin=limited:r=full:d=none"
	}
	return "rin=full:r=full:d=none"
}

// Thumbnail is a small picture, as a JPEG.
type Thumbnail struct {
	JPEG []byte
	// Blank is true if it shows nothing, such as the black with which a film begins.
	Blank bool
}

// ReadThumbnail returns a picture in such a file as a thumbnail, as Posters does.
//
// Errors: the file's; it is not such a picture.
func ReadThumbnail(path string) (Thumbnail, error) {
	wanted := formatOf(engine.Depicted{})
	one, err := firstStill(path, wanted.side)
	if err != nil {
		return Thumbnail{}, err
	}
	encoded, err := one.encode(wanted)
	return Thumbnail{JPEG: encoded, Blank: one.blank()}, err
}

// still is a decoded picture: four bytes a pixel, as readStill returns them.
type still struct {
	pixels []byte
	size   catalog.Size
}

// eachStill calls take with the pictures of a file, at least one and at most so many, none
// of them larger than the side.
func eachStill(path string, side, most int, take func(still)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("ffmpeg: open a poster: %w", err)
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	for i := range most {
		if _, err := reader.Peek(1); i > 0 && errors.Is(err, io.EOF) {
			return nil
		}
		pixels, size, err := readStill(reader, side)
		if err != nil {
			return err
		}
		take(still{pixels, size})
	}
	return nil
}

// firstStill returns the first picture of a file.
func firstStill(path string, side int) (first still, err error) {
	err = eachStill(path, side, 1, func(one still) { first = one })
	return first, err
}

// blank reports whether the picture shows nothing.
func (s still) blank() bool { return s.deviation() < blankBelow }

// deviation returns the standard deviation of the brightness, 0 to 255. What is
// transparent counts as it would be seen: encode puts it on white.
func (s still) deviation() float64 {
	var sum, squares float64
	for at := 0; at < len(s.pixels); at += 4 {
		p := s.pixels[at : at+4]
		bright := 0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])
		bright = 255 + (bright-255)*float64(p[3])/255
		sum, squares = sum+bright, squares+bright*bright
	}
	n := float64(len(s.pixels) / 4)
	return math.Sqrt(max(0, squares/n-(sum/n)*(sum/n)))
}

// encode encodes a picture as a JPEG, on white where it is transparent, as well as its size
// allows.
func (s still) encode(wanted format) ([]byte, error) {
	area := image.Rect(0, 0, s.size.Width, s.size.Height)
	opaque := &image.RGBA{Pix: s.pixels, Stride: 4 * s.size.Width, Rect: area}
	if !opaque.Opaque() {
		opaque = image.NewRGBA(area)
		draw.Draw(opaque, area, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(opaque, area, &image.NRGBA{Pix: s.pixels, Stride: 4 * s.size.Width, Rect: area}, image.Point{}, draw.Over)
	}
	for quality := bestPoster; ; quality -= 10 {
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, opaque, &jpeg.Options{Quality: quality}); err != nil {
			return nil, fmt.Errorf("ffmpeg: encode a poster: %w", err)
		}
		if encoded.Len() <= wanted.size || quality <= worstPoster {
			return encoded.Bytes(), nil
		}
	}
}
