package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/platform/clock"
)

func (v *visit) submit(ctx context.Context, webhook string) (id string, err error) {
	fields := map[string]string{"prompt": "a test card"}
	if _, ok := v.video.Sizes["480p"]; ok {
		fields["resolution"] = "480p"
	}
	if webhook != "" {
		fields["webhook_url"] = webhook
	}
	job, err := v.client.CreateJob(ctx, client.Edit{Model: v.video.ID, Fields: fields}, nil)
	return job.ID, err
}

func (v *visit) finish(ctx context.Context, id string) error {
	return v.until(ctx, func() (string, error) {
		job, err := v.client.Job(ctx, id)
		if err == nil && job.Ended() && job.Status != client.Completed {
			err = errors.New(describe(job))
		}
		if err != nil || job.Ended() {
			return "", err
		}
		return describe(job), nil
	})
}

func describe(job client.Job) string {
	text := job.ID + " is " + job.Status
	if job.Error != nil {
		text += ": " + job.Error.Code + ", " + job.Error.Message
	}
	return text
}

// checkJob follows the first job from acceptance to its end. If no worker is running, the service
// must start one for the job, and must reject image edits until then.
func checkJob(ctx context.Context, v *visit) (string, error) {
	cold := false
	if !v.local {
		_, running, err := v.cloud.workers(ctx)
		if err != nil {
			return "", err
		}
		cold = running == 0
	}
	id, err := v.submit(ctx, "")
	if err != nil {
		return "", err
	}
	accepted := time.Now()
	if cold {
		got, err := v.editImage(ctx)
		if err != nil {
			return "", err
		}
		if retryAfter(got) == 0 {
			return "", fmt.Errorf("an image edit without workers must be rejected with Retry-After: %w",
				got.unexpected(http.StatusServiceUnavailable))
		}
	}
	var woken, running time.Duration
	for cold && running == 0 {
		wanted, run, err := v.cloud.workers(ctx)
		passed := max(time.Since(accepted), 1)
		if wanted > 0 && woken == 0 {
			woken = passed
		}
		if run > 0 {
			running = passed
		}
		if woken == 0 && passed > v.wakeTime {
			err = fmt.Errorf("no worker was requested within %s after a job was accepted", v.wakeTime)
		}
		if err != nil || running == 0 && !clock.Wait(ctx, v.poll) {
			return "", cmp.Or(err, errors.New("no worker is running"))
		}
	}
	if err := v.finish(ctx, id); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("done after %s", round(time.Since(accepted)))
	if cold {
		detail = fmt.Sprintf("a worker was requested after %s and ran after %s; %s", round(woken), round(running), detail)
	}
	return detail, nil
}

func retryAfter(got answer) time.Duration {
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || got.status != http.StatusServiceUnavailable {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (v *visit) editImage(ctx context.Context) (answer, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("data", "check.png")
	if err == nil {
		err = png.Encode(file, image.NewGray(image.Rect(0, 0, 128, 128)))
	}
	if err = errors.Join(err, form.WriteField("prompt", "a pencil sketch"), form.Close()); err != nil {
		return answer{}, err
	}
	return v.call(ctx, request{method: http.MethodPost, path: "/v1/generate/" + v.image.ID, key: v.key,
		body: body.Bytes(), kind: form.FormDataContentType()})
}

func checkImage(ctx context.Context, v *visit) (string, error) {
	began := time.Now()
	for {
		got, err := v.editImage(ctx)
		if err != nil {
			return "", err
		}
		if again := retryAfter(got); again > 0 && clock.Wait(ctx, again) {
			continue
		}
		if got.status != http.StatusOK || !bytes.HasPrefix(got.body, []byte("\x89PNG")) {
			return "", fmt.Errorf("an image edit must return a PNG: %w", got.unexpected(http.StatusOK))
		}
		return fmt.Sprintf("edited after %s", round(time.Since(began))), nil
	}
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
