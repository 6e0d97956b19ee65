package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cutroom/cmd/cutroom/command"
)

// doctorCommand checks this machine. It has the same flags as dev, so it checks the same settings.
type doctorCommand struct {
	Server devCommand `embed:""`
	Repair bool       `help:"Repair the data folder of a stopped server: accept the existing database and list files without a record."`
}

func (doctorCommand) Help() string {
	return "It uses the settings of \"cutroom dev\". Without --repair it changes nothing. It exits with code 1 if " +
		"a check fails."
}

// The states of a finding. A warning concerns something that only some users need.
const (
	fine    = "ok"
	warning = "warn"
	failing = "fail"
)

type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"`
}

const checkTime = 10 * time.Second

type examination struct {
	settings   *devCommand
	invocation *command.Invocation
}

type check func(context.Context, examination) []finding

var checks = []check{
	checkFFmpeg, checkLiveVideo, checkSigning, checkData, checkRecords, checkAddresses, checkEngine, checkUpstreams,
	checkServer,
}

func (c *doctorCommand) Run(ctx context.Context, s *command.Invocation) error {
	if c.Repair {
		return c.repairWith(ctx, s)
	}
	failures, all := 0, 0
	for _, check := range checks {
		bounded, cancel := context.WithTimeout(ctx, checkTime)
		findings := check(bounded, examination{&c.Server, s})
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, found := range findings {
			all++
			if found.State == failing {
				failures++
			}
			if err := c.print(s, found); err != nil {
				return err
			}
		}
	}
	if failures > 0 {
		return fmt.Errorf("%d of %d checks failed", failures, all)
	}
	return nil
}

func (c *doctorCommand) print(s *command.Invocation, found finding) error {
	if s.JSON {
		return s.Print(found)
	}
	const indent = "\n                  "
	line := fmt.Sprintf("%-4s  %-10s  %s", found.State, found.Check, strings.ReplaceAll(found.Detail, "\n", indent))
	if found.Mend != "" {
		line += indent + found.Mend
	}
	_, err := fmt.Fprintln(s.Out, strings.TrimRight(line, " "))
	return err
}
