// Command cutroom is Cutroom on one machine, and its tools: `cutroom dev` serves
// the whole service from one process and one folder, `cutroom keys` manages the
// permanent keys of accounts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commandLine is what can be asked for.
type commandLine struct {
	Dev  devCommand  `cmd:"" help:"Serve everything from this machine."`
	Keys keysCommand `cmd:"" help:"Manage the permanent keys of accounts."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the second one ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, errHelp) {
			fmt.Fprintln(os.Stderr, "cutroom:", err)
			os.Exit(1)
		}
	}
}

// errHelp means that help was asked for and shown.
var errHelp = errors.New("help was shown")

// run parses the arguments and runs the command until it is done or the context
// ends.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	var line commandLine
	helped := false
	parser, err := kong.New(&line,
		kong.Name("cutroom"),
		kong.Description("A media editing API of your own."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(arguments)
	if helped {
		return errHelp
	}
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(&streams{stdout, stderr})
	return command.Run()
}

// streams is where a command writes.
type streams struct{ stdout, stderr io.Writer }
