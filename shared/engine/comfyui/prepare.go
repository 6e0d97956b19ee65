package comfyui

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/transfer"
)

// maxReference limits the longer side of a reference image, in pixels.
const maxReference = 2048

// inputs holds the files to upload. The path of a missing input is empty.
type inputs struct{ data, reference transfer.Made }

// prepare converts the inputs to ordinary files, so that servers never read original files. All are
// upright, opaque and in sRGB. A clip gets the result's size and frame rate and has no sound.
func (e *Engine) prepare(ctx context.Context, w *workflow, spec engine.Spec) (prepared inputs, err error) {
	if spec.Data != nil {
		to := w.size(spec)
		prepared.data = transfer.Made{Path: filepath.Join(spec.Folder, "data.mp4"), MIME: "video/mp4"}
		convert := e.clip
		if spec.Kind == catalog.Image {
			prepared.data, convert = stillAt(spec.Folder, "data"), e.still
		}
		if err := convert(ctx, spec, *spec.Data, to, w.frames(spec), prepared.data.Path); err != nil {
			return prepared, err
		}
	}
	if spec.Reference != nil {
		prepared.reference = stillAt(spec.Folder, "reference")
		to := bounded(spec.Reference.Info)
		if err := e.still(ctx, spec, *spec.Reference, to, 1, prepared.reference.Path); err != nil {
			return prepared, err
		}
	}
	return prepared, nil
}

func stillAt(folder, name string) transfer.Made {
	return transfer.Made{Path: filepath.Join(folder, name+".png"), MIME: "image/png"}
}

// bounded returns the size of a picture, scaled down if its longer side exceeds maxReference.
func bounded(info media.Info) catalog.Size {
	size := catalog.Size{Width: info.Width, Height: info.Height}
	if max(info.Width, info.Height) <= maxReference {
		return size
	}
	return catalog.Size{Width: maxReference, Height: maxReference}.Fit(size)
}

func (e *Engine) clip(
	ctx context.Context, spec engine.Spec, input engine.Input, to catalog.Size, frames int, path string,
) error {
	source := ffmpeg.Source{Path: input.Path, MIME: input.MIME, Info: input.Info}
	graph := fmt.Sprintf("%s,fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d,%s,%s,"+
		"scale=out_color_matrix=bt709:out_range=tv,format=yuv420p[v]",
		source.Picture(0), spec.FPS, frames, ffmpeg.Plain(input.Info, to), onWhite(input.Info, "format=gbrp"))
	return e.finisher.Runner.Run(ctx, ffmpeg.Command{
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
func (e *Engine) still(
	ctx context.Context, spec engine.Spec, input engine.Input, to catalog.Size, _ int, path string,
) error {
	graph := fmt.Sprintf("[0:V:0]%s,%s[v]", ffmpeg.Plain(input.Info, to), onWhite(input.Info, "format=rgb24"))
	return e.finisher.Runner.Run(ctx, ffmpeg.Command{
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
