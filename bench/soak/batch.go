package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/servertest"
)

// batch sends several requests as one batch, and checks that each request gets one response.
func (l *load) batch(ctx context.Context, random *rand.Rand) {
	calls := 1 + random.IntN(batchMost)
	err := l.makeBatch(ctx, calls)
	switch {
	case ctx.Err() != nil:
		l.ledger.did("batches that were not followed to their end")
	case err != nil:
		l.ledger.wrong("a batch: %v", err)
	default:
		l.ledger.called(calls)
		l.ledger.did("batches")
	}
}

func (l *load) makeBatch(ctx context.Context, calls int) error {
	var lines bytes.Buffer
	for i := range calls {
		fmt.Fprintf(&lines, `{"custom_id": "call-%d", "method": "POST", "url": "/v1/chat/completions", `+
			`"body": {"model": "cutroom-echo", "messages": [{"role": "user", "content": "Hello %[1]d"}]}}`+"\n", i)
	}
	var file, made struct{ ID string }
	body, length, contentType := servertest.Form{servertest.Text("purpose", "batch"),
		servertest.File("file", "calls.jsonl", lines.Bytes())}.Encode()
	client := &servertest.Client{URL: l.server.InferenceURL()}
	answer, err := client.Call(ctx, "POST", "/v1/files", body, length, "Content-Type", contentType, "Authorization", bearer)
	if err := readJSON(answer, err, &file); err != nil {
		return err
	}
	order, _ := json.Marshal(map[string]string{
		"input_file_id": file.ID, "endpoint": "/v1/chat/completions", "completion_window": "24h",
	})
	answer, err = client.Call(ctx, "POST", "/v1/batches", bytes.NewReader(order), int64(len(order)),
		"Content-Type", "application/json", "Authorization", bearer)
	if err := readJSON(answer, err, &made); err != nil {
		return err
	}
	for {
		var batch struct {
			Status string
			Output string `json:"output_file_id"`
		}
		answer, err := client.Get(ctx, "/v1/batches/"+made.ID, "Authorization", bearer)
		if err := readJSON(answer, err, &batch); err != nil {
			return err
		}
		switch batch.Status {
		case "completed":
			return l.checkBatch(ctx, client, batch.Output, calls)
		case "failed", "expired", "cancelled":
			return fmt.Errorf("the batch is %s: %s", batch.Status, answer.Body)
		}
		if !clock.Wait(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (l *load) checkBatch(ctx context.Context, client *servertest.Client, output string, calls int) error {
	answer, err := client.Get(ctx, "/v1/files/"+output+"/content", "Authorization", bearer)
	if err != nil || answer.Status != 200 {
		return fmt.Errorf("read the responses: status %d, %w", answer.Status, err)
	}
	times := map[string]int{}
	for line := range bytes.Lines(answer.Body) {
		var one struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		times[one.ID]++
	}
	for i := range calls {
		if id := fmt.Sprintf("call-%d", i); times[id] != 1 || len(times) != calls {
			return fmt.Errorf("%d requests have %d responses, %s has %d", calls, len(times), id, times[id])
		}
	}
	return nil
}

const bearer = "Bearer " + servertest.Key

func readJSON(answer servertest.Answer, err error, into any) error {
	if err != nil {
		return err
	}
	if answer.Status != 200 {
		return fmt.Errorf("status %d: %s", answer.Status, answer.Body)
	}
	return json.Unmarshal(answer.Body, into)
}
