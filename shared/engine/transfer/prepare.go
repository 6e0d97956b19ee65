package transfer

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// maxReference limits the longer side of a reference image, in pixels.
const maxReference = 2048

// Inputs holds the converted inputs of a run. The path of a missing input is empty.
type Inputs struct{ Data, Reference Made }

// Prepare converts the inputs to ordinary files, so that servers never read original files. All are upright, opaque
// and in sRGB. A clip gets the given size and number of frames and the result's rate, and has no sound.
func Prepare(ctx context.Context, by Runner, spec engine.Spec, to catalog.Size, frames int) (made Inputs, err error) {
	switch {
	case spec.Data == nil:
	case spec.Kind == catalog.Image || spec.Kind == catalog.ImageToVideo:
		made.Data, err = still(ctx, by, spec, *spec.Data, to, "data.png")
	default:
		made.Data = Made{Path: filepath.Join(spec.Folder, "data.mp4"), MIME: "video/mp4"}
		err = clip(ctx, by, spec, to, frames, made.Data.Path)
	}
	if err == nil && spec.Reference != nil {
		made.Reference, err = still(ctx, by, spec, *spec.Reference, bounded(spec.Reference.Info), "reference.png")
	}
	return made, err
}

// bounded returns the size of a picture, scaled down if its longer side exceeds maxReference.
func bounded(info media.Info) catalog.Size {
	size := catalog.Size{Width: info.Width, Height: info.Height}
	if max(info.Width, info.Height) <= maxReference {
		return size
	}
	return catalog.Size{Width: maxReference, Height: maxReference}.Fit(size)
}

func clip(ctx context.Context, by Runner, spec engine.Spec, to catalog.Size, frames int, path string) error {
	source := ffmpeg.Source{Path: spec.Data.Path, MIME: spec.Data.MIME, Info: spec.Data.Info}
	graph := fmt.Sprintf("%s,fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d,%s,%s,"+
		"scale=out_color_matrix=bt709:out_range=tv,format=yuv420p[v]",
		source.Picture(0), spec.FPS, frames, ffmpeg.Plain(source.Info, to), onWhite(source.Info, "format=gbrp"))
	return by.Run(ctx, ffmpeg.Command{
		Folder: spec.Folder, Inputs: []ffmpeg.Source{source},
		Args: []string{
			"-filter_complex", graph, "-map", "[v]", "-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", "10",
			"-g", strconv.Itoa(spec.FPS), "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709",
			"-color_range", "tv", "-map_metadata", "-1", "-map_chapters", "-1", "-fflags", "+bitexact",
			"-flags:v", "+bitexact", "-f", "mp4", "file:" + path,
		},
	})
}

// still writes a PNG. For an animation, it writes the first frame.
func still(
	ctx context.Context, by Runner, spec engine.Spec, input engine.Input, to catalog.Size, name string,
) (Made, error) {
	path := filepath.Join(spec.Folder, name)
	graph := fmt.Sprintf("[0:V:0]%s,%s[v]", ffmpeg.Plain(input.Info, to), onWhite(input.Info, "format=rgb24"))
	return Made{Path: path, MIME: "image/png"}, by.Run(ctx, ffmpeg.Command{
		Folder: spec.Folder, Inputs: []ffmpeg.Source{{Path: input.Path, MIME: input.MIME, Info: input.Info}},
		Args: []string{
			"-filter_complex", graph, "-map", "[v]", "-frames:v", "1", "-c:v", "png", "-map_metadata", "-1",
			"-update", "1", "-f", "image2", "file:" + path,
		},
	})
}

// onWhite returns filters that put a picture with alpha on a white background and convert it to a pixel format.
func onWhite(info media.Info, format string) string {
	if !info.Alpha {
		return "setsar=1," + format
	}
	return "setsar=1,format=rgba,split[over][under];[under]lutrgb=r=255:g=255:b=255:a=255[white];" +
		"[white][over]overlay=format=gbrp," + format
}
