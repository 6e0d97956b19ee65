package deploycheck

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// delivery is an attempt to call a webhook.
type delivery struct {
	Attempt int
	Status  *int
	Error   *string
	Next    *time.Time `json:"next_attempt_at"`
}

// deliver submits a job with a webhook, and returns the attempts as soon as there are that
// many, or none is to follow.
func (v *visit) deliver(ctx context.Context, receiver string, attempts int) ([]delivery, error) {
	id, err := v.submit(ctx, v.own, map[string]string{"webhook_url": receiver})
	if err != nil {
		return nil, err
	}
	for {
		var log struct{ Deliveries []delivery }
		if err := v.ask(ctx, request{path: "/v1/jobs/" + id + "/deliveries", key: v.own.key}, &log); err != nil {
			return nil, err
		}
		made := log.Deliveries
		if n := len(made); n >= attempts || n > 0 && made[n-1].Next == nil {
			return made, nil
		}
		if err := v.wait(ctx); err != nil {
			return nil, fmt.Errorf("the webhook of %s was tried %d times: %w", id, len(made), err)
		}
	}
}

// deliverTries is how many webhooks are sent at most until each attempt has an answer: one
// that had none in time says nothing of the next.
const deliverTries = 3

// checkWebhookRetry lets a webhook go to a route that the service does not have. That
// takes no receiver, is refused, and has to be tried again.
func checkWebhookRetry(ctx context.Context, v *visit) (string, error) {
	var made []delivery
	for range deliverTries {
		var err error
		if made, err = v.deliver(ctx, v.MediaURL+"/v1/unknown", 2); err != nil {
			return "", err
		}
		if !slices.ContainsFunc(made, func(one delivery) bool { return one.Status == nil }) {
			break
		}
	}
	for _, one := range made {
		// A local AWS answers 403.
		if one.Status == nil || *one.Status < http.StatusBadRequest || *one.Status >= http.StatusInternalServerError {
			return "", fmt.Errorf("attempt %d at a route that is not there: %s", one.Attempt, one)
		}
	}
	if len(made) < 2 {
		return "", fmt.Errorf("a webhook that was refused was tried %d times", len(made))
	}
	return fmt.Sprintf("%d attempts", len(made)), nil
}

// checkWebhook lets a webhook go to the deployer's receiver.
func checkWebhook(ctx context.Context, v *visit) (string, error) {
	if v.Receiver == "" {
		return "", skip("name a public URL that answers POST with 2xx: --receiver URL")
	}
	made, err := v.deliver(ctx, v.Receiver, 1)
	if err != nil {
		return "", err
	}
	if first := made[0]; first.Status == nil || *first.Status < 200 || *first.Status > 299 {
		return "", fmt.Errorf("the receiver: %s", first)
	}
	return fmt.Sprintf("the receiver answered %d", *made[0].Status), nil
}

func (d delivery) String() string {
	switch {
	case d.Error != nil:
		return *d.Error
	case d.Status != nil:
		return fmt.Sprintf("status %d", *d.Status)
	}
	return "no answer"
}
