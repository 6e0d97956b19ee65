package openaimedia

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/transfer"
	"cutroom/shared/platform/boundedjson"
)

// maxImage limits a response that contains an image, in bytes. The image is base64 in JSON, and the entire response
// is read into memory. The limit is far above a PNG of the catalog's largest size.
const maxImage = 64 << 20

const maxValues = 1000

func (e *Engine) image(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
	progress(engine.Progress{Stage: "generate"})
	fields := []transfer.Field{
		{Name: "prompt", Value: spec.Prompt}, {Name: "size", Value: spec.Size.String()}, {Name: "n", Value: "1"},
		{Name: "response_format", Value: "b64_json"}, {Name: "output_format", Value: "png"},
		{Name: "seed", Value: strconv.FormatUint(uint64(spec.Seed), 10)},
	}
	var files []transfer.File
	for i, input := range []*engine.Input{spec.Data, spec.Reference} {
		if input == nil {
			continue
		}
		picture, err := e.picture(ctx, spec, input, fmt.Sprintf("sent-%d.png", i))
		if err != nil {
			return err
		}
		files = append(files, formFile("image", picture))
	}
	path := "/images/edits"
	body, contentType := transfer.Form(fields, files...)
	if spec.Data == nil {
		text, err := json.Marshal(map[string]any{
			"prompt": spec.Prompt, "size": spec.Size.String(), "n": 1, "response_format": "b64_json", "seed": spec.Seed,
		})
		if err != nil {
			return fmt.Errorf("openaimedia: %w", err)
		}
		body.Close()
		path, body, contentType = "/images/generations", io.NopCloser(bytes.NewReader(text)), "application/json"
	}
	defer body.Close()
	response, err := e.call(ctx, http.MethodPost, e.images+path, body, contentType)
	if err != nil {
		return ours(ctx, err)
	}
	defer response.Body.Close()
	var answer struct {
		Data []struct {
			Image []byte `json:"b64_json"`
		} `json:"data"`
	}
	err = boundedjson.Read(response.Body, maxImage, maxValues, &answer)
	var corrupt base64.CorruptInputError
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	var limit *boundedjson.LimitError
	switch {
	case errors.As(err, &corrupt), errors.As(err, &syntax), errors.As(err, &mistyped), errors.As(err, &limit):
		return failed("The engine returned an invalid response.", true, err)
	case err != nil:
		return ours(ctx, fmt.Errorf("openaimedia: read the response: %w", err))
	case len(answer.Data) == 0 || len(answer.Data[0].Image) == 0:
		return failed(job.NoResultMessage, true, errors.New("the response has no image"))
	}
	made := answer.Data[0].Image
	kind, known := sniff.Media(made)
	if !known || !kind.Image {
		return failed(job.NoResultMessage, true, errors.New("the server's image has an unknown type"))
	}
	raw := filepath.Join(spec.Folder, "generated"+kind.Extension)
	if err := os.WriteFile(raw, made, 0o600); err != nil {
		return fmt.Errorf("openaimedia: %w", err)
	}
	return e.finisher.Image(ctx, spec, transfer.Made{Path: raw, MIME: kind.MIME}, progress)
}

// picture converts an image to a PNG, unless OpenAI's API accepts its format.
func (e *Engine) picture(ctx context.Context, spec engine.Spec, input *engine.Input, name string) (*engine.Input, error) {
	switch input.MIME {
	case "image/png", "image/jpeg", "image/webp":
		return input, nil
	}
	source := ffmpeg.Source{Path: input.Path, MIME: input.MIME, Info: input.Info}
	path := filepath.Join(spec.Folder, name)
	err := e.finisher.Runner.Run(ctx, ffmpeg.Command{
		Folder: spec.Folder, Inputs: []ffmpeg.Source{source},
		Args: []string{
			"-filter_complex", source.Picture(0) + "[v]", "-map", "[v]", "-frames:v", "1", "-c:v", "png", "-map_metadata", "-1",
			"-update", "1", "-f", "image2", "file:" + path,
		},
	})
	return &engine.Input{Path: path, MIME: "image/png"}, err
}

func formFile(field string, input *engine.Input) transfer.File {
	kind, _ := media.Find(input.MIME)
	return transfer.File{Field: field, Name: field + kind.Extension, Path: input.Path, MIME: input.MIME}
}
