package deploycheck

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	domain "cutroom/shared/domain/job"
)

// job is a job's record, as far as it is looked at.
type job struct {
	ID          string    `json:"job_id"`
	Status      string    `json:"status"`
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at"`
	Error       *struct{ Code, Message string }
}

func (j job) ended() bool { return j.Status == "completed" || j.Status == "failed" }

func (j job) String() string {
	if j.Error != nil {
		return fmt.Sprintf("%s is %s: %s, %s", j.ID, j.Status, j.Error.Code, j.Error.Message)
	}
	return j.ID + " is " + j.Status
}

// submit submits a short job that needs no input, with fields beside its prompt.
func (v *visit) submit(ctx context.Context, as account, fields map[string]string) (id string, err error) {
	parts := []field{{name: "prompt", content: []byte("a test card")}}
	if model, ok := v.Catalog.Find(v.video); ok && model.Sizes["480p"].Width > 0 {
		parts = append(parts, field{name: "resolution", content: []byte("480p")})
	}
	for name, value := range fields {
		parts = append(parts, field{name: name, content: []byte(value)})
	}
	return v.submitTo(ctx, as, v.video, parts...)
}

func (v *visit) submitTo(ctx context.Context, as account, model string, parts ...field) (id string, err error) {
	body, kind, err := form(parts...)
	if err != nil {
		return "", err
	}
	var made job
	err = v.ask(ctx, request{method: http.MethodPost, path: "/v1/jobs/" + model, key: as.key, body: body, kind: kind}, &made)
	if err == nil && made.ID == "" {
		err = errors.New("a job was accepted without an id")
	}
	v.spent.jobs++
	return made.ID, err
}

func (v *visit) job(ctx context.Context, as account, id string) (job, error) {
	var found job
	err := v.ask(ctx, request{path: "/v1/jobs/" + id, key: as.key}, &found)
	return found, err
}

// cancelTries is how many jobs are submitted at most to cancel one.
const cancelTries = 10

// cancelled submits a job and cancels it. A job that ends first is followed by another: a
// worker makes its video in a moment.
func (v *visit) cancelled(ctx context.Context) (id string, err error) {
	for range cancelTries {
		if id, err = v.submit(ctx, v.own, nil); err != nil {
			return "", err
		}
		cancel := request{method: http.MethodDelete, path: "/v1/jobs/" + id, key: v.own.key}
		got, err := v.call(ctx, cancel)
		switch {
		case err != nil:
			return "", err
		case got.status == http.StatusOK:
			return id, nil
		case got.status != http.StatusConflict:
			return "", got.unexpected(cancel.method+" "+cancel.path, http.StatusOK)
		}
	}
	return "", fmt.Errorf("%d jobs ended before they were cancelled", cancelTries)
}

// await waits for the end of a job. Each time that it looks it calls seen, which may be
// nil.
func (v *visit) await(ctx context.Context, as account, id string, seen func(job) error) (job, error) {
	for {
		found, err := v.job(ctx, as, id)
		if err != nil {
			return found, err
		}
		if seen != nil {
			if err := seen(found); err != nil {
				return found, err
			}
		}
		if found.ended() {
			return found, nil
		}
		if err := v.wait(ctx); err != nil {
			return found, fmt.Errorf("%s: %w", found, err)
		}
	}
}

// fleet is what was seen of the workers while the first job was served.
type fleet struct {
	looked bool
	// before is how many ran when the job came.
	before int
	// woken and running are how long after its acceptance a worker was wanted, and ran;
	// zero if that was never seen.
	woken, running time.Duration
	// cold is the answer to an image edit at that moment.
	cold answer
}

// checkJob submits the first job, and follows it from its acceptance to its end. Where
// no worker runs, an image edit at the same time has to be refused until one does.
func checkJob(ctx context.Context, v *visit) (string, error) {
	if err := v.lookAtFleet(ctx); err != nil {
		return "", err
	}
	id, err := v.submit(ctx, v.own, nil)
	if err != nil {
		return "", err
	}
	accepted := v.Now()
	if v.fleet.looked && v.fleet.before == 0 {
		if v.fleet.cold, err = v.editImage(ctx); err != nil {
			return "", err
		}
		if err := v.loseWorker(ctx); err != nil {
			return "", err
		}
	}
	var started time.Duration
	ended, err := v.await(ctx, v.own, id, func(now job) error {
		if started == 0 && now.Status != "pending" {
			started = v.Now().Sub(accepted)
		}
		return v.followFleet(ctx, accepted)
	})
	if err != nil {
		return "", err
	}
	if ended.Status != "completed" {
		return "", fmt.Errorf("the job %s", ended)
	}
	v.done = id
	detail := fmt.Sprintf("a worker had it after %s, done after %s", round(started), round(v.Now().Sub(accepted)))
	if v.fleet.woken > 0 {
		detail = fmt.Sprintf("woken after %s, running after %s, ", round(v.fleet.woken), round(v.fleet.running)) + detail
	}
	return detail, nil
}

// completed returns a job that is completed: that of checkJob, if it was done.
func (v *visit) completed(ctx context.Context) (string, error) {
	if v.done != "" {
		return v.done, nil
	}
	id, err := v.submit(ctx, v.own, nil)
	if err != nil {
		return "", err
	}
	ended, err := v.await(ctx, v.own, id, nil)
	if err == nil && ended.Status != "completed" {
		err = fmt.Errorf("no job is completed: %s", ended)
	}
	if err == nil {
		v.done = id
	}
	return id, err
}

// lookAtFleet notes how many workers run.
func (v *visit) lookAtFleet(ctx context.Context) error {
	if v.Local {
		return nil
	}
	_, running, err := v.Cloud.Workers(ctx)
	if err != nil {
		return err
	}
	v.fleet.looked, v.fleet.before = true, running
	return nil
}

// followFleet notes when a worker was wanted and when it ran.
func (v *visit) followFleet(ctx context.Context, accepted time.Time) error {
	if !v.fleet.looked || v.fleet.running > 0 {
		return nil
	}
	wanted, running, err := v.Cloud.Workers(ctx)
	if err != nil {
		return err
	}
	passed := max(v.Now().Sub(accepted), 1)
	if wanted > 0 && v.fleet.woken == 0 {
		v.fleet.woken = passed
	}
	if running > 0 {
		v.fleet.running = passed
	}
	return nil
}

// wakeTime is how soon after the acceptance of a job a worker has to be wanted.
const wakeTime = 30 * time.Second

// checkWake judges what was seen of the workers when the first job came.
func checkWake(_ context.Context, v *visit) (string, error) {
	f := v.fleet
	switch {
	case !f.looked:
		return "", skip("it is a matter of the first job, which was left out")
	case f.before > 0:
		return "", skip("%d workers ran already: come back when there was no job for ten minutes", f.before)
	case f.woken == 0:
		return "", errors.New("no worker was wanted after a job was accepted")
	case f.woken > wakeTime:
		return "", fmt.Errorf("a worker was wanted %s after a job was accepted, want %s at most", round(f.woken), wakeTime)
	case f.cold.status != http.StatusServiceUnavailable:
		return "", f.cold.unexpected("an image edit while no worker runs", http.StatusServiceUnavailable)
	}
	if seconds, err := strconv.Atoi(f.cold.header.Get("Retry-After")); err != nil || seconds < 1 {
		return "", fmt.Errorf("an image edit while no worker runs is a 503 with Retry-After %q", f.cold.header.Get("Retry-After"))
	}
	return fmt.Sprintf("from none: wanted after %s, running after %s; an image meanwhile is a 503", round(f.woken),
		round(f.running)), nil
}

// picture returns a small image.
func picture() ([]byte, error) {
	var encoded bytes.Buffer
	err := png.Encode(&encoded, image.NewGray(image.Rect(0, 0, 128, 128)))
	return encoded.Bytes(), err
}

func (v *visit) editImage(ctx context.Context) (answer, error) {
	content, err := picture()
	if err != nil {
		return answer{}, err
	}
	body, kind, err := form(field{name: "prompt", content: []byte("a pencil sketch")},
		field{name: "data", file: "check.png", content: content})
	if err != nil {
		return answer{}, err
	}
	v.spent.jobs++
	return v.call(ctx, request{method: http.MethodPost, path: "/v1/generate/" + v.image, key: v.own.key, body: body,
		kind: kind})
}

// checkImage edits an image while its caller waits, as soon as a worker is warm.
func checkImage(ctx context.Context, v *visit) (string, error) {
	began := v.Now()
	for {
		got, err := v.editImage(ctx)
		if err != nil {
			return "", err
		}
		switch {
		case got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != "":
			// Not sooner than it asks for: each refusal counts as an error of the service.
			seconds, _ := strconv.Atoi(got.header.Get("Retry-After")) // 0 if it is no number
			if err := v.pause(ctx, max(v.Poll, time.Duration(seconds)*time.Second)); err != nil {
				return "", got.unexpected("an image edit", http.StatusOK)
			}
			continue
		case got.status != http.StatusOK:
			return "", got.unexpected("an image edit", http.StatusOK)
		case got.header.Get("Content-Type") != "image/png" || !bytes.HasPrefix(got.body, []byte("\x89PNG")):
			return "", fmt.Errorf("an image edit is no PNG but %s: %s", got.header.Get("Content-Type"), got.detail())
		}
		return fmt.Sprintf("edited after %s", round(v.Now().Sub(began))), nil
	}
}

// loseWorker submits a job and takes it as a worker would that dies in the middle of it.
// That can be done only while no worker runs: one would take it at once.
func (v *visit) loseWorker(ctx context.Context) error {
	if !v.wanted("lost-worker") {
		return nil
	}
	id, err := v.submit(ctx, v.own, nil)
	if err != nil {
		return err
	}
	taken, err := v.Cloud.Lose(ctx, id)
	if err != nil {
		return fmt.Errorf("take the job %s as a worker: %w", id, err)
	}
	if taken {
		v.lost = id
	}
	return nil
}

// checkLostWorker awaits the end of the job whose first worker was lost: another one has to
// take it, in a second run.
func checkLostWorker(ctx context.Context, v *visit) (string, error) {
	switch {
	case !v.fleet.looked:
		return "", skip("it is a matter of the first job, which was left out")
	case v.fleet.before > 0:
		return "", skip("%d workers ran already: come back when there was no job for ten minutes", v.fleet.before)
	case v.lost == "":
		return "", skip("a worker came sooner than it could be lost")
	}
	ended, err := v.await(ctx, v.own, v.lost, nil)
	if err != nil {
		return "", err
	}
	if ended.Status != "completed" {
		return "", fmt.Errorf("the job of a worker that was lost: %s", ended)
	}
	const want = 2
	runs, err := v.Cloud.Runs(ctx, v.lost)
	if err == nil && runs != want {
		err = fmt.Errorf("the job of a worker that was lost is completed, in %d runs, want %d", runs, want)
	}
	return "another worker took it, in a second run", err
}

// overdueTime is how long a job has that is to time out: its execution times out 15 s
// before its deadline (stepfn.Machine), which leaves a second, in which no worker makes a
// video.
const overdueTime = 16 * time.Second

// checkTimeout has a job accepted that cannot be done in time. Its execution has to record
// so, before the deadline, at which any reader of the job would.
func checkTimeout(ctx context.Context, v *visit) (string, error) {
	now := v.Now().UTC().Truncate(time.Millisecond)
	id, err := domain.NewID(now, v.Random)
	if err != nil {
		return "", err
	}
	model, _ := v.Catalog.Find(v.video)
	j := domain.Job{
		ID: id, Account: v.own.name, Key: credential.KeyID(credential.HashOf(v.own.key)), Model: model.ID,
		Lane: domain.LaneOf(model.Kind), Seed: 1, Status: domain.Pending, CreatedAt: now, Deadline: now.Add(overdueTime),
		Request: domain.Request{Prompt: "a test card", Options: map[string]any{"resolution": largest(model)}},
	}
	if err := v.Cloud.Accept(ctx, j); err != nil {
		return "", fmt.Errorf("have a job accepted that times out: %w", err)
	}
	v.spent.jobs++
	ended, err := v.await(ctx, v.own, id, nil)
	if err != nil {
		return "", err
	}
	switch {
	case ended.Status == "completed":
		return "", skip("a worker was done within a second")
	case ended.Error == nil || ended.Error.Code != string(domain.TimedOut):
		return "", fmt.Errorf("a job that takes too long: %s, want failed with %s", ended, domain.TimedOut)
	case !ended.CompletedAt.Before(j.Deadline):
		return "", fmt.Errorf("%s timed out as it was read, after its deadline, and not by its execution", id)
	}
	return fmt.Sprintf("timed out after %s, by its execution", round(ended.CompletedAt.Sub(j.CreatedAt))), nil
}

// largest returns the name of the model's largest resolution.
func largest(m *catalog.Model) string {
	name, most := "", 0
	for resolution, size := range m.Sizes {
		if pixels := size.Width * size.Height; pixels > most {
			name, most = resolution, pixels
		}
	}
	return name
}

// broken is a video with its whole header and none of its frames.
//
//go:embed broken.mp4
var broken []byte

// checkFailure submits a video that cannot be decoded. Its job fails, with the reason.
func checkFailure(ctx context.Context, v *visit) (string, error) {
	id, err := v.submitTo(ctx, v.own, v.edit, field{name: "prompt", content: []byte("x")},
		field{name: "data", file: "broken.mp4", content: broken})
	if err != nil {
		return "", err
	}
	ended, err := v.await(ctx, v.own, id, nil)
	if err != nil {
		return "", err
	}
	if ended.Status != "failed" || ended.Error == nil || ended.Error.Code != "invalid_input" {
		return "", fmt.Errorf("a job whose video is broken: %s, want failed with invalid_input", ended)
	}
	return "invalid_input", v.noContent(ctx, id)
}

// noContent makes sure that a job that has failed has no content.
func (v *visit) noContent(ctx context.Context, id string) error {
	got, err := v.call(ctx, request{path: "/v1/jobs/" + id + "/content", key: v.own.key})
	if err == nil && got.status != http.StatusConflict {
		err = got.unexpected("the content of a job that has failed", http.StatusConflict)
	}
	return err
}

// checkCancel cancels a job.
func checkCancel(ctx context.Context, v *visit) (string, error) {
	id, err := v.cancelled(ctx)
	if err != nil {
		return "", err
	}
	found, err := v.job(ctx, v.own, id)
	if err != nil {
		return "", err
	}
	if found.Status != "failed" || found.Error == nil || found.Error.Code != "cancelled" {
		return "", fmt.Errorf("a cancelled job: %s", found)
	}
	return "cancelled", v.noContent(ctx, id)
}

// checkFairness lets one account fill the queue. The job of another one, which comes
// last, must not be served last.
func checkFairness(ctx context.Context, v *visit) (string, error) {
	ids, id, err := v.crowd(ctx)
	if err != nil {
		return "", err
	}
	last, err := v.await(ctx, v.other, id, nil)
	if err != nil {
		return "", err
	}
	later := 0
	for _, id := range ids {
		ended, err := v.await(ctx, v.own, id, nil)
		if err != nil {
			return "", err
		}
		if ended.CompletedAt.After(last.CompletedAt) {
			later++
		}
	}
	if later == 0 {
		return "", fmt.Errorf("the job of one account ended after all %d of another, which came before", v.Crowd)
	}
	return fmt.Sprintf("%d of %d jobs of another account ended later", later, v.Crowd), nil
}

// crowdTries is how often the queue is filled at most.
const crowdTries = 3

// crowd submits many jobs of one account and then one of another, while some of the first
// are open still. Where they all ended first it begins again.
func (v *visit) crowd(ctx context.Context) (ids []string, last string, err error) {
	for range crowdTries {
		ids = make([]string, v.Crowd)
		for i := range ids {
			if ids[i], err = v.submit(ctx, v.own, nil); err != nil {
				return nil, "", err
			}
		}
		if last, err = v.submit(ctx, v.other, nil); err != nil {
			return nil, "", err
		}
		for _, id := range slices.Backward(ids) {
			found, err := v.job(ctx, v.own, id)
			if err != nil || !found.ended() {
				return ids, last, err
			}
		}
	}
	return nil, "", fmt.Errorf("all %d jobs of one account ended before another submitted its own", v.Crowd)
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
