package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"cutroom/functions"
	"cutroom/shared/testkit/lambdatest"
)

const (
	startRounds = 25
	// startBar is the maximum startup time of a function, as a multiple of the startup time of the program with three
	// AWS clients and the proxy adapter. sizeBar is the maximum size of a function's program, in bytes.
	startBar = 1.1
	sizeBar  = 14_000_000
)

// The programs that the functions are compared with.
const (
	helloFunction   = "cutroom/bench/functions/hello"
	clientsFunction = "cutroom/bench/functions/clients"
)

// startSettings returns settings with which every function starts: a dummy name for each resource.
// Functions do not use resources before the first event.
func startSettings() []string {
	resource := regexp.MustCompile(`_(ARN|BUCKET|CLUSTER|FUNCTION|MACHINE|QUEUE|SERVICE|TABLE)$`)
	var settings []string
	for _, f := range functions.All() {
		for _, variable := range f.Variables {
			if resource.MatchString(variable) {
				settings = append(settings, variable+"=bench")
			}
		}
	}
	slices.Sort(settings)
	return slices.Compact(settings)
}

type started struct {
	name  string
	took  []time.Duration
	rss   []int64
	bytes int64
}

// start starts every function repeatedly, alternating with the comparison programs, and measures
// the time from the start of the process to its first poll.
func (b *bench) start(ctx context.Context) error {
	folders, err := filepath.Glob(filepath.Join("functions", "*", "main.go"))
	if err != nil {
		return err
	}
	packages := []string{helloFunction, clientsFunction}
	for _, main := range folders {
		packages = append(packages, "cutroom/"+filepath.ToSlash(filepath.Dir(main)))
	}
	if err := lambdatest.Build(ctx, b.folder, packages...); err != nil {
		return err
	}
	all := make([]started, len(packages))
	for i, pkg := range packages {
		all[i].name = filepath.Base(pkg)
		info, err := os.Stat(filepath.Join(b.folder, all[i].name))
		if err != nil {
			return err
		}
		all[i].bytes = info.Size()
	}
	settings := startSettings()
	for range startRounds {
		for i := range all {
			if err := b.startOnce(ctx, &all[i], settings); err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	}
	hello, clients := all[0], all[1]
	floor := median(clients.took)
	b.table.add(row{what: "function start: hello", measured: hello.text(), floor: "-", ratio: "-", bar: "-",
		verdict: noBar})
	b.table.add(row{what: "  three AWS clients and the adapter", measured: clients.text(),
		floor: short(median(hello.took)) + " hello",
		ratio: ratio(floor, median(hello.took)), bar: "-", verdict: noBar})
	for _, s := range all[2:] {
		b.table.add(row{
			what: "  " + s.name, measured: s.text(), floor: short(floor) + " three clients", ratio: ratio(median(s.took), floor),
			bar:     fmt.Sprintf("%.1f x, %d MB", startBar, sizeBar/1_000_000),
			verdict: verdictOf(float64(median(s.took)) <= startBar*float64(floor) && s.bytes <= sizeBar),
		})
	}
	return nil
}

func (b *bench) startOnce(ctx context.Context, s *started, settings []string) error {
	f, err := lambdatest.Start(ctx, lambdatest.Program(filepath.Join(b.folder, s.name)), settings...)
	if err != nil {
		return err
	}
	defer f.Kill()
	rss, err := memory(f.PID(), "VmRSS")
	if err != nil {
		return err
	}
	s.took, s.rss = append(s.took, f.StartTime()), append(s.rss, rss)
	return nil
}

func (s started) text() string {
	return fmt.Sprintf("%s, %.1f MiB resident, %.1f MB program",
		short(median(s.took)), float64(slices.Sorted(slices.Values(s.rss))[len(s.rss)/2])/(1<<20), float64(s.bytes)/1e6)
}
