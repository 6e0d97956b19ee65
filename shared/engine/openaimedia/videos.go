package openaimedia

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
	"cutroom/shared/platform/boundedjson"
)

// In bytes.
const (
	maxVideo  = 2 << 30
	maxRecord = 1 << 20
)

type record struct {
	ID       string  `json:"id"`
	Status   string  `json:"status"`
	Progress float64 `json:"progress"`
	Error    *struct {
		Message string `json:"message"`
	} `json:"error"`
}

const generated = 0.9

func (e *Engine) video(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
	progress(engine.Progress{Stage: "generate"})
	made, err := e.create(ctx, spec)
	if err != nil {
		return ours(ctx, err)
	}
	target := e.videos + "/videos/" + url.PathEscape(made.ID)
	defer e.forget(ctx, target)
	reached := 0.0
	err = e.await(ctx, target, made, func(percent float64) {
		reached = max(reached, min(percent/100, 1)*generated)
		progress(engine.Progress{Fraction: reached, Stage: "generate"})
	})
	if err != nil {
		return ours(ctx, err)
	}
	raw := filepath.Join(spec.Folder, "generated.mp4")
	if err := e.download(ctx, spec, target+"/content", raw); err != nil {
		return ours(ctx, err)
	}
	return e.finisher.Video(ctx, spec, transfer.Made{Path: raw, MIME: "video/mp4"}, progress)
}

func (e *Engine) create(ctx context.Context, spec engine.Spec) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	fields := []transfer.Field{
		{Name: "prompt", Value: spec.Prompt},
		{Name: "size", Value: spec.Size.String()},
		{Name: "width", Value: strconv.Itoa(spec.Size.Width)}, {Name: "height", Value: strconv.Itoa(spec.Size.Height)},
		{Name: "seconds", Value: strconv.Itoa(seconds(spec))},
		{Name: "num_frames", Value: strconv.Itoa(transfer.FrameCount(spec))}, {Name: "fps", Value: strconv.Itoa(spec.FPS)},
		{Name: "seed", Value: strconv.FormatUint(uint64(spec.Seed), 10)},
	}
	var files []transfer.File
	if data := spec.Data; data != nil {
		if spec.Kind == catalog.ImageToVideo {
			var err error
			if data, err = e.picture(ctx, spec, data, "sent.png"); err != nil {
				return record{}, err
			}
		}
		files = append(files, formFile("input_reference", data))
	}
	body, contentType := transfer.Form(fields, files...)
	defer body.Close()
	response, err := e.call(ctx, http.MethodPost, e.videos+"/videos", body, contentType)
	var status *statusError
	if spec.Data == nil && errors.As(err, &status) && status.status == http.StatusBadRequest {
		response, err = e.createFromJSON(ctx, spec)
	}
	if err != nil {
		return record{}, err
	}
	made, err := readRecord(response)
	if err == nil && made.ID == "" {
		err = failed("The engine returned an invalid response.", true, errors.New("the video has no id"))
	}
	return made, err
}

// createFromJSON requests a video from text. SGLang rejects forms without a file, and vLLM-Omni rejects JSON.
func (e *Engine) createFromJSON(ctx context.Context, spec engine.Spec) (*http.Response, error) {
	text, err := json.Marshal(map[string]any{
		"prompt": spec.Prompt, "size": spec.Size.String(), "seconds": seconds(spec), "num_frames": transfer.FrameCount(spec),
		"fps": spec.FPS, "seed": spec.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("openaimedia: %w", err)
	}
	return e.call(ctx, http.MethodPost, e.videos+"/videos", bytes.NewReader(text), "application/json")
}

func seconds(spec engine.Spec) int { return max(1, int(math.Ceil(spec.Duration.Seconds()))) }

func (e *Engine) await(ctx context.Context, target string, seen record, percent func(float64)) error {
	ticker := time.NewTicker(e.pollEvery)
	defer ticker.Stop()
	for lost := 0; ; {
		switch seen.Status {
		case "completed":
			return nil
		case "failed", "cancelled":
			reason := "no reason"
			if seen.Error != nil {
				reason = seen.Error.Message
			}
			return failed(job.EngineFailedMessage, true, fmt.Errorf("the status of the server's video is %s: %.200s", seen.Status, reason))
		}
		percent(seen.Progress)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		next, err := e.poll(ctx, target)
		if err == nil {
			seen, lost = next, 0
			continue
		}
		var status *statusError
		if lost++; lost >= maxPollsLost || errors.As(err, &status) && status.status == http.StatusNotFound {
			return failed("The engine stopped during the edit.", true, err)
		}
	}
}

func (e *Engine) poll(ctx context.Context, target string) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	response, err := e.call(ctx, http.MethodGet, target, nil, "")
	if err != nil {
		return record{}, err
	}
	return readRecord(response)
}

func readRecord(response *http.Response) (record, error) {
	defer response.Body.Close()
	var r record
	if err := boundedjson.Read(response.Body, maxRecord, maxValues, &r); err != nil {
		return r, failed("The engine returned an invalid response.", true, err)
	}
	return r, nil
}

func (e *Engine) download(ctx context.Context, spec engine.Spec, target, path string) error {
	response, err := e.call(ctx, http.MethodGet, target, nil, "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	written, err := transfer.Save(spec, path, response.Body, maxVideo)
	if err != nil {
		return fmt.Errorf("openaimedia: download: %w", err)
	}
	if written == 0 || written > maxVideo {
		return failed(job.NoResultMessage, true, fmt.Errorf("the server's video has %d bytes", written))
	}
	return nil
}

// forget makes the server stop and delete the video. It tries only once, because servers delete old videos anyway.
func (e *Engine) forget(ctx context.Context, target string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	if response, err := e.call(ctx, http.MethodDelete, target, nil, ""); err == nil {
		response.Body.Close()
	}
}
