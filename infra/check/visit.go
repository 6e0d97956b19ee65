package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	domain "cutroom/shared/domain/job"
)

// cloud gives access to the parts of a deployment that clients cannot see.
type cloud interface {
	workers(ctx context.Context) (wanted, running int, err error)
	// deadLetters and tablesAndAlarms return an error if they find a problem.
	deadLetters(ctx context.Context) error
	tablesAndAlarms(ctx context.Context) error
	forget(ctx context.Context, key credential.Key) error
	// accept accepts a job as the service does, but with j's deadline.
	accept(ctx context.Context, j domain.Job) error
	// lose receives a job and starts a run, like a worker that then dies. It returns false if a
	// real worker received the job first.
	lose(ctx context.Context, id string) (bool, error)
}

type visit struct {
	options
	deploy
	cloud cloud
	keys  credential.Store
	// video is a model that needs only a prompt, image is a model that edits images, and live is a model for realtime
	// sessions. live may be nil.
	video, image, live *catalog.Model
	out                io.Writer
	// poll is the pause between two reads. wakeTime is the maximum time between a job's submission
	// and the request for a worker.
	poll, wakeTime time.Duration
	own, other     account
	// made lists the ids of keys that the checks created.
	made  []string
	count map[string]int
	// cold is the number of workers before the first job, or -1 if unknown.
	cold int
	// done is the id of a completed job. lost is the id of the job whose first worker was lost. Both may be empty.
	done, lost string
}

type account struct {
	name       string
	key, admin string
	*client.Client
}

func (v *visit) arrive(ctx context.Context) (err error) {
	v.count, v.cold = map[string]int{}, -1
	v.own.name = "check-" + strings.ToLower(rand.Text()[:10])
	v.other.name = v.own.name + "-b"
	for _, a := range []*account{&v.own, &v.other} {
		if a.key, err = v.makeKey(ctx, a.name, false); err != nil {
			return err
		}
		a.Client, err = client.New(client.Config{
			URL: v.mediaURL, InferenceURL: v.inferenceURL, Key: a.key, UserAgent: userAgent, NewID: rand.Text,
			Backoff: time.Second,
		})
		if err != nil {
			return err
		}
	}
	v.own.admin, err = v.makeKey(ctx, v.own.name, true)
	return err
}

func (v *visit) makeKey(ctx context.Context, account string, admin bool) (string, error) {
	secret, err := credential.NewSecret(rand.Reader)
	if err != nil {
		return "", err
	}
	key, err := credential.NewKey(secret, account, credential.DefaultTier, "check of the deployment", time.Now())
	if err != nil {
		return "", err
	}
	key.Admin = admin
	v.made = append(v.made, key.ID)
	if err := v.keys.CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return secret, nil
}

// leave cancels the checks' jobs and deletes their keys, including keys created by the tested calls. The key list may
// lag by a second and miss makeKey's last keys, so their ids are also recorded in made.
func (v *visit) leave(ctx context.Context) error {
	listed, left := v.keys.ListKeys(ctx, v.own.name)
	for _, key := range listed {
		if !slices.Contains(v.made, key.ID) {
			v.made = append(v.made, key.ID)
		}
	}
	for _, a := range []account{v.own, v.other} {
		if a.Client != nil {
			left = errors.Join(left, cancelJobs(ctx, a))
			a.Close()
		}
	}
	for _, id := range v.made {
		key, err := v.keys.RevokeKey(ctx, audit.Operator(time.Now().UTC()), id)
		if err == nil {
			err = v.cloud.forget(ctx, key)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			left = errors.Join(left, fmt.Errorf("revoke %s: %w", id, err))
		}
	}
	return left
}

const longestList = 1000

func cancelJobs(ctx context.Context, a account) (left error) {
	for job, err := range a.Jobs(ctx, client.JobFilter{}, longestList) {
		if err == nil && !job.Ended() {
			_, err = a.CancelJob(ctx, job.ID)
		}
		if err != nil && !client.IsStatus(err, http.StatusConflict) { // 409 if it has just ended
			left = errors.Join(left, fmt.Errorf("cancel its jobs: %w", err))
		}
	}
	return left
}

// until calls the function `look` repeatedly, until pending is empty or there is an error. If ctx ends first, it
// returns the last value of pending as an error.
func (v *visit) until(ctx context.Context, look func() (pending string, err error)) error {
	for {
		pending, err := look()
		if err != nil || pending == "" {
			return err
		}
		if !pause(ctx, v.poll) {
			return errors.New(pending)
		}
	}
}

func pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-time.After(length):
		return true
	case <-ctx.Done():
		return false
	}
}

const userAgent = "cutroom-check"

type request struct {
	method, path string
	// gateway selects the inference gateway instead of the media service.
	gateway bool
	key     string
	body    []byte
	kind    string
	header  map[string]string
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) requestID() string {
	return cmp.Or(a.header.Get("x-amzn-RequestId"), a.header.Get("x-request-id"))
}

func (a answer) unexpected(want int) error {
	return fmt.Errorf("%d, want %d: %.160q (request %s)", a.status, want, a.body, a.requestID())
}

var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (v *visit) call(ctx context.Context, r request) (answer, error) {
	url := v.mediaURL
	if r.gateway {
		url = v.inferenceURL
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	// Send Accept, because some API gateways otherwise convert bytes to text.
	sent.Header.Set("Accept", "*/*")
	sent.Header.Set("Origin", "https://example.com")
	sent.Header.Set("User-Agent", userAgent)
	if r.kind != "" {
		sent.Header.Set("Content-Type", r.kind)
	}
	if r.key != "" && r.gateway {
		sent.Header.Set("Authorization", "Bearer "+r.key)
	} else if r.key != "" {
		sent.Header.Set("x-api-key", r.key)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	response, err := direct.Do(sent)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		err = fmt.Errorf("%s %s: read the response: %w", r.method, r.path, err)
	}
	return answer{response.StatusCode, response.Header, body}, err
}
