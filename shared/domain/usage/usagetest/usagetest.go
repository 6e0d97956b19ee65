// Package usagetest specifies the behavior of [usage.Store].
package usagetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

// Run calls `open` once per test. That function must register a cleanup that closes its store.
func Run(t *testing.T, open func(t *testing.T) usage.Store) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, Store: open(t), ctx: conformance.Context(t)})
		})
	}
}

type test struct {
	name string
	run  func(s *suite)
}

type suite struct {
	*testing.T
	usage.Store
	ctx  context.Context
	made int
}

const (
	monday    usage.Day = "2026-02-02"
	tuesday   usage.Day = "2026-02-03"
	wednesday usage.Day = "2026-02-04"
)

var call = usage.Counts{Requests: 1, PromptTokens: 100, CachedTokens: 40, CompletionTokens: 20, ReasoningTokens: 7,
	Estimated: 1}

func times(n int64) usage.Counts {
	return usage.Counts{
		Requests: n, PromptTokens: 100 * n, CachedTokens: 40 * n, CompletionTokens: 20 * n, ReasoningTokens: 7 * n,
		Estimated: n,
	}
}

func (s *suite) record(account, model string, day usage.Day) usage.Record {
	s.made++
	return usage.Record{ID: fmt.Sprint("record-", s.made), Account: account, Key: "key_1", Model: model, Day: day,
		Counts: call}
}

func (s *suite) add(records ...usage.Record) {
	s.Helper()
	conformance.OK(s, s.Add(s.ctx, records))
}

func (s *suite) totals(account string, first, last usage.Day, want ...usage.Total) {
	s.Helper()
	got, err := s.Totals(s.ctx, account, first, last, usage.All)
	conformance.OK(s, err)
	if !slices.Equal(got, want) {
		s.Fatalf("the totals of %s from %s to %s are\n%+v, want\n%+v", account, first, last, got, want)
	}
}

var tests = []test{
	{"an account that used nothing has no totals", func(s *suite) {
		s.add(s.record("other", "a", monday))
		s.totals("acme", monday, wednesday)
	}},
	{"all fields of a record are counted", func(s *suite) {
		record := s.record("acme", "a", monday)
		record.Counts = usage.Counts{
			Requests: 1, PromptTokens: 2, CachedTokens: 3, CompletionTokens: 4, ReasoningTokens: 5, Estimated: 6,
			SessionSeconds: 7, Jobs: 8, Cost: 9, JobsCompleted: 10, BatchRequests: 11, BatchCost: 12,
			AudioSeconds: 13, Characters: 14,
		}
		s.add(record)
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: record.Counts})
	}},
	{"records of the same model and day add up", func(s *suite) {
		s.add(s.record("acme", "a", monday), s.record("acme", "a", monday))
		s.add(s.record("acme", "a", monday))
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(3)})
	}},
	{"keys are counted separately, even if one contains another", func(s *suite) {
		one, two, three := s.record("acme", "a", monday), s.record("acme", "a", monday), s.record("acme", "a/key_1", monday)
		one.Key, two.Key, three.Key = "key_2", "key_1/key_2", "key_2"
		s.add(one, two, three)
		s.totals("acme", monday, monday,
			usage.Total{Day: monday, Model: "a", Key: "key_1/key_2", Counts: call},
			usage.Total{Day: monday, Model: "a", Key: "key_2", Counts: call},
			usage.Total{Day: monday, Model: "a/key_1", Key: "key_2", Counts: call})
	}},
	{"the sum of the largest costs does not overflow", func(s *suite) {
		one, two := s.record("acme", "a", monday), s.record("acme", "a", monday)
		one.Counts, two.Counts = usage.Counts{Cost: usage.MaxCost - 1}, usage.Counts{Cost: usage.MaxCost}
		s.add(one)
		s.add(two)
		got, err := s.Totals(s.ctx, "acme", monday, monday, usage.All)
		conformance.OK(s, err)
		if len(got) != 1 || got[0].Cost < usage.MaxCost {
			s.Fatalf("the totals of two costs of a billion are %+v", got)
		}
	}},
	{"totals are grouped by the given columns", func(s *suite) {
		s.add(s.record("acme", "a", monday), s.record("acme", "b", monday), s.record("acme", "a", tuesday))
		for by, want := range map[usage.Columns][]usage.Total{
			0:             {{Counts: times(3)}},
			usage.ByDay:   {{Day: monday, Counts: times(2)}, {Day: tuesday, Counts: times(1)}},
			usage.ByModel: {{Model: "a", Counts: times(2)}, {Model: "b", Counts: times(1)}},
			usage.ByKey:   {{Key: "key_1", Counts: times(3)}},
		} {
			got, err := s.Totals(s.ctx, "acme", monday, tuesday, by)
			conformance.OK(s, err)
			conformance.SameList(s, "the totals", got, want)
		}
	}},
	{"accounts are counted separately, even if one name is a prefix of another", func(s *suite) {
		s.add(s.record("acme", "a", monday), s.record("acme.co", "a", monday), s.record("acme-2", "a", monday))
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(1)})
	}},
	{"totals are sorted by day and model and include both days", func(s *suite) {
		s.add(s.record("acme", "b", wednesday), s.record("acme", "b", monday), s.record("acme", "a/x", tuesday),
			s.record("acme", "a", tuesday), s.record("acme", "a#x", tuesday))
		s.totals("acme", monday, wednesday,
			usage.Total{Day: monday, Model: "b", Key: "key_1", Counts: call},
			usage.Total{Day: tuesday, Model: "a", Key: "key_1", Counts: call},
			usage.Total{Day: tuesday, Model: "a#x", Key: "key_1", Counts: call},
			usage.Total{Day: tuesday, Model: "a/x", Key: "key_1", Counts: call},
			usage.Total{Day: wednesday, Model: "b", Key: "key_1", Counts: call})
		s.totals("acme", tuesday, tuesday,
			usage.Total{Day: tuesday, Model: "a", Key: "key_1", Counts: call},
			usage.Total{Day: tuesday, Model: "a#x", Key: "key_1", Counts: call},
			usage.Total{Day: tuesday, Model: "a/x", Key: "key_1", Counts: call})
		s.totals("acme", "2026-02-05", "2026-12-31")
		s.totals("acme", wednesday, monday)
	}},
	{"adding no records succeeds", func(s *suite) {
		s.add()
		s.totals("acme", monday, monday)
	}},
	{"a record that is added twice counts once", func(s *suite) {
		record := s.record("acme", "a", monday)
		s.add(record)
		s.add(record)
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(1)})
	}},
	{"a repeated record among new ones counts once", func(s *suite) {
		first, second, third := s.record("acme", "a", monday), s.record("acme", "a", monday), s.record("acme", "a", monday)
		s.add(first, second)
		s.add(second, third, first)
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(3)})
	}},
	{"a duplicate record within one call counts once", func(s *suite) {
		record := s.record("acme", "a", monday)
		s.add(record, record)
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(1)})
	}},
	{"every record of a large call counts", func(s *suite) {
		const models, each = 30, 20
		var records []usage.Record
		for i := range models * each {
			records = append(records, s.record("acme", fmt.Sprintf("model-%02d", i%models), monday))
		}
		s.add(records...)
		s.add(records[:each]...)
		var want []usage.Total
		for i := range models {
			want = append(want, usage.Total{Day: monday, Model: fmt.Sprintf("model-%02d", i), Key: "key_1", Counts: times(each)})
		}
		s.totals("acme", monday, monday, want...)
	}},
	{"a record without tokens counts as a request", func(s *suite) {
		record := s.record("acme", "a", monday)
		record.Counts = usage.Counts{Requests: 1}
		s.add(record)
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: usage.Counts{Requests: 1}})
	}},
	{"concurrent records count exactly once", func(s *suite) {
		const racers = 12
		shared := s.record("acme", "a", monday)
		own := make([]usage.Record, racers)
		for i := range own {
			own[i] = s.record("acme", "a", monday)
		}
		for _, err := range conformance.Race(racers, func(racer int) error {
			return s.Add(s.ctx, []usage.Record{own[racer], shared})
		}) {
			conformance.OK(s, err)
		}
		s.totals("acme", monday, monday, usage.Total{Day: monday, Model: "a", Key: "key_1", Counts: times(racers + 1)})
	}},
}
