package main_test

import (
	"fmt"
	"net/http"
	"testing"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// A client with a valid key is not delayed, even if it shares an address with a guesser.
func TestKeyGuessesAreDelayed(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	server := start(t, data, "CUTROOM_TRUSTED_PROXIES=127.0.0.1")
	fresh := newKey(t, data, nil, "--account", "acme")
	const guesser, other = "198.51.100.1", "198.51.100.2"
	as := func(key, address string) int {
		t.Helper()
		client := &servertest.Client{URL: server.URL(), Key: key}
		answer, err := client.Get(ctx, "/v1/realtime/quota", "X-Forwarded-For", address)
		if err != nil {
			t.Error(err)
		}
		if answer.Status == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Error("429 has no Retry-After")
		}
		return answer.Status
	}
	for i := range 12 {
		if status := as(fmt.Sprintf("ck_guess_number_%d", i), guesser); status != 401 {
			t.Fatalf("guess %d: status %d, want 401", i, status)
		}
	}
	// Send more simultaneous guesses than the server lets wait.
	statuses := make(chan int, 60)
	for i := range cap(statuses) {
		go func() { statuses <- as(fmt.Sprintf("ck_another_guess_%d", i), guesser) }()
	}
	seen := map[int]int{}
	for i := range cap(statuses) {
		status := await.Receive(t, "statuses", statuses)
		if seen[status]++; status == 429 && seen[status] == 1 || i == cap(statuses)-1 {
			// A new valid key is accepted even while the maximum number of checks is waiting.
			if status := as(fresh, guesser); status != 200 {
				t.Errorf("a new key from the address of guesses: status %d", status)
			}
		}
	}
	if seen[401] < 8 || seen[429] == 0 || seen[401]+seen[429] != 60 {
		t.Errorf("the guesses got %v", seen)
	}
	for _, address := range []string{guesser, other} {
		for _, key := range []string{servertest.Key, fresh} {
			if status := as(key, address); status != 200 {
				t.Errorf("a valid key from %s: status %d", address, status)
			}
		}
	}
	if status := as("ck_guess_of_another", other); status != 401 {
		t.Errorf("another address: status %d", status)
	}
}
