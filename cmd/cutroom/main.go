// Command cutroom runs Cutroom on one machine and contains its tools: `cutroom dev` serves everything from one
// process and one folder, `cutroom keys` manages the permanent keys of accounts, `cutroom doctor` checks the
// machine and its settings, and the other commands use a running server, here or elsewhere.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"runtime/debug"
	"slices"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/platform/signals"
	_ "cutroom/shared/platform/ulimit" // its init may exit before main runs
)

type commandLine struct {
	command.Flags
	Version kong.VersionFlag  `help:"Print the version."`
	Man     mangokong.ManFlag `hidden:"" help:"Print the manual page."`
	command.Commands
	Dev        devCommand         `cmd:"" group:"Server" help:"Serve everything from this machine."`
	Keys       keysCommand        `cmd:"" group:"Server" help:"Manage the permanent keys of accounts."`
	Budgets    budgetsCommand     `cmd:"" aliases:"budget" group:"Server" help:"Manage the daily and monthly budgets of accounts and keys."`
	Doctor     doctorCommand      `cmd:"" group:"Server" help:"Check this machine and the settings, and explain how to fix problems."`
	Backup     backupCommand      `cmd:"" group:"Server" help:"Back up the data folder to a folder or a bucket, even while the server runs."`
	Restore    restoreCommand     `cmd:"" group:"Server" help:"Restore a data folder from a backup."`
	Health     healthCommand      `cmd:"" group:"Server" help:"Check that the server is healthy; for health checks of containers."`
	Completion command.Completion `cmd:"" group:"Server" help:"Print a completion script for a shell."`
}

func main() {
	// net/http logs unexpected bytes from a server here, and they may contain a user's completion.
	log.SetOutput(io.Discard)
	ctx, stop := signals.Context()
	invocation := &command.Invocation{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version()}
	err := run(ctx, os.Args[1:], invocation)
	stop()
	if err != nil && !errors.Is(err, errHelp) {
		os.Exit(invocation.Report(err))
	}
}

// built is the version, set by the linker for builds outside the repository, such as images.
var built string

func version() string {
	if built != "" {
		return built
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return "devel"
}

func newParser(line *commandLine, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(line, append(options, kong.Vars{
		"family": catalog.DefaultFamily, "route_groups": routeGroups(),
	})...)
}

var errHelp = errors.New("help was shown")

func run(ctx context.Context, arguments []string, invocation *command.Invocation) error {
	var line commandLine
	helped := false
	parser, err := newParser(&line,
		kong.Name("cutroom"),
		kong.Description("Your own media editing API and inference gateway."),
		kong.Vars{"version": "cutroom " + invocation.Version},
		kong.Writers(invocation.Out, invocation.Err),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return err
	}
	if invocation.Complete(parser) {
		return nil
	}
	switch {
	case len(arguments) == 0:
		arguments = []string{"--help"}
	case arguments[0] == "help":
		arguments = append(slices.Clone(arguments[1:]), "--help")
	case arguments[0] == "version":
		arguments[0] = "--version"
	}
	// Set JSON before parsing, so that parsing errors are also JSON.
	invocation.JSON = slices.Contains(arguments, "--json")
	parsed, err := parser.Parse(arguments)
	if helped {
		return errHelp
	}
	if err != nil {
		return err
	}
	invocation.Flags = line.Flags
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(invocation)
	return parsed.Run()
}
