package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/testkit/sqlitetest"
)

// This example is from the specification.
func TestSignatureMatchesStandardWebhooks(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := webhook.Sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestEachAccountHasItsOwnSecret(t *testing.T) {
	secrets := map[string]bool{}
	for _, service := range []string{"one secret", "another secret"} {
		for _, account := range []string{"acme", "rival"} {
			secret, err := webhook.NewSecrets([]byte(service)).Of(t.Context(), account)
			again, _ := webhook.NewSecrets([]byte(service)).Of(t.Context(), account)
			if err != nil || secret != again || !strings.HasPrefix(secret, "whsec_") || secrets[secret] {
				t.Errorf("the secret of %s is %s, then %s: %v", account, secret, again, err)
			}
			secrets[secret] = true
		}
	}
	broken := webhook.NewSecretsFrom(func(context.Context) ([]byte, error) { return nil, errors.New("gone") })
	if _, err := broken.Of(t.Context(), "acme"); err == nil {
		t.Error("a secret was derived without the service's secret")
	}
}

type receiver struct {
	answers func(number int) (webhook.Response, error)
	got     []webhook.Message
}

func (r *receiver) Send(_ context.Context, _ string, m webhook.Message) (webhook.Response, error) {
	r.got = append(r.got, m)
	return r.answers(len(r.got))
}

// world is a deliverer with a real database and a clock that the test advances.
type world struct {
	*testing.T
	*webhook.Deliverer
	receiver *receiver
	db       *sqlite.DB
	now      time.Time
	begun    time.Time
}

func newWorld(t *testing.T, answers func(number int) (webhook.Response, error)) *world {
	w := &world{T: t, receiver: &receiver{answers: answers}, now: time.Now().UTC().Truncate(time.Millisecond)}
	w.begun = w.now
	clock := func() time.Time { return w.now }
	w.db = sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: clock})
	w.Deliverer = &webhook.Deliverer{
		Events: webhook.Events{
			Jobs: w.db.Jobs(), JobBody: func(j job.Job) ([]byte, error) { return []byte(j.ID + " " + string(j.Status)), nil },
		},
		Store: w.db.Webhooks(), Sender: w.receiver, Secrets: webhook.NewSecrets([]byte("secret")),
		Now: clock, Random: func() float64 { return 0 }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	return w
}

func (w *world) ended() job.Job {
	w.Helper()
	return w.endedWith(nil)
}

func (w *world) endedWith(options map[string]any) job.Job {
	w.Helper()
	j := job.Job{
		Request: job.Request{Options: options},
		ID:      "job_1", Account: "acme", Key: "key", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		Webhook: "https://example.com/hook", CreatedAt: w.now, Deadline: w.now.Add(job.MaxAge),
	}
	if err := w.db.Jobs().Accept(w.Context(), j, 0); err != nil {
		w.Fatal(err)
	}
	if err := w.db.Jobs().Fail(w.Context(), j.ID, "", job.TimeoutFailure(), w.now); err != nil {
		w.Fatal(err)
	}
	return j
}

func (w *world) run() (at []time.Duration) {
	w.Helper()
	scheduled, follows := webhook.First("job_1", "acme", w.now), true
	for follows {
		w.now = scheduled.At
		at = append(at, w.now.Sub(w.begun))
		var err error
		if scheduled, follows, err = w.Deliver(w.Context(), scheduled); err != nil {
			w.Fatal(err)
		}
		if len(at) > webhook.MaxAttempts {
			w.Fatalf("attempts at %v", at)
		}
	}
	if due, err := w.db.Webhooks().Due(w.Context(), w.now.Add(24*time.Hour), 1, 1); err != nil || len(due) != 0 {
		w.Errorf("after the last attempt: due %v, %v", due, err)
	}
	return at
}

func status(code int) func(int) (webhook.Response, error) {
	return func(int) (webhook.Response, error) { return webhook.Response{Status: code}, nil }
}

func TestAttemptsFollowSchedule(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	all := []time.Duration{0, 5 * s, 35 * s, 2*m + 35*s, 12*m + 35*s, h + 12*m + 35*s, 7*h + 12*m + 35*s}
	for _, c := range []struct {
		name    string
		answers func(number int) (webhook.Response, error)
		at      []time.Duration
		last    string
	}{
		{"delivered immediately", status(204), all[:1], ""},
		{"never", status(500), all, "The receiver responded with status 500."},
		{"not wanted", status(404), all, "The receiver responded with status 404."},
		{"redirected", status(307), all, "The receiver responded with a redirect (status 307). Redirects are not followed."},
		{"no response", func(int) (webhook.Response, error) {
			return webhook.Response{}, webhook.NoResponse("The receiver took too long.")
		}, all, "The receiver took too long."},
		{"gone", status(410), all[:1], "The receiver responded with status 410, so the message is not sent again."},
		{"delivered at the third attempt", func(number int) (webhook.Response, error) {
			return webhook.Response{Status: map[bool]int{true: 200, false: 503}[number == 3]}, nil
		}, all[:3], ""},
		{"asked for a longer wait, within the next step", func(number int) (webhook.Response, error) {
			return webhook.Response{Status: map[bool]int{true: 200, false: 429}[number == 3], RetryAfter: 20 * s}, nil
		}, []time.Duration{0, 20 * s, 50 * s}, ""},
		{"asked for a longer wait than the next step", func(number int) (webhook.Response, error) {
			return webhook.Response{Status: map[bool]int{true: 200, false: 429}[number == 3], RetryAfter: 100 * h}, nil
		}, []time.Duration{0, 30 * s, 2*m + 30*s}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.answers)
			w.ended()
			if at := w.run(); fmt.Sprint(at) != fmt.Sprint(c.at) {
				t.Errorf("attempts at %v, want %v", at, c.at)
			}
			made, err := w.db.Webhooks().Attempts(t.Context(), "job_1")
			if err != nil || len(made) != len(c.at) {
				t.Fatalf("recorded attempts: %+v, %v", made, err)
			}
			for i, a := range made {
				if last := i == len(made)-1; last != a.Next.IsZero() || !last && !made[i+1].At.Equal(a.Next) || a.Number != i+1 {
					t.Errorf("attempt %d is %+v", i+1, a)
				}
			}
			if last := made[len(made)-1]; last.Error != c.last {
				t.Errorf("the last attempt failed with %q, want %q", last.Error, c.last)
			}
		})
	}
}

// All attempts have the same id and body. Each has a new time and signature.
func TestRetriesSendTheSameMessage(t *testing.T) {
	w := newWorld(t, status(500))
	j := w.ended()
	w.run()
	secret, err := w.Secrets.Of(t.Context(), j.Account)
	if err != nil {
		t.Fatal(err)
	}
	key := decode(t, secret)
	signatures := map[string]bool{}
	for i, m := range w.receiver.got {
		if m.ID != "msg_1" || string(m.Body) != "job_1 failed" || m.Signature != webhook.Sign(key, m.ID, m.At, m.Body) ||
			signatures[m.Signature] {
			t.Errorf("attempt %d is %+v", i+1, m)
		}
		signatures[m.Signature] = true
	}
}

func TestMessageForUnwantedEventIsNotSent(t *testing.T) {
	w := newWorld(t, status(204))
	j := w.endedWith(map[string]any{job.WebhookEvents: "completed"})
	if _, follows, err := w.Deliver(t.Context(), webhook.First(j.ID, "acme", w.now)); follows || err != nil {
		t.Errorf("another attempt follows: %v, %v", follows, err)
	}
	if len(w.receiver.got) > 0 {
		t.Errorf("sent %+v", w.receiver.got)
	}
}

func TestRetryDelaysHaveJitter(t *testing.T) {
	w := newWorld(t, status(500))
	w.Random = func() float64 { return 0.999 }
	w.ended()
	if at := w.run(); at[1] <= 5900*time.Millisecond || at[1] > 6*time.Second {
		t.Errorf("the second attempt is made after %v", at[1])
	}
}

func TestObsoleteAttemptsAreSkipped(t *testing.T) {
	w := newWorld(t, status(500))
	deliver := func(scheduled webhook.ScheduledAttempt, sent int) {
		t.Helper()
		next, follows, err := w.Deliver(t.Context(), scheduled)
		if err != nil || follows != (sent > 0) || len(w.receiver.got) != sent {
			t.Errorf("%+v led to %+v, %t, %v and %d messages", scheduled, next, follows, err, len(w.receiver.got))
		}
		w.receiver.got = nil
	}
	deliver(webhook.First("job_1", "acme", w.now), 0)
	j := w.ended()
	deliver(webhook.ScheduledAttempt{Event: j.ID, Number: 2}, 0)
	deliver(webhook.First(j.ID, "acme", w.now), 1)
	deliver(webhook.First(j.ID, "acme", w.now), 0)
	// A caller that does not know whether the next attempt was scheduled can find out.
	want := webhook.ScheduledAttempt{Event: j.ID, Account: "acme", Number: 2, At: w.now.Add(5 * time.Second)}
	if next, follows, err := w.Follow(t.Context(), webhook.First(j.ID, "acme", w.now)); err != nil || !follows ||
		next != want {
		t.Errorf("after the first attempt: %+v, %t, %v", next, follows, err)
	}
	if next, follows, err := w.Follow(t.Context(), want); err != nil || follows {
		t.Errorf("after an attempt that was not made: %+v, %v", next, err)
	}
	if err := w.db.Jobs().Forget(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	deliver(webhook.ScheduledAttempt{Event: j.ID, Number: 2}, 0)
}

func TestInterruptedAttemptIsRepeated(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := newWorld(t, func(int) (webhook.Response, error) {
		stop()
		return webhook.Response{}, webhook.NoResponse("The connection broke.")
	})
	j := w.ended()
	if _, follows, err := w.Deliver(ctx, webhook.First(j.ID, "acme", w.now)); !errors.Is(err, context.Canceled) ||
		follows {
		t.Errorf("the attempt returned %t, %v", follows, err)
	}
	w.receiver.answers = status(200)
	if at := w.run(); len(at) != 1 || len(w.receiver.got) != 2 {
		t.Errorf("attempts at %v", at)
	}
}
