package fakeaws

import (
	"cmp"
	"slices"
	"strings"
)

// The capacity of a DynamoDB partition per second (DynamoDB Developer Guide, "Quotas").
const (
	PartitionWrites = 1000
	PartitionReads  = 3000
)

type partition struct{ table, key string }

type load struct {
	reads, writes float64
	// transactions is the number of transactions that wrote to the partition's busiest item.
	transactions int
}

// Heat describes the busiest second among partitions of one kind.
type Heat struct {
	// Table is the partition's table. For a partition of an index, a slash and the index's name follow.
	Table string
	// Kind is the common prefix of these partitions' keys. Key is the busiest partition's key.
	Kind, Key string
	// Reads and Writes are the most units used in one second.
	Reads, Writes float64
	// Transactions is the highest number of transactions that wrote to one item in the same second.
	Transactions int
}

// Utilization returns the fraction of a partition's capacity that was used in the busiest second.
func (h Heat) Utilization() float64 { return max(h.Reads/PartitionReads, h.Writes/PartitionWrites) }

type Total struct {
	Reads, Writes float64
	// MostReads and MostWrites are the most units used in one second.
	MostReads, MostWrites float64
	// Throttled counts attempts that exceeded the capacity. Conflicts counts attempts that
	// conflicted with a transaction on one of their items.
	Throttled, Conflicts int
}

type meter struct {
	// present is the current second. seconds holds data for the current and later seconds, because attempts may be
	// ahead of the clock. now is the second of the current attempt.
	present int64
	seconds map[int64]*second
	now     *second
	heat    map[partition]*Heat
	total   map[string]*Total
	limited bool
}

type second struct {
	loads  map[partition]*load
	items  map[partition]int
	tables map[string]*load
}

func newMeter() *meter {
	m := &meter{}
	m.reset()
	return m
}

func (m *meter) reset() {
	m.seconds, m.heat, m.total = map[int64]*second{}, map[partition]*Heat{}, map[string]*Total{}
	m.at(m.present, m.present)
}

// at selects the second of an attempt, and closes all seconds before the present one. It reports whether the present
// second is new.
func (m *meter) at(present, attempt int64) (changed bool) {
	if present != m.present {
		m.present, changed = present, true
		for at := range m.seconds {
			if at < present {
				m.closeOne(at)
			}
		}
	}
	m.now = m.seconds[attempt]
	if m.now == nil {
		m.now = &second{map[partition]*load{}, map[partition]int{}, map[string]*load{}}
		m.seconds[attempt] = m.now
	}
	return changed
}

func (m *meter) close() {
	for at := range m.seconds {
		m.closeOne(at)
	}
	m.at(m.present, m.present)
}

func (m *meter) closeOne(at int64) {
	for p, l := range m.seconds[at].loads {
		kind := partition{p.table, kindOf(p.key)}
		h := entry(m.heat, kind)
		h.Table, h.Kind = p.table, kind.key
		busier := max(l.reads/PartitionReads, l.writes/PartitionWrites)
		if s := h.Utilization(); busier > s || busier == s && (h.Key == "" || p.key < h.Key) {
			h.Key = p.key
		}
		h.Reads, h.Writes = max(h.Reads, l.reads), max(h.Writes, l.writes)
		h.Transactions = max(h.Transactions, l.transactions)
	}
	for name, l := range m.seconds[at].tables {
		t := m.of(name)
		t.MostReads, t.MostWrites = max(t.MostReads, l.reads), max(t.MostWrites, l.writes)
	}
	delete(m.seconds, at)
}

func (m *meter) of(table string) *Total { return entry(m.total, table) }

// fits reports whether a partition has capacity in this second. Like DynamoDB, it accepts a call
// that exceeds the remaining capacity if any capacity remains.
func (m *meter) fits(p partition) bool {
	l := m.now.loads[p]
	return !m.limited || l == nil || l.reads < PartitionReads && l.writes < PartitionWrites
}

func (m *meter) read(p partition, units float64) {
	entry(m.now.loads, p).reads += units
	entry(m.now.tables, p.table).reads += units
	m.of(p.table).Reads += units
}

func (m *meter) write(p partition, units float64) {
	entry(m.now.loads, p).writes += units
	entry(m.now.tables, p.table).writes += units
	m.of(p.table).Writes += units
}

func (m *meter) transaction(p partition, sort string) {
	id := partition{p.table + "\x00" + p.key, sort}
	m.now.items[id]++
	l := entry(m.now.loads, p)
	l.transactions = max(l.transactions, m.now.items[id])
}

// entry returns the value for a key. If the key is missing, entry adds it.
func entry[K comparable, V any](of map[K]*V, key K) *V {
	v := of[key]
	if v == nil {
		v = new(V)
		of[key] = v
	}
	return v
}

func (m *meter) hottest() []Heat {
	m.close()
	var all []Heat
	for _, h := range m.heat {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b Heat) int {
		return cmp.Or(cmp.Compare(b.Utilization(), a.Utilization()), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// kindOf returns the prefix that partition keys with the same purpose have in common: everything
// before the first '#', '/' or '_'. For a key that is just an account's name, it returns "".
func kindOf(key string) string {
	if i := strings.IndexAny(key, "#/_"); i >= 0 {
		return key[:i+1]
	}
	return ""
}
