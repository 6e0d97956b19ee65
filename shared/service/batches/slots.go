package batches

import (
	"context"
	"errors"
	"time"

	"cutroom/shared/domain/batch"
)

const (
	// maxActive limits the batches worked on at the same time.
	maxActive = 16
	// slice is the time for which an account keeps its only slot if others have none.
	slice = time.Minute
)

var errHandedOver = errors.New("batches: the slot was handed over to another account")

// slots holds the slots of active batches. While accounts wait, each keeps an equal number and
// hands over the rest. A stopped batch continues later.
type slots struct {
	active map[string]*slot
	// served is the value of count when an account received its last slot.
	served map[string]uint64
	count  uint64
}

type slot struct {
	account string
	started time.Time
	// number is the order in which slots were taken.
	number  uint64
	suspect bool
	// handOver ends the work on the batch. leaving means that it was called.
	handOver context.CancelCauseFunc
	leaving  bool
}

func newSlots() *slots { return &slots{active: map[string]*slot{}, served: map[string]uint64{}} }

// held returns each account's kept slots, and the number being handed over.
func (s *slots) held() (held map[string]int, leaving int) {
	held = map[string]int{}
	for _, one := range s.active {
		if one.leaving {
			leaving++
		} else {
			held[one.account]++
		}
	}
	return held, leaving
}

// next returns the next batch. It belongs to the account with the fewest slots. Among equals, it
// belongs to the account that was served longest ago.
func (s *slots) next(open []batch.Batch, held map[string]int, besides map[string]bool) (chosen batch.Batch, ok bool) {
	for _, b := range open {
		if s.active[b.ID] != nil || besides[b.ID] || suspect(b) && s.suspected() {
			continue
		}
		if !ok || held[b.Account] < held[chosen.Account] ||
			held[b.Account] == held[chosen.Account] && s.served[b.Account] < s.served[chosen.Account] {
			chosen, ok = b, true
		}
	}
	return chosen, ok
}

func suspect(b batch.Batch) bool { return attemptsAt(b).Count >= suspectAfter }

func (s *slots) suspected() bool {
	for _, one := range s.active {
		if one.suspect && time.Since(one.started) < suspectFor {
			return true
		}
	}
	return false
}

// take takes a free slot for the next batch. ok is false if either is missing.
func (s *slots) take(open []batch.Batch, handOver context.CancelCauseFunc) (b batch.Batch, ok bool) {
	if len(s.active) >= maxActive {
		return b, false
	}
	held, _ := s.held()
	if b, ok = s.next(open, held, nil); !ok {
		return b, false
	}
	s.count++
	s.served[b.Account] = s.count
	s.active[b.ID] = &slot{
		account: b.Account, started: time.Now(), number: s.count, suspect: suspect(b), handOver: handOver,
	}
	return b, true
}

// rebalance makes accounts hand over slots to accounts with too few.
func (s *slots) rebalance(open []batch.Batch) {
	held, leaving := s.held()
	promised := map[string]bool{}
	for len(s.active) >= maxActive {
		b, ok := s.next(open, held, promised)
		if !ok {
			break
		}
		if leaving--; leaving < 0 {
			from := s.richest(held, held[b.Account])
			if from == nil {
				break
			}
			from.leaving = true
			held[from.account]--
			from.handOver(errHandedOver)
		}
		promised[b.ID] = true
		held[b.Account]++
	}
	s.forget(open)
}

// richest returns the slot to hand over to an account with has slots: the newest slot of the
// account with the most slots, unless that account would keep fewer. If all accounts have one slot,
// an account without a slot gets the oldest slot after slice.
func (s *slots) richest(held map[string]int, has int) (from *slot) {
	for _, one := range s.active {
		switch {
		case one.leaving, held[one.account] <= has:
		case from == nil, held[one.account] > held[from.account]:
			from = one
		case held[one.account] < held[from.account]:
		case held[one.account] == 1 && one.number < from.number, held[one.account] > 1 && one.number > from.number:
			from = one
		}
	}
	if from == nil || held[from.account] > has+1 || has == 0 && time.Since(from.started) >= slice {
		return from
	}
	return nil
}

func (s *slots) forget(open []batch.Batch) {
	left := make(map[string]uint64, len(s.served))
	for _, b := range open {
		if number, ok := s.served[b.Account]; ok {
			left[b.Account] = number
		}
	}
	s.served = left
}
