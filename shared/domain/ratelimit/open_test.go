package ratelimit_test

import (
	"testing"

	"cutroom/shared/domain/ratelimit"
)

func TestOpenCountIsLimited(t *testing.T) {
	var open ratelimit.Open
	enter := func(key string) (func(), bool) {
		return open.Enter(ratelimit.OpenLimit{Name: "all", Most: 4}, ratelimit.OpenLimit{Name: "account", Most: 3},
			ratelimit.OpenLimit{Name: key, Most: 2})
	}
	var leaves []func()
	for i, want := range []struct {
		key string
		ok  bool
	}{{"one", true}, {"one", true}, {"one", false}, {"two", true}, {"two", false}} {
		leave, ok := enter(want.key)
		if ok != want.ok {
			t.Errorf("Enter %d of %s returned %t", i, want.key, ok)
		}
		if ok {
			leaves = append(leaves, leave)
		}
	}
	if _, ok := open.Enter(ratelimit.OpenLimit{Name: "all", Most: 4}); !ok {
		t.Error("a rejected Enter was counted")
	}
	for _, leave := range leaves {
		leave()
	}
	for range 10 {
		leave, ok := enter("one")
		if !ok {
			t.Fatal("a closed entry is still counted")
		}
		leave()
	}
	if _, ok := open.Enter(ratelimit.OpenLimit{Name: "free"}); !ok {
		t.Error("0 was taken as a limit")
	}
}
