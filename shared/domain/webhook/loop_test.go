package webhook_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/sqlitetest"
)

func decode(t *testing.T, secret string) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("the secret %s: %v", secret, err)
	}
	return key
}

// receivers simulates quick and slow receivers. A slow receiver accepts its first message late, and leaves all others
// hanging until its context, life, ends.
type receivers struct {
	life  context.Context
	taken chan string

	mu sync.Mutex
	// holding counts the hanging messages per receiver.
	holding map[string]int
	most    int
}

func (h *receivers) Send(_ context.Context, url string, m webhook.Message) (webhook.Response, error) {
	if !strings.Contains(url, "slow") {
		h.taken <- m.ID
		return webhook.Response{Status: 200}, nil
	}
	h.mu.Lock()
	_, late := h.holding[url]
	if h.holding[url]++; !late {
		h.holding[url] = 0
		h.mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		return webhook.Response{Status: 200}, nil
	}
	h.most = max(h.most, h.holding[url])
	h.mu.Unlock()
	<-h.life.Done()
	return webhook.Response{}, webhook.NoResponse("The receiver took too long.")
}

// Hanging receivers do not delay other accounts or the shutdown.
func TestSlowReceiversDelayOnlyTheirAccount(t *testing.T) {
	t.Parallel()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	const many = 40
	end := func(account string, number int) {
		t.Helper()
		j := job.Job{
			ID: fmt.Sprintf("job_%s%d", account, number), Account: account, Key: "key", Model: "gen-2.5", Lane: job.VideoLane,
			Status:  job.Pending,
			Webhook: "https://example.com/" + account, CreatedAt: time.Now(), Deadline: time.Now().Add(job.MaxAge),
		}
		if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
			t.Fatal(err)
		}
		if err := db.Jobs().Fail(t.Context(), j.ID, "", job.TimeoutFailure(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		end("slow", i)
		end(fmt.Sprint("slow", i), 1)
		end(fmt.Sprint("slow", i), 2)
	}
	ctx, stop := context.WithTimeout(t.Context(), await.Max)
	defer stop()
	sender := &receivers{life: ctx, taken: make(chan string, 2*many), holding: map[string]int{}}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	loop := &webhook.Loop{Queue: db.Webhooks(), Now: time.Now, Logger: logger, Deliverer: &webhook.Deliverer{
		Events: webhook.Events{Jobs: db.Jobs(), JobBody: func(job.Job) ([]byte, error) { return nil, nil }},
		Store:  db.Webhooks(), Sender: sender, Secrets: webhook.NewSecrets([]byte("secret")),
		Now: time.Now, Random: func() float64 { return 0 }, Logger: logger,
	}}
	ended := make(chan struct{})
	go func() {
		loop.Run(ctx)
		close(ended)
	}()
	await.Becomes(t, "slow receivers", many+1, func() int {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		return len(sender.holding)
	})
	for i := range many {
		end("quick", i)
	}
	seen := map[string]bool{}
	for range many {
		select {
		case id := <-sender.taken:
			if seen[id] {
				t.Errorf("%s was sent twice", id)
			}
			seen[id] = true
		case <-ctx.Done():
			t.Fatalf("only %d messages were sent", len(seen))
		}
	}
	stop()
	<-ended
	if len(sender.taken) != 0 || sender.most == 0 || sender.most > 4 {
		t.Errorf("%d more messages were sent, and %d concurrently to the slow account", len(sender.taken), sender.most)
	}
}
