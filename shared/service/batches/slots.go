package batches

import (
	"context"
	"errors"
	"time"

	"cutroom/shared/domain/batch"
)

const (
	// maxActive is the maximum number of batches in progress.
	maxActive = 16
	// slice is how long an account keeps its only slot while another account waits for its first slot.
	slice = time.Minute
)

var errHandedOver = errors.New("batches: the slot was handed over to another account")

// slots tracks the slots of active batches. While other accounts wait, an account keeps only its
// equal share and hands over the rest. A batch that loses its slot resumes later.
type slots struct {
	active map[string]*slot
	// served holds the value of count when each account last received a slot.
	served map[string]uint64
	count  uint64
}

type slot struct {
	account string
	started time.Time
	// number is the value of count when the slot was taken, so older slots have lower numbers.
	number  uint64
	suspect bool
	// handOver stops work on the batch. leaving means that handOver has been called.
	handOver context.CancelCauseFunc
	leaving  bool
}

func newSlots() *slots { return &slots{active: map[string]*slot{}, served: map[string]uint64{}} }

// held returns how many slots each account keeps, and how many are being handed over.
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

// next returns a batch of the account with the fewest slots. Ties go to the account that was served longest ago.
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

// take assigns a free slot to the next batch. ok is false if no slot is free or no batch is open.
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

// richest returns the slot to hand over to an account that has the given number of slots. This is the newest slot of
// the account with the most slots, unless that account would then have fewer than the recipient. If every account has
// one slot, an account without a slot gets the oldest slot, if that slot is older than slice.
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
