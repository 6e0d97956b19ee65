// Package responsetest specifies the behavior of [response.Store].
package responsetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/response"
	"cutroom/shared/testkit/conformance"
)

func Run(t *testing.T, store response.Store) {
	ctx, now := conformance.Context(t), conformance.Tomorrow()
	keep := func(account, id string, content []byte) {
		t.Helper()
		conformance.OK(t, store.Keep(ctx, account, id, content, now))
	}
	has := func(account, id string, after time.Duration, want string) {
		t.Helper()
		got, err := store.Find(ctx, account, id, now.Add(after))
		if err != nil || string(got) != want {
			t.Errorf("%s/%s after %v: %.20q, %v, want %.20q", account, id, after, got, err, want)
		}
	}
	keep("acme", "a", []byte("one"))
	keep("acme/a", "b", []byte("two"))
	has("acme", "a", response.Age-time.Millisecond, "one")
	has("acme", "a", response.Age, "")
	has("rival", "a", 0, "")
	has("acme", "a/b", 0, "")
	conformance.OK(t, store.Delete(ctx, "rival", "a"))
	has("acme", "a", 0, "one")
	conformance.OK(t, store.Delete(ctx, "acme", "a"))
	conformance.OK(t, store.Delete(ctx, "acme", "a"))
	has("acme", "a", 0, "")
	// Only the account's own responses count against its limit.
	large := bytes.Repeat([]byte("x"), response.MaxBytes)
	fit := response.AccountBytes / (response.MaxBytes + response.BytesEach)
	for i := range fit + 2 {
		keep("large", fmt.Sprint("r", i), large)
	}
	for i, want := range map[int]string{0: "", fit / 2: string(large), fit + 1: string(large)} {
		has("large", fmt.Sprint("r", i), 0, want)
	}
	has("acme/a", "b", 0, "two")
}
