// Package lossytest simulates a bad network: packets are dropped, duplicated, delayed or reordered.
// [Relay] sits between a client and a server. [Conn] wraps the socket of either side. A seed
// determines what happens to each packet.
package lossytest

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// overtaken is the additional delay of a packet that arrives out of order.
const overtaken = 25 * time.Millisecond

// Faults describes the faults in one direction. The zero value means no faults.
type Faults struct {
	// Drop is the fraction of packets, from 0 to 1, that are lost. Duplicate is the fraction that arrive twice.
	// Reorder is the fraction that later packets overtake.
	Drop, Duplicate, Reorder float64
	// Every packet is delayed by Delay plus a random fraction of Jitter.
	Delay, Jitter time.Duration
	Block         bool
}

// Count counts what happened to the packets in one direction. A duplicated packet counts once in Passed.
type Count struct{ Passed, Dropped, Duplicated, Reordered int64 }

type way struct {
	mu      sync.Mutex
	random  *rand.Rand
	faults  Faults
	count   Count
	late    latecomers
	number  int64
	timer   *time.Timer
	closed  bool
	sending sync.Mutex
}

func newWay(seed, stream uint64) *way {
	return &way{random: rand.New(rand.NewPCG(seed, stream))}
}

func (w *way) set(f Faults) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = f
}

func (w *way) counted() Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *way) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.late = true, nil
	if w.timer != nil {
		w.timer.Stop()
	}
}

// carry delivers a packet once or twice, now or later, or not at all.
func (w *way) carry(packet []byte, to func([]byte)) {
	for range w.pass(packet, to) {
		w.sending.Lock()
		to(packet)
		w.sending.Unlock()
	}
}

// pass returns how many copies of a packet to forward now, and keeps the copies that are due later. It draws the same
// number of random values for every packet, so that the faults of the next packet do not depend on this packet.
func (w *way) pass(packet []byte, to func([]byte)) (now int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.faults
	drop, twice, overtakes := w.random.Float64() < f.Drop, w.random.Float64() < f.Duplicate, w.random.Float64() < f.Reorder
	delay := f.Delay + time.Duration(w.random.Float64()*float64(f.Jitter))
	if w.closed || f.Block || drop {
		w.count.Dropped++
		return 0
	}
	w.count.Passed++
	if overtakes {
		w.count.Reordered++
		delay += overtaken
	}
	times := 1
	if twice {
		w.count.Duplicated++
		times = 2
	}
	if delay == 0 {
		return times
	}
	for range times {
		w.keep(packet, delay, to)
	}
	return 0
}

// keep stores a packet until it is due. The caller must hold the lock.
func (w *way) keep(packet []byte, delay time.Duration, to func([]byte)) {
	w.number++
	due := time.Now().Add(delay)
	heap.Push(&w.late, latecomer{append([]byte(nil), packet...), due, w.number, to})
	if w.late[0].number == w.number {
		w.wait()
	}
}

// wait sets the timer for the next due packet. The caller must hold the lock.
func (w *way) wait() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(time.Until(w.late[0].due), w.deliver)
}

// deliver forwards the packets that are due, in order.
func (w *way) deliver() {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.mu.Lock()
	var due []latecomer
	for len(w.late) > 0 && !w.late[0].due.After(time.Now()) {
		due = append(due, heap.Pop(&w.late).(latecomer))
	}
	if len(w.late) > 0 {
		w.wait()
	}
	w.mu.Unlock()
	for _, one := range due {
		one.to(one.packet)
	}
}

type latecomer struct {
	packet []byte
	due    time.Time
	// number orders packets that are due at the same time.
	number int64
	to     func([]byte)
}

// latecomers is a heap of delayed packets, ordered by due time.
type latecomers []latecomer

func (l latecomers) Len() int { return len(l) }
func (l latecomers) Less(i, j int) bool {
	if l[i].due.Equal(l[j].due) {
		return l[i].number < l[j].number
	}
	return l[i].due.Before(l[j].due)
}
func (l latecomers) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *latecomers) Push(one any) { *l = append(*l, one.(latecomer)) }
func (l *latecomers) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
