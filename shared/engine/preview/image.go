package preview

import (
	"context"

	"cutroom/shared/engine/ffmpeg"
)

func (e *edit) image(ctx context.Context) error {
	data := *e.spec.Data
	e.fps = 0
	if err := e.aim(ctx); err != nil {
		return err
	}
	open := func(e *edit) string {
		return e.turned(e.input(ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info}))
	}
	if err := e.scan(ctx, func(e *edit) string { return e.upright(open(e), data) }); err != nil {
		return err
	}
	link := open(e)
	alpha := ""
	if data.Info.Alpha {
		var shape string
		link, shape = e.split(link)
		alpha = e.filter(ffmpeg.Plain(data.Info, e.size)+",format=rgba,alphaextract", shape)
	}
	link, cut, err := e.composite(ctx, e.capture(e.upright(link, data), inputThumbnail))
	if err != nil {
		return err
	}
	if link, err = e.style(ctx, link); err != nil {
		return err
	}
	link = e.colors(link)
	switch {
	case cut != "" && alpha != "":
		alpha = e.filter("blend=all_mode=multiply", alpha, cut)
	case cut != "":
		alpha = cut
	}
	e.transparent = alpha != ""
	format := "rgb24"
	if alpha != "" {
		link, format = e.filter("alphamerge", e.filter("format=rgba", link), alpha), "rgba"
	}
	link = e.filter("format="+format, link)
	if link, err = e.finish(link); err != nil {
		return err
	}
	link = e.filter("format="+format, link)
	link = e.capture(link, resultThumbnail)
	e.report("edit", analyzed)
	err = e.runner.Run(ctx, ffmpeg.Command{
		Folder: e.folder, Frames: e.frames, Inputs: e.inputs,
		Args: append([]string{
			"-filter_complex_threads", threads, "-filter_complex", e.String(), "-map", link,
			"-frames:v", "1", "-c:v", "png", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
			"-update", "1", "-f", "image2", "file:" + e.spec.Output,
		}, e.captures...),
	})
	if err != nil {
		return err
	}
	e.report("edit", 1)
	return nil
}
