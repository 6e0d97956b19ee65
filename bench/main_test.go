package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func measured(name string, err error) section {
	return section{name: name, run: func(b *bench, _ context.Context) error {
		b.table.add(row{what: "row of " + name, verdict: noBar})
		return err
	}}
}

// The error names the failed section.
func TestFailedSectionKeepsEarlierResults(t *testing.T) {
	broken := errors.New("the server does not respond")
	var out, progress strings.Builder
	b := &bench{table: &table{}}
	err := b.measure(t.Context(),
		[]section{measured("first", nil), measured("second", broken), measured("third", nil)}, &out, &progress)
	if !errors.Is(err, broken) || err.Error() != "second: the server does not respond" {
		t.Errorf("error %q, want only the second section's", err)
	}
	for _, name := range []string{"first", "second", "third"} {
		if !strings.Contains(out.String(), "row of "+name) {
			t.Errorf("the table lacks the row of the %s section:\n%s", name, &out)
		}
		if !strings.Contains(progress.String(), name+" ...") {
			t.Errorf("the %s section was not named when it began: %q", name, &progress)
		}
	}
}

// After an interrupt, no section starts, but earlier measurements are still printed.
func TestInterruptKeepsTheTable(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	first := section{name: "first", run: func(b *bench, ctx context.Context) error {
		interrupt()
		return measured("first", ctx.Err()).run(b, ctx)
	}}
	var out, progress strings.Builder
	b := &bench{table: &table{}}
	err := b.measure(ctx, []section{first, measured("second", nil)}, &out, &progress)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "second: not run") {
		t.Errorf("error %q, want that the second section was not run", err)
	}
	if !strings.Contains(out.String(), "row of first") || strings.Contains(out.String(), "row of second") {
		t.Errorf("the table is\n%s\nwant only the row of the first section", &out)
	}
}

func TestSectionsAreChosenByName(t *testing.T) {
	names := func(all []section) string {
		var names []string
		for _, s := range all {
			names = append(names, s.name)
		}
		return strings.Join(names, " ")
	}
	if _, err := choose([]string{"list", "nothing"}); err == nil {
		t.Error("an unknown section was accepted")
	}
	if chosen, err := choose([]string{"grown", "upload"}); err != nil || names(chosen) != "upload grown" {
		t.Errorf("chosen by name: %q, %v", names(chosen), err)
	}
	all, err := choose(nil)
	if err != nil || len(all) != len(sections)-1 || strings.Contains(names(all), "grown") {
		t.Errorf("chosen without names: %q, %v; want all but grown", names(all), err)
	}
}
