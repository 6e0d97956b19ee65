package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/servertest"
)

const (
	imageModel  = "gen-image-2"
	imagePrompt = "a watercolor painting"
	imageRounds = 9
	// imageBar is the maximum difference between the response time and the engine's time.
	imageBar = 100 * time.Millisecond
)

// image edits a picture alternately through the synchronous route and with the engine. The
// difference is the overhead: the upload, the record, the queue, the probe, and storing the result.
func (b *bench) image(ctx context.Context) error {
	path := filepath.Join(filepath.Dir(b.clip), "reference.jpg")
	picture, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	byEngine, err := b.imageEngine(ctx, path)
	if err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "image")
	if err != nil {
		return err
	}
	defer stop()
	client := server.Client()
	byRoute := func() error {
		body, length, kind := servertest.Form{
			servertest.File("data", "reference.jpg", picture), servertest.Text("prompt", imagePrompt),
			servertest.Text("seed", "1"),
		}.Encode()
		answer, err := client.Call(ctx, http.MethodPost, "/v1/generate/"+imageModel, body, length, "Content-Type", kind)
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", answer.Status, answer.Body)
		}
		return err
	}

	var floor, measured, over []time.Duration
	for range imageRounds {
		for _, step := range []struct {
			into *[]time.Duration
			do   func() error
		}{{&floor, byEngine}, {&measured, byRoute}} {
			begun := time.Now()
			if err := step.do(); err != nil {
				return err
			}
			*step.into = append(*step.into, time.Since(begun))
		}
		last := len(floor) - 1
		over = append(over, measured[last]-floor[last])
	}
	b.table.add(row{
		what:     "image edit, less the engine",
		measured: short(median(over)),
		floor:    short(median(floor)) + " the engine",
		ratio:    ratio(median(measured), median(floor)),
		bar:      short(imageBar),
		verdict:  verdictOf(median(over) <= imageBar),
	})
	return nil
}

func (b *bench) imageEngine(ctx context.Context, path string) (func() error, error) {
	known, err := catalog.Default("gen")
	if err != nil {
		return nil, err
	}
	m, ok := known.Find(imageModel)
	if !ok {
		return nil, fmt.Errorf("the catalog has no %s", imageModel)
	}
	tools, err := ffmpeg.Find(ctx, known.Limits)
	if err != nil {
		return nil, err
	}
	const mime = "image/jpeg"
	info, err := tools.ProbeImage(ctx, path, mime)
	if err != nil {
		return nil, err
	}
	return func() error {
		scratch, err := os.MkdirTemp(b.folder, "image-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		_, err = preview.New(tools).Run(ctx, engine.Spec{
			Job: "bench", Model: m.ID, Kind: m.Kind, Prompt: imagePrompt, Seed: 1,
			Options: map[string]any{"resolution": "720p", "enhance_prompt": true},
			Data:    &engine.Input{Path: path, MIME: mime, Info: info},
			Size:    m.Sizes["720p"].Fit(catalog.Size{Width: info.Width, Height: info.Height}),
			Folder:  scratch, Output: filepath.Join(scratch, "output.png"),
		}, func(engine.Progress) {})
		return err
	}, nil
}
