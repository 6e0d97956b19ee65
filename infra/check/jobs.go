package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/domain/credential"
	domain "cutroom/shared/domain/job"
)

func (v *visit) submit(ctx context.Context, as account, webhook string) (id string, err error) {
	fields := map[string]string{"prompt": "a test card"}
	if _, ok := v.video.Sizes["480p"]; ok {
		fields["resolution"] = "480p"
	}
	if webhook != "" {
		fields["webhook_url"] = webhook
	}
	job, err := as.CreateJob(ctx, client.Edit{Model: v.video.ID, Fields: fields}, nil)
	return job.ID, err
}

func (v *visit) await(ctx context.Context, as account, id string) (job client.Job, err error) {
	err = v.until(ctx, func() (string, error) {
		var err error
		if job, err = as.Job(ctx, id); err != nil || job.Ended() {
			return "", err
		}
		return describe(job), nil
	})
	return job, err
}

func (v *visit) finish(ctx context.Context, id string) error {
	job, err := v.await(ctx, v.own, id)
	if err == nil && job.Status != client.Completed {
		err = errors.New(describe(job))
	}
	return err
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
	if !v.local {
		_, running, err := v.cloud.workers(ctx)
		if err != nil {
			return "", err
		}
		v.cold = running
	}
	id, err := v.submit(ctx, v.own, "")
	if err != nil {
		return "", err
	}
	accepted := time.Now()
	if v.cold == 0 {
		if err := v.whileCold(ctx); err != nil {
			return "", err
		}
	}
	var woken, running time.Duration
	for v.cold == 0 && running == 0 {
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
		if err != nil || running == 0 && !pause(ctx, v.poll) {
			return "", cmp.Or(err, errors.New("no worker is running"))
		}
	}
	if err := v.finish(ctx, id); err != nil {
		return "", err
	}
	v.done = id
	detail := fmt.Sprintf("done after %s", round(time.Since(accepted)))
	if v.cold == 0 {
		detail = fmt.Sprintf("a worker was requested after %s and ran after %s; %s", round(woken), round(running), detail)
	}
	return detail, nil
}

// whileCold checks that an image edit is rejected while no worker is running. Then it takes a job as a worker would
// and abandons it. Both steps must come before the first worker starts, because a running worker would take the job
// immediately.
func (v *visit) whileCold(ctx context.Context) error {
	got, err := v.editImage(ctx)
	if err != nil {
		return err
	}
	if retryAfter(got) == 0 {
		return fmt.Errorf("an image edit without workers must be rejected with Retry-After: %w", got.unexpected(http.StatusServiceUnavailable))
	}
	id, err := v.submit(ctx, v.own, "")
	if err != nil {
		return err
	}
	taken, err := v.cloud.lose(ctx, id)
	if err != nil {
		return fmt.Errorf("receive the job %s as a worker: %w", id, err)
	}
	if taken {
		v.lost = id
	}
	return nil
}

func retryAfter(got answer) time.Duration {
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || got.status != http.StatusServiceUnavailable {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// checkLostWorker waits until another worker completes the lost worker's job in a second run.
func checkLostWorker(ctx context.Context, v *visit) (string, error) {
	switch {
	case v.cold < 0:
		return "", skipf("requires the check job")
	case v.cold > 0:
		return "", skipf("%d workers were already running: retry after ten minutes without a job", v.cold)
	case v.lost == "":
		return "", skipf("a worker received the job first")
	}
	return "another worker ran the job a second time", v.finish(ctx, v.lost)
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
	return v.call(ctx, request{method: http.MethodPost, path: "/v1/generate/" + v.image.ID, key: v.own.key,
		body: body.Bytes(), kind: form.FormDataContentType()})
}

func checkImage(ctx context.Context, v *visit) (string, error) {
	began := time.Now()
	for {
		got, err := v.editImage(ctx)
		if err != nil {
			return "", err
		}
		if again := retryAfter(got); again > 0 && pause(ctx, again) {
			continue
		}
		if got.status != http.StatusOK || !bytes.HasPrefix(got.body, []byte("\x89PNG")) {
			return "", fmt.Errorf("an image edit must return a PNG: %w", got.unexpected(http.StatusOK))
		}
		return fmt.Sprintf("edited after %s", round(time.Since(began))), nil
	}
}

// overdueTime is the time until checkTimeout's job reaches its deadline. The job's execution times
// out 15 s earlier (stepfn.Machine), and no worker can make a video in the one second before that.
const overdueTime = 16 * time.Second

// checkTimeout submits a job that no worker can complete in time. The job's execution must fail it
// before the deadline. Later, any read of the job would do so, and the check would prove nothing.
func checkTimeout(ctx context.Context, v *visit) (string, error) {
	sizes := v.video.Sizes
	largest := slices.MaxFunc(slices.Collect(maps.Keys(sizes)),
		func(a, b string) int { return sizes[a].Width - sizes[b].Width })
	now := time.Now().UTC().Truncate(time.Millisecond)
	id, err := domain.NewID(now, rand.Reader)
	if err != nil {
		return "", err
	}
	j := domain.Job{
		ID: id, Account: v.own.name, Key: credential.KeyID(credential.HashOf(v.own.key)), Model: v.video.ID,
		Lane: domain.LaneOf(v.video.Kind), Seed: 1, Status: domain.Pending, CreatedAt: now, Deadline: now.Add(overdueTime),
		Request: domain.Request{Prompt: "a test card", Options: map[string]any{"resolution": largest}},
	}
	if err := v.cloud.accept(ctx, j); err != nil {
		return "", fmt.Errorf("submit a job that times out: %w", err)
	}
	ended, err := v.await(ctx, v.own, id)
	switch {
	case err != nil:
		return "", err
	case ended.Status == client.Completed:
		return "", skipf("a worker was done within a second")
	case ended.Error == nil || ended.Error.Code != string(domain.TimedOut):
		return "", fmt.Errorf("%s, want failed: %s", describe(ended), domain.TimedOut)
	case ended.CompletedAt == nil || !ended.CompletedAt.Before(j.Deadline):
		return "", fmt.Errorf("%s timed out when it was read after its deadline, not by its execution", id)
	}
	return fmt.Sprintf("its execution timed out after %s", round(ended.CompletedAt.Sub(j.CreatedAt))), nil
}

// checkFairness lets one account fill the queue. Another account's job, submitted later, must not be the last to end.
func checkFairness(ctx context.Context, v *visit) (string, error) {
	const crowd = 20
	var ids []string
	for i := range crowd + 1 {
		id, err := v.submit(ctx, []account{v.own, v.other}[i/crowd], "")
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	last, err := v.await(ctx, v.other, ids[crowd])
	if err != nil {
		return "", err
	}
	waiting, later := 0, 0
	for _, id := range ids[:crowd] {
		job, err := v.await(ctx, v.own, id)
		if err != nil {
			return "", err
		}
		if job.CompletedAt.After(*last.CreatedAt) {
			waiting++
		}
		if job.CompletedAt.After(*last.CompletedAt) {
			later++
		}
	}
	detail := fmt.Sprintf("%d jobs of one account: %d were waiting when another account's job arrived, and %d ended after it", crowd,
		waiting, later)
	if waiting > 0 && later == 0 {
		return "", errors.New(detail)
	}
	if waiting == 0 {
		return "", skip(detail)
	}
	return detail, nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
