// Command bench measures the cost of the service, each figure beside a floor
// measured in the same run: the same work on this machine without the service. It
// prints one table with the project's bars and whether each is met; it does not
// fail if one is not.
//
// Run it in the repository's folder: `go run ./bench`, or with the names of some
// sections: upload, overhead, edits, worker, image, burst, outlook, list, auth, gateway, budgets,
// affinity, realtime, codec, video, signing, start, cost. One more, grown, runs only by its
// name: it fills a database of 10 GiB. It needs Linux, because a process's memory is
// read from /proc, the programs ffmpeg, curl, tee, md5sum, nginx and chromium, for cost
// the tools of the tests, and 3 GiB of room for temporary files.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cutroom/shared/platform/signals"
	"cutroom/shared/testkit/servertest"
)

// bench is what the sections share.
type bench struct {
	program servertest.Program
	// folder is for temporary files; clip is the path of the sample clip.
	folder, clip string
	table        *table
}

// section is a part of a run.
type section struct {
	name string
	run  func(*bench, context.Context) error
	// byName is true for a section that runs only if it is named.
	byName bool
}

// sections are all sections in their order.
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
	{name: "affinity", run: (*bench).affinity},
	{name: "realtime", run: (*bench).realtime},
	{name: "codec", run: (*bench).codec},
	{name: "video", run: (*bench).video},
	{name: "signing", run: (*bench).signing},
	{name: "start", run: (*bench).start},
	{name: "cost", run: (*bench).cost},
	{name: "grown", run: (*bench).grown, byName: true},
}

// serve starts a server on a folder of its own; stop kills it and removes the
// folder.
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
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("there is no section %q", name)
		}
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
	for _, section := range sections {
		named := slices.Contains(names, section.name)
		if !named && (section.byName || len(names) > 0) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ...\n", section.name)
		if err := section.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
	}
	return b.table.print(os.Stdout)
}
