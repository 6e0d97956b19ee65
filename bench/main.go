// Command bench measures the service's overhead. Each figure has a floor measured in the same run:
// the same work on this machine without the service. It prints one table with the project's bars
// and whether each is met. A missed bar is not an error. If a section fails, the others are still
// measured: the table has all measurements, the errors follow it, and the exit status is 1.
//
// Run it in the repository's folder: `go run ./bench`, or with section names: upload, overhead, edits, worker,
// image, burst, outlook, list, auth, gateway, budgets, realtime, codec, video, signing, start. The section grown
// runs only when named: it fills a database of 10 GiB. The command needs Linux (it reads a process's memory from
// /proc), the programs ffmpeg, curl, tee, md5sum, nginx and chromium, and 3 GiB of disk for temporary files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"cutroom/shared/platform/signals"
	"cutroom/shared/testkit/servertest"
)

type bench struct {
	program servertest.Program
	// folder is for temporary files; clip is the path of the sample clip.
	folder, clip string
	table        *table
}

type section struct {
	name string
	run  func(*bench, context.Context) error
	// byName marks a section that runs only when named.
	byName bool
}

var sections = []section{
	{name: "upload", run: (*bench).upload},
	{name: "overhead", run: (*bench).overhead},
	{name: "edits", run: (*bench).edits},
	{name: "worker", run: (*bench).worker},
	{name: "image", run: (*bench).image},
	{name: "burst", run: (*bench).burst},
	{name: "outlook", run: (*bench).outlook},
	{name: "list", run: (*bench).list},
	{name: "auth", run: (*bench).auth},
	{name: "gateway", run: (*bench).gateway},
	{name: "budgets", run: (*bench).budgets},
	{name: "realtime", run: (*bench).realtime},
	{name: "codec", run: (*bench).codec},
	{name: "video", run: (*bench).video},
	{name: "signing", run: (*bench).signing},
	{name: "start", run: (*bench).start},
	{name: "grown", run: (*bench).grown, byName: true},
}

// serve starts a server on a new folder. The returned function stop kills the server and removes the folder.
func (b *bench) serve(ctx context.Context, name string,
	settings ...string) (server *servertest.Server, stop func(), err error) {
	data := filepath.Join(b.folder, name)
	if server, err = b.program.Start(ctx, data, settings...); err != nil {
		os.RemoveAll(data)
		return nil, nil, err
	}
	return server, func() {
		server.Kill()
		os.RemoveAll(data)
	}, nil
}

func main() {
	ctx, stop := signals.Context()
	var err error
	if args := os.Args[1:]; len(args) == 2 && args[0] == relayCommand {
		err = relay(args[1])
	} else {
		err = run(ctx, args)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench failed:\n%v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	clip, err := filepath.Abs(filepath.Join("testdata", "clip.mp4"))
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "cutroom-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program, err := servertest.Build(ctx, folder)
	if err != nil {
		return err
	}
	b := &bench{program: program, folder: folder, clip: clip, table: &table{}}
	return b.measure(ctx, chosen, os.Stdout, os.Stderr)
}

// choose returns the named sections in the order of the table. Without names, it returns all sections except those
// that run only when named.
func choose(names []string) ([]section, error) {
	for _, name := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return nil, fmt.Errorf("unknown section %q", name)
		}
	}
	var chosen []section
	for _, s := range sections {
		if slices.Contains(names, s.name) || len(names) == 0 && !s.byName {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// measure runs the sections and prints the table of their measurements, even if sections fail. It writes each
// section's name to the writer progress when the section starts. Once ctx is done, it starts no more sections.
//
// Errors: the sections' errors, each with its section's name; errors from writing the table.
func (b *bench) measure(ctx context.Context, chosen []section, out, progress io.Writer) error {
	var failed []error
	for _, s := range chosen {
		if ctx.Err() != nil {
			failed = append(failed, fmt.Errorf("%s: not run: %w", s.name, context.Cause(ctx)))
			continue
		}
		fmt.Fprintf(progress, "%s ...\n", s.name)
		if err := s.run(b, ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return errors.Join(b.table.print(out), errors.Join(failed...))
}
