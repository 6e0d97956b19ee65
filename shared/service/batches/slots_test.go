package batches

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/batch"
)

func open(batches int, accounts ...string) (all []batch.Batch) {
	for _, account := range accounts {
		for n := range batches {
			all = append(all, batch.Batch{ID: fmt.Sprint(account, n), Account: account, Status: batch.InProgress})
		}
	}
	return all
}

// poll acts like a runner: it fills the slots and ends batches that were handed over.
func (s *slots) poll(all []batch.Batch) map[string]int {
	for range 3 {
		for {
			_, handOver := context.WithCancelCause(context.Background())
			if _, ok := s.take(all, handOver); !ok {
				break
			}
		}
		s.rebalance(all)
		for id, one := range s.active {
			if one.leaving {
				delete(s.active, id)
			}
		}
	}
	held, _ := s.held()
	return held
}

// If there are more accounts than slots, accounts take turns.
func TestSlotsAreSharedEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots()
		if held := s.poll(open(20, "a")); held["a"] != maxActive {
			t.Errorf("one account: %v", held)
		}
		all := open(20, "a", "b", "c", "d")
		s.poll(all)
		if held := s.poll(all); held["a"] != 4 || held["b"] != 4 || held["c"] != 4 || held["d"] != 4 {
			t.Errorf("four accounts: %v", held)
		}
		all = append(open(20, "a", "b", "c", "d"), open(1, "e")...)
		s.poll(all)
		if held := s.poll(all); held["e"] != 1 {
			t.Errorf("one more: %v", held)
		}
		var many []string
		for n := range 20 {
			many = append(many, fmt.Sprintf("m%02d", n))
		}
		s, all = newSlots(), open(3, many...)
		seen := map[string]bool{}
		for range 3 {
			for account, n := range s.poll(all) {
				if seen[account] = true; n != 1 {
					t.Errorf("%s has %d slots", account, n)
				}
			}
			time.Sleep(slice)
		}
		if len(seen) != len(many) {
			t.Errorf("%d of %d accounts had a slot", len(seen), len(many))
		}
	})
}

// A suspect batch is one that may have crashed the process.
func TestSuspectBatchesRunSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(1, "a", "b", "c")
		for i := range 2 {
			all[i].Attempts = batch.Attempts{Status: batch.InProgress, Count: suspectAfter}
		}
		s := newSlots()
		if held := s.poll(all); held["a"] != 1 || held["b"] != 0 || held["c"] != 1 {
			t.Errorf("at first: %v", held)
		}
		time.Sleep(suspectFor)
		if held := s.poll(all); held["b"] != 1 {
			t.Errorf("later: %v", held)
		}
	})
}
