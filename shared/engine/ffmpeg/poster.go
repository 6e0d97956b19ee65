package ffmpeg

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
)

const (
	// posterSide is the longer side of a poster at most, in pixels, and maxPoster
	// its size in bytes (docs/contract/jobs.md#thumbnails).
	posterSide = 320
	maxPoster  = 20_000
	// posterTime is the processor time that posters may take together: a few
	// pictures of the largest video are decoded for each.
	posterTime = 20 * time.Second
	// bestPoster and worstPoster are qualities of a JPEG. The first is good enough
	// for the size; even noise is small with the last.
	bestPoster, worstPoster = 80, 10
)

// Posters returns a small picture of each file, for a video its first one: a JPEG
// of at most 320 pixels on the longer side and 20 KB. It writes into the folder.
// One start of ffmpeg makes them all, as that takes longer than the pictures do.
//
// Errors: the context's; [*engine.Error]. One file that cannot be decoded fails
// all.
func (t *Tools) Posters(ctx context.Context, folder string, of []engine.Input) ([][]byte, error) {
	args := append(t.globalArgs(), "-filter_threads", "1")
	var sources []Source
	var paths []string
	for _, input := range of {
		source := Source{Path: input.Path, MIME: input.MIME, Options: []string{"-threads", "1"}}
		options, err := t.inputArgs(source)
		if err != nil {
			return nil, err
		}
		args, sources, paths = append(args, options...), append(sources, source), append(paths, input.Path)
	}
	for i := range of {
		args = append(args, "-map", fmt.Sprintf("%d:V:0", i), "-vf", fitted(posterSide),
			"-frames:v", "1", "-c:v", "pam", "-f", "image2pipe", "file:"+posterFile(i))
	}
	err := t.run(ctx, process{
		program: t.ffmpeg, args: args, folder: folder, inputs: paths,
		processorTime: posterTime, maxFile: maxStillHeader + 4*posterSide*posterSide,
	})
	if err != nil {
		return nil, t.explainRun(ctx, sources, err)
	}
	posters := make([][]byte, len(of))
	for i := range posters {
		if posters[i], err = readPoster(filepath.Join(folder, posterFile(i))); err != nil {
			return nil, err
		}
	}
	return posters, nil
}

func posterFile(i int) string { return fmt.Sprintf("poster-%d.pam", i) }

// readPoster returns a decoded picture as a JPEG.
func readPoster(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ffmpeg: open a poster: %w", err)
	}
	defer file.Close()
	pixels, size, err := readStill(file, posterSide)
	if err != nil {
		return nil, err
	}
	return encodePoster(pixels, size)
}

// encodePoster encodes a picture, on white where it is transparent, as well as its
// size allows.
func encodePoster(pixels []byte, size catalog.Size) ([]byte, error) {
	bounds := image.Rect(0, 0, size.Width, size.Height)
	opaque := image.NewRGBA(bounds)
	draw.Draw(opaque, bounds, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(opaque, bounds, &image.NRGBA{Pix: pixels, Stride: 4 * size.Width, Rect: bounds}, image.Point{}, draw.Over)
	for quality := bestPoster; ; quality -= 10 {
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, opaque, &jpeg.Options{Quality: quality}); err != nil {
			return nil, fmt.Errorf("ffmpeg: encode a poster: %w", err)
		}
		if encoded.Len() <= maxPoster || quality <= worstPoster {
			return encoded.Bytes(), nil
		}
	}
}
