package main

import (
	"fmt"
	"math"
	"text/tabwriter"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/app/awscost"
)

// mostUse bounds what a month is asked about.
const mostUse = 1e13

// costCommand says what a month in AWS costs.
type costCommand struct {
	Jobs        float64 `placeholder:"N" help:"Video jobs a month, such as 1e5."`
	Seconds     float64 `default:"30" help:"How long a worker takes for a job, in seconds."`
	Polls       float64 `default:"10" help:"How often a client reads the status of a job."`
	InputMB     float64 `name:"input-mb" default:"5" help:"Size of a job's inputs, in MB."`
	ResultMB    float64 `name:"result-mb" default:"5" help:"Size of a result, in MB."`
	Completions float64 `placeholder:"N" help:"Chat completions a month, such as 1e6."`
	Wait        float64 `default:"2" help:"How long a model server takes for a completion, in seconds."`
	WorkerHour  float64 `placeholder:"DOLLARS" help:"Price of an hour of a worker of your own kind, such as one with a GPU; without it, of the preview worker."`
	Realtime    bool    `help:"The deploy has realtime=true."`
}

// Help is the help text beyond the flags.
func (costCommand) Help() string {
	return "Adds up a month in AWS by part, from counted calls and list prices of " + awscost.AsOf + " in " + awscost.Region +
		", in US dollars. docs/cost.md says what is counted, what is assumed, and what is left out."
}

// use returns what the flags ask about.
func (c *costCommand) use() (awscost.Use, error) {
	for _, flag := range []struct {
		name  string
		value float64
	}{
		{"jobs", c.Jobs}, {"seconds", c.Seconds}, {"polls", c.Polls}, {"input-mb", c.InputMB}, {"result-mb", c.ResultMB},
		{"completions", c.Completions}, {"wait", c.Wait}, {"worker-hour", c.WorkerHour},
	} {
		if math.IsNaN(flag.value) || flag.value < 0 || flag.value > mostUse {
			return awscost.Use{}, fmt.Errorf("--%s: %g is not a number from 0 to %g", flag.name, flag.value, mostUse)
		}
	}
	return awscost.Use{
		Jobs: c.Jobs, Seconds: c.Seconds, Polls: c.Polls, InputMB: c.InputMB, ResultMB: c.ResultMB,
		Completions: c.Completions, WaitSeconds: c.Wait, WorkerHour: c.WorkerHour, Realtime: c.Realtime,
	}, nil
}

// Run prints the sum.
func (c *costCommand) Run(out *command.Session) error {
	use, err := c.use()
	if err != nil {
		return err
	}
	counts, err := awscost.Kept()
	if err != nil {
		return err
	}
	sum := counts.Month(use)
	if out.JSON {
		return out.Print(sum)
	}
	table := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, dollars float64) { fmt.Fprintf(table, "%s\t%s\t\n", awscost.Sums(dollars), name) }
	for _, part := range sum.Parts {
		line(part.Name, part.Dollars)
	}
	line("all", sum.Total)
	line("beyond what is free in every month", sum.AboveFree)
	if err := table.Flush(); err != nil {
		return err
	}
	if use.Jobs > 0 {
		fmt.Fprintf(out.Out, "Workers run for %s hours: %s at once, on average.\n",
			awscost.Amount(sum.WorkerHours), awscost.Amount(sum.WorkersAtOnce))
	}
	return nil
}
