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
	"path/filepath"
	"slices"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

const (
	// These limit a thumbnail, in pixels and in bytes (docs/contract/jobs.md#thumbnails).
	thumbnailSide = 320
	maxThumbnail  = 20_000
	// posterTime limits the CPU time for the first frame of a file. The largest image takes about a second. laterTime
	// limits it for a later frame, which requires decoding two seconds of video.
	posterTime, laterTime = 4 * time.Second, 2 * time.Second
	// These are JPEG qualities. bestPoster is good enough for pictures of this size. With worstPoster, even noise
	// fits.
	bestPoster, worstPoster = 80, 10
)

// format is a picture's maximum longer side in pixels and maximum size in bytes.
type format struct{ side, size int }

func formatOf(picture engine.Depicted) format {
	if picture.Poster {
		return format{engine.PosterSide, engine.MaxPoster}
	}
	return format{thumbnailSide, maxThumbnail}
}

func (f format) decoded(pictures int) int64 {
	return int64(pictures) * (maxStillHeader + 4*int64(f.side)*int64(f.side))
}

// If a video starts blank, the frame is chosen from maxCandidates frames that are candidatesApart seconds apart.
const maxCandidates, candidatesApart = 9, 0.25

const (
	// A picture is blank if the standard deviation of its brightness (0 to 255) is below this value.
	blankBelow = 8.0
	// The first candidate whose deviation is at least this fraction of the largest one is chosen. After a fade from
	// black, it is the earliest clear frame.
	clearFrom = 0.8
)

// Posters returns a JPEG of each file. For a video it shows the first frame, or if that is blank, a non-blank frame
// from the first two seconds. A thumbnail has at most 320 pixels on the longer side and 20 KB. A poster has at most
// [engine.PosterSide] pixels and [engine.MaxPoster] bytes. The files are related, like a result and its input: if one
// thumbnail would be blank, all show the same later moment. Posters writes into the folder. One ffmpeg process makes
// all first pictures; each video that is searched for a later picture needs another.
//
// Errors: [*engine.Error]. If one file cannot be decoded, the call fails.
func (t *Tools) Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error) {
	of = slices.Clone(of)
	for i, picture := range of {
		var err error
		if of[i].Input, err = t.develop(ctx, folder, picture.Input, formatOf(picture).side, posterTime); err != nil {
			return nil, err
		}
	}
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
		t.searchLater(ctx, folder, of, blank, posters)
	}
	return posters, ctx.Err()
}

// searchLater replaces the videos' pictures if some videos start blank. The new pictures show the first moment at
// which no video is blank. A video that cannot be decoded that far keeps its first picture. The search leaves a
// quarter of the context's time for Posters to return the first pictures.
func (t *Tools) searchLater(ctx context.Context, folder string, of []engine.Depicted, blank []bool, posters [][]byte) {
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

func isVideo(input engine.Input) bool {
	kind, _ := media.Find(input.MIME)
	return kind.Video
}

// firstPictures writes each file's first picture. A file that needs two pictures is decoded once.
func (t *Tools) firstPictures(ctx context.Context, folder string, of []engine.Depicted) error {
	args := append(t.globalArgs(), "-filter_threads", "1")
	var paths, outputs []string
	var sources []Source
	largest := int64(0)
	for i, picture := range of {
		number := slices.Index(paths, picture.Path)
		if number < 0 {
			number = len(paths)
			source, err := t.sourceOf(ctx, picture)
			if err != nil {
				return err
			}
			options, err := t.inputArgs(source)
			if err != nil {
				return err
			}
			args, paths, sources = append(args, options...), append(paths, picture.Path), append(sources, source)
		}
		outputs = append(outputs, "-map", fmt.Sprintf("%d:%s", number, sources[number].PictureTrack()),
			"-vf", sources[number].corrections()+","+fitted(formatOf(picture).side),
			"-frames:v", "1", "-c:v", "pam", "-f", "image2pipe", "file:"+posterFile(i))
		largest = max(largest, formatOf(picture).decoded(1))
	}
	err := t.run(ctx, process{
		program: t.ffmpeg, args: append(args, outputs...), folder: folder, inputs: paths,
		processorTime: posterTime * time.Duration(len(paths)), background: true, maxFile: largest,
	})
	return t.explainProbe(ctx, err)
}

// sourceOf probes a video that has not been probed.
func (t *Tools) sourceOf(ctx context.Context, of engine.Depicted) (Source, error) {
	source := Source{Path: of.Path, MIME: of.MIME, Info: of.Info, Options: []string{"-threads", "1"}}
	if kind, _ := media.Find(of.MIME); !kind.Video || kind.Image || of.Info.Width > 0 {
		return source, nil
	}
	var err error
	source.Info, _, _, err = t.tracks(ctx, of.Path, of.MIME)
	return source, err
}

func posterFile(i int) string { return fmt.Sprintf("poster-%d.pam", i) }

const laterFile = "poster-later.pam"

// candidates returns up to the given number of candidates. For a poster it returns only the last one. If time runs
// out, it returns the pictures written so far.
func (t *Tools) candidates(ctx context.Context, folder string, of engine.Depicted, most int) ([]still, error) {
	source, err := t.sourceOf(ctx, of)
	if err != nil {
		return nil, err
	}
	source.Options = append(source.Options, "-t", fmt.Sprint(maxCandidates*candidatesApart))
	options, err := t.inputArgs(source)
	if err != nil {
		return nil, err
	}
	args := append(append(t.globalArgs(), "-filter_threads", "1"), options...)
	err = t.run(ctx, process{
		program: t.ffmpeg, folder: folder, inputs: []string{of.Path},
		args: append(args, "-map", "0:"+source.PictureTrack(), "-vf", source.corrections()+fmt.Sprintf(
			",select='isnan(prev_selected_t)+gte(t-prev_selected_t,%g)',%s", candidatesApart, fitted(formatOf(of).side),
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
		return found, nil // ignore the error, because the last picture may be truncated
	}
	return found, err
}

// clearest returns the index of the first picture whose deviation is close to the largest deviation.
func clearest(stills []still) int {
	most := 0.0
	for _, s := range stills {
		most = max(most, s.deviation())
	}
	return max(0, slices.IndexFunc(stills, func(s still) bool { return s.deviation() >= clearFrom*most }))
}

// Picture describes the pictures in a filter graph from which thumbnails are made.
type Picture struct {
	Size catalog.Size
	// Limited pictures have luma and chroma in video range. Others are RGB, or RGBA if Alpha is set.
	Limited, Alpha bool
}

// ThumbnailFilters returns the filters that make a picture for ReadThumbnail, to be written with
// "-c:v pam -f image2pipe". zscale takes a third of scale's time.
func (p Picture) ThumbnailFilters() string {
	planes := "gbrp"
	if p.Alpha {
		planes = "gbrap"
	}
	return fmt.Sprintf("zscale=%s:f=bicubic:%s,format=%s,format=rgba", within(thumbnailSide), p.fullRange(), planes)
}

// PosterFilters returns the filters that make a poster-sized picture for a JPEG. The picture's width and height must
// be even.
func (p Picture) PosterFilters() string {
	if max(p.Size.Width, p.Size.Height) > engine.PosterSide {
		// A scaled side may be odd, and zscale cannot subsample the chroma of odd sizes.
		return scaled(engine.PosterSide) + ":out_color_matrix=bt601:out_range=pc,format=yuvj420p"
	}
	return "zscale=m=170m:" + p.fullRange() + ",format=yuvj420p"
}

// RGB frames may still be tagged with the video's range.
func (p Picture) fullRange() string {
	if p.Limited {
		return "rin=limited:r=full:d=none"
	}
	return "rin=full:r=full:d=none"
}

type Thumbnail struct {
	JPEG []byte
	// Blank means that the picture shows nothing, like a film's black opening.
	Blank bool
}

// ReadThumbnail converts a file written with ThumbnailFilters.
func ReadThumbnail(path string) (Thumbnail, error) {
	wanted := formatOf(engine.Depicted{})
	one, err := firstStill(path, wanted.side)
	if err != nil {
		return Thumbnail{}, err
	}
	encoded, err := one.encode(wanted)
	return Thumbnail{JPEG: encoded, Blank: one.blank()}, err
}

// still is a decoded picture with four bytes per pixel.
type still struct {
	pixels []byte
	size   catalog.Size
}

// eachStill passes each picture in a file to `take`, up to the given number of pictures. It fails if there is no
// picture, or if a picture's longer side exceeds side.
func eachStill(path string, side, most int, take func(still)) error {
	file, err := engine.OpenRegular(path)
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

func firstStill(path string, side int) (first still, err error) {
	err = eachStill(path, side, 1, func(one still) { first = one })
	return first, err
}

func (s still) blank() bool { return s.deviation() < blankBelow }

// deviation returns the standard deviation of the brightness, 0 to 255. Transparent pixels count as white.
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

// encode returns a JPEG with the best quality that fits. Transparent areas become white.
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
