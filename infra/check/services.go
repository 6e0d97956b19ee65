package main

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/client"
)

// checkKeys checks that both services reject calls with no key and with a wrong key. API Gateway renames their header
// WWW-Authenticate.
func checkKeys(ctx context.Context, v *visit) (string, error) {
	const wrongKey = "ck_0000000000000000000000000000000000000000"
	for _, r := range []request{
		{path: "/v1/jobs"}, {path: "/v1/jobs", key: wrongKey}, {path: "/v1/usage", gateway: true},
		{path: "/v1/usage", gateway: true, key: wrongKey},
	} {
		r.method = http.MethodGet
		got, err := v.call(ctx, r)
		if err == nil && got.status != http.StatusUnauthorized {
			err = got.unexpected(http.StatusUnauthorized)
		}
		if err == nil && cmp.Or(got.header.Get("X-Amzn-Remapped-Www-Authenticate"), got.header.Get("WWW-Authenticate")) == "" {
			err = errors.New("the response has no WWW-Authenticate and no x-amzn-Remapped-WWW-Authenticate")
		}
		if err != nil {
			return "", fmt.Errorf("GET %s with the key %q: %w", r.path, r.key, err)
		}
	}
	return "calls without a valid key get 401 and WWW-Authenticate", nil
}

// checkUpload sends a large file to a signed URL, waits until it is listed, and reads it back.
func checkUpload(ctx context.Context, v *visit) (string, error) {
	sent := client.Source{Name: "check.bin", Size: v.uploadSize, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{}), v.uploadSize)), nil
	}}
	began := time.Now()
	stored, err := v.client.PutLargeFile(ctx, sent, "3600", nil)
	if err != nil {
		return "", err
	}
	took := time.Since(began)
	err = v.until(ctx, func() (string, error) {
		for file, err := range v.client.Files(ctx, longestList) {
			if err != nil || file.ID == stored.ID {
				return "", err
			}
		}
		return "the uploaded file is not listed", nil
	})
	if err != nil {
		return "", err
	}
	listed := time.Since(began) - took
	digest := md5.New()
	if err := errors.Join(v.client.CopyFile(ctx, stored.ID, digest, nil), v.client.DeleteFile(ctx, stored.ID)); err != nil {
		return "", fmt.Errorf("read the file back and delete it: %w", err)
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); sum != stored.MD5 || stored.SizeBytes != v.uploadSize {
		return "", fmt.Errorf("the file has MD5 %s and %d bytes, want %s and %d", sum, stored.SizeBytes,
			stored.MD5, v.uploadSize)
	}
	return fmt.Sprintf("%d bytes sent in %s, listed %s later, read back", v.uploadSize, round(took), round(listed)), nil
}

func checkStream(ctx context.Context, v *visit) (string, error) {
	models, err := v.client.InferenceModels(ctx)
	if len(models) == 0 {
		return "", cmp.Or(err, errors.New("the gateway lists no models"))
	}
	model := models[0].ID
	const prompt = "Write the numbers from one to two thousand in words, one after the other, without a gap."
	began := time.Now()
	pieces, last, silence := 0, began, time.Duration(0)
	usage, err := v.client.Stream(ctx, client.Chat{Model: model, MaxTokens: 4096,
		Messages: []client.Message{{Role: "user", Content: prompt}}}, func(string) error {
		pieces, silence, last = pieces+1, max(silence, time.Since(last)), time.Now()
		return nil
	})
	lasted := time.Since(began)
	if err != nil {
		return "", fmt.Errorf("a stream of %s broke after %s and %d pieces: %w", model, round(lasted), pieces, err)
	}
	if err := v.metered(ctx, usage.TotalTokens); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("%s: %d pieces and %d tokens in %s, the longest silence %s", model, pieces, usage.TotalTokens,
		round(lasted), round(silence))
	if lasted < v.streamTime {
		return "", skipf("%s; the model did not stream for %s", detail, v.streamTime)
	}
	return detail, nil
}

// metered waits until the usage shows one completion with this number of tokens.
func (v *visit) metered(ctx context.Context, tokens int) error {
	return v.until(ctx, func() (string, error) {
		rows, err := v.client.Usage(ctx, client.UsageQuery{})
		var requests, used int64
		for _, row := range rows {
			requests, used = requests+row.Requests, used+row.PromptTokens+row.CompletionTokens
		}
		if err != nil || requests == 1 && used == int64(tokens) && used > 0 {
			return "", err
		}
		pending := fmt.Sprintf("%d completions with %d tokens are metered, want 1 with %d", requests, used, tokens)
		if requests > 1 {
			return "", errors.New(pending)
		}
		return pending, nil
	})
}

// checkWebhook makes the service send a webhook to the receiver, if there is one. Otherwise, it uses a route that
// does not exist and expects a second attempt.
func checkWebhook(ctx context.Context, v *visit) (string, error) {
	receiver, want, status := v.receiver, 1, http.StatusOK
	if receiver == "" {
		receiver, want, status = v.mediaURL+"/v1/unknown", 2, http.StatusBadRequest
	}
	id, err := v.submit(ctx, receiver)
	if err != nil {
		return "", err
	}
	var text string
	err = v.until(ctx, func() (string, error) {
		made, err := v.client.Deliveries(ctx, id)
		if err != nil {
			return "", err
		}
		responses, wrong := 0, false
		text = receiver + " returned"
		for _, d := range made {
			if d.Status != nil { // nil: the receiver was too slow, and the delivery is retried
				responses++
				wrong = wrong || *d.Status < status || *d.Status >= status+100
				text += fmt.Sprintf(" %d", *d.Status)
			}
		}
		switch over := len(made) > 0 && made[len(made)-1].NextAttemptAt == nil; {
		case wrong, over && responses < want:
			return "", fmt.Errorf("%s to %d attempts, want %d responses with %d", text, len(made), want, status)
		case responses < want:
			return text, nil
		}
		return "", nil
	})
	return text, err
}

func checkRealtime(ctx context.Context, v *visit) (string, error) {
	if v.realtimeURL == "" || v.live == nil {
		return "", skipf("the deployment has no realtime sessions (-c realtime=true)")
	}
	began := time.Now()
	socket, _, err := websocket.Dial(ctx, v.realtimeURL+"?model="+url.QueryEscape(v.live.ID),
		&websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {v.key}}})
	if err != nil {
		return "", fmt.Errorf("open a session: %w", err)
	}
	defer socket.CloseNow()
	for {
		_, text, err := socket.Read(ctx)
		if err != nil {
			return "", fmt.Errorf("wait for a session to start: %w", err)
		}
		var got struct{ Type, Error string }
		switch _ = json.Unmarshal(text, &got); got.Type { // Type is empty for a frame
		case "error":
			return "", errors.New("the session sent an error: " + got.Error)
		case "session_started":
			detail := fmt.Sprintf("%s: started after %s", v.live.ID, round(time.Since(began)))
			return detail, socket.Close(websocket.StatusNormalClosure, "")
		}
	}
}

// checkState checks the dead-letter queues, the tables' TTL settings, and the alarms.
func checkState(ctx context.Context, v *visit) (string, error) {
	err := v.cloud.deadLetters(ctx)
	if v.local {
		return "no dead letters; a local AWS has no alarms", err
	}
	return "no dead letters, items expire, all alarms are quiet", errors.Join(err, v.cloud.tablesAndAlarms(ctx))
}
