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
	"strings"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/clock"
)

// cloud gives access to the parts of a deployment that clients cannot see.
type cloud interface {
	workers(ctx context.Context) (wanted, running int, err error)
	// deadLetters and tablesAndAlarms return an error if they find a problem.
	deadLetters(ctx context.Context) error
	tablesAndAlarms(ctx context.Context) error
	forget(ctx context.Context, key credential.Key) error
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
	// account, key and keyID belong to the key that the checks use.
	account, key, keyID string
	client              *client.Client
	count               map[string]int
}

func (v *visit) arrive(ctx context.Context) error {
	v.count, v.account = map[string]int{}, "check-"+strings.ToLower(rand.Text()[:10])
	var err error
	if v.key, err = credential.NewSecret(rand.Reader); err != nil {
		return err
	}
	key, err := credential.NewKey(v.key, v.account, credential.DefaultTier, "check of the deployment", time.Now())
	if err != nil {
		return err
	}
	v.keyID = key.ID
	if err := v.keys.CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	v.client, err = client.New(client.Config{
		URL: v.mediaURL, InferenceURL: v.inferenceURL, Key: v.key, UserAgent: userAgent, NewID: rand.Text,
		Backoff: time.Second,
	})
	return err
}

// leave cancels the checks' jobs and deletes their key.
func (v *visit) leave(ctx context.Context) (left error) {
	if v.client != nil {
		left = v.cancelJobs(ctx)
		v.client.Close()
	}
	key, err := v.keys.RevokeKey(ctx, audit.Operator(time.Now().UTC()), v.keyID)
	if err == nil {
		err = v.cloud.forget(ctx, key)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		left = errors.Join(left, fmt.Errorf("revoke %s: %w", v.keyID, err))
	}
	return left
}

const longestList = 1000

func (v *visit) cancelJobs(ctx context.Context) (left error) {
	for job, err := range v.client.Jobs(ctx, client.JobFilter{}, longestList) {
		if err == nil && !job.Ended() {
			_, err = v.client.CancelJob(ctx, job.ID)
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
		if !clock.Wait(ctx, v.poll) {
			return errors.New(pending)
		}
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
	sent.Header.Set("User-Agent", userAgent)
	if r.kind != "" {
		sent.Header.Set("Content-Type", r.kind)
	}
	if r.key != "" && r.gateway {
		sent.Header.Set("Authorization", "Bearer "+r.key)
	} else if r.key != "" {
		sent.Header.Set("x-api-key", r.key)
	}
	response, err := http.DefaultClient.Do(sent)
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
