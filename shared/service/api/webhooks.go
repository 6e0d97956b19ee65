package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
)

func Webhooks(s *service) []route {
	return within(credential.JobRoutes, []route{
		{method: http.MethodGet, path: "/v1/webhooks/secret", access: keyOnly, handle: s.showWebhookSecret},
		{method: http.MethodGet, path: "/v1/jobs/{id}/deliveries", access: keyOrToken, unlimited: true,
			handle: s.listDeliveries},
	})
}

// jobForm adds the fields that the service defines for jobs of all models (docs/contract/jobs.md#call-options).
func jobForm(m *catalog.Model) *catalog.Form {
	form := *m.Form
	form.Fields = append(slices.Clip(form.Fields), catalog.Field{
		Name: webhookField, Type: catalog.Text, Max: new(int64(webhook.MaxURL)),
		Description: "URL on the public internet that receives a signed POST when the job ends (an extension of this " +
			"service). It must use https.",
	}, catalog.Field{
		Name: job.StartWithin, Type: catalog.Integer, Min: new(int64(1)), Max: new(int64(86400)),
		Description: "The job fails with `start_timeout` if it has not started within this many seconds (an extension).",
	}, catalog.Field{
		Name: job.ResultTTL, Type: catalog.Integer, Min: new(int64(60)), Max: new(int64(job.DefaultResultAge / time.Second)),
		Description: "The result is deleted this many seconds after the job's end (an extension).",
	}, catalog.Field{
		Name: job.WebhookEvents, Type: catalog.Choice, Values: []string{"completed,failed", "completed", "failed"},
		Description: "The statuses for which `webhook_url` is called; by default both (an extension).",
	}, catalog.Field{
		Name: job.Priority, Type: catalog.Choice, Values: []string{"normal", job.LowPriority},
		Description: "Jobs with `low` priority wait while other jobs wait (an extension). In AWS `low` is not available.",
	})
	return &form
}

func (s *service) checkPriority(sub submission) {
	if sent := sub[job.Priority]; sent != nil && sent.text == job.LowPriority && !s.Jobs.HasPriorities() {
		sent.problems = append(sent.problems, valueProblem(sent.name, sent.text, "This deployment has only normal priority."))
	}
}

// checkWebhook leaves the URL's length and encoding to the form's own checks.
func (s *service) checkWebhook(sub submission) {
	sent := sub[webhookField]
	if sent == nil || !utf8.ValidString(sent.text) || utf8.RuneCountInString(sent.text) > webhook.MaxURL {
		return
	}
	var invalid *fault.Error
	if errors.As(s.WebhookTargets.CheckURL(sent.text), &invalid) {
		sent.problems = append(sent.problems, valueProblem(sent.name, sent.text, invalid.Message))
	}
}

// webhookBody encodes to the same bytes in every attempt.
type webhookBody struct {
	Type      webhook.EventType `json:"type"`
	Timestamp *string           `json:"timestamp"`
	// Data is the job as the status endpoint shows it.
	Data jobBody `json:"data"`
}

func WebhookBody(j job.Job) ([]byte, error) {
	shown := newJobBody(j, j.CompletedAt, job.DefaultResultAge)
	return plainJSON(webhookBody{webhook.EventOf(j), timestamp(j.CompletedAt), shown})
}

// plainJSON encodes a message without HTML escapes.
func plainJSON(message any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

func (s *service) showWebhookSecret(w http.ResponseWriter, r *http.Request, c call) error {
	secret, err := s.WebhookSecrets.Of(r.Context(), c.who.Account())
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, map[string]string{"secret": secret})
	return nil
}

type deliveryBody struct {
	// ID is the same in every attempt.
	ID           string  `json:"id"`
	Attempt      int     `json:"attempt"`
	At           *string `json:"at"`
	Status       *int    `json:"status"`
	Error        *string `json:"error"`
	Milliseconds int64   `json:"duration_ms"`
	// NextAttemptAt is nil if there will be no further attempt.
	NextAttemptAt *string `json:"next_attempt_at"`
}

func (s *service) listDeliveries(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.Jobs.Get(r.Context(), c.who.Account(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.checkModel(c.who, j.Model); err != nil {
		return err
	}
	attempts, err := s.WebhookLog.Attempts(r.Context(), j.ID)
	if err != nil {
		return fmt.Errorf("read the log of a webhook: %w", err)
	}
	deliveries := make([]deliveryBody, len(attempts))
	for i, a := range attempts {
		deliveries[i] = deliveryBody{
			ID: webhook.MessageID(j.ID), Attempt: a.Number, At: timestamp(a.At), Milliseconds: a.Duration.Milliseconds(),
			NextAttemptAt: timestamp(a.Next),
		}
		if a.Status != 0 {
			deliveries[i].Status = &a.Status
		}
		if a.Error != "" {
			deliveries[i].Error = &a.Error
		}
	}
	s.writeJSON(w, r, http.StatusOK, map[string]any{"deliveries": deliveries})
	return nil
}
