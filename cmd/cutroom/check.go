package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/cmd/cutroom/command"
	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
)

// checkCommand checks a deploy in AWS, or the account before a deploy.
type checkCommand struct {
	Stage        string            `default:"dev" help:"Stage of the deploy."`
	Context      map[string]string `short:"c" placeholder:"NAME=VALUE" help:"Options of the deploy, as CDK has them; stage, family and catalog are read, and before a deploy what its quotas depend on."`
	Before       bool              `help:"Check only whether the account's quotas suffice for a deploy."`
	Only         []string          `placeholder:"CHECK" help:"Do these checks alone: ${checks}."`
	Receiver     string            `placeholder:"URL" help:"Public URL that answers POST with 2xx, for the delivery of a webhook."`
	UploadSize   int64             `default:"105906176" placeholder:"BYTES" help:"Size of the large upload, in bytes (101 MiB, above which downloads are redirected)."`
	Stream       time.Duration     `default:"3m" help:"How long a stream has to last to be judged."`
	FireAlarm    bool              `help:"Set an alarm off and wait until it is quiet again: those who are told of alarms are told of this one."`
	Local        bool              `help:"The deploy is in a local AWS: leave out what that cannot do, and say so of each."`
	MediaURL     string            `placeholder:"URL" help:"Base URL of the media service, in place of the deploy's."`
	InferenceURL string            `placeholder:"URL" help:"Base URL of the gateway, in place of the deploy's."`
}

// Help is the help text beyond the flags.
func (checkCommand) Help() string {
	return "Calls the deploy with the keys of an account of its own, which it makes with the credentials of a deployer and " +
		"takes away in the end. It ends with exit code 1 where something does not hold (docs/deploy.md)."
}

// stage returns the stage, which the context may name.
func (c *checkCommand) stage() string { return cmp.Or(c.Context["stage"], c.Stage) }

// Run checks the deploy or the account.
func (c *checkCommand) Run(ctx context.Context, s *command.Session) error {
	settings, err := deployer(ctx)
	if err != nil {
		return err
	}
	if c.Before {
		return c.before(ctx, s, settings)
	}
	known, err := c.catalog(s)
	if err != nil {
		return err
	}
	deploy, err := deploycheck.Find(ctx, settings, c.stage())
	if err != nil {
		return err
	}
	deploy.MediaURL = strings.TrimRight(cmp.Or(c.MediaURL, deploy.MediaURL), "/")
	deploy.InferenceURL = strings.TrimRight(cmp.Or(c.InferenceURL, deploy.InferenceURL), "/")
	summary, err := deploycheck.Run(ctx, deploycheck.Config{
		Deploy: deploy, Cloud: deploycheck.NewCloud(settings, deploy),
		Keys: dynamo.NewKeys(dynamo.NewClient(settings), dynamo.TableName(deploy.Stage, "credentials"),
			dynamo.TableName(deploy.Stage, "usage")),
		Catalog: known, Random: rand.Reader, Now: time.Now, Poll: 2 * time.Second,
		Report: func(r deploycheck.Result) error { return reportCheck(s, r) },
		Local:  c.Local, FireAlarm: c.FireAlarm, Receiver: c.Receiver, UploadSize: c.UploadSize, Crowd: crowd,
		StreamTime: c.Stream, Only: c.Only,
	})
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.Print(summary)
	} else {
		_, err = fmt.Fprintf(s.Out, "\n%d held, %d failed, %d were left out; at most $%.2f at list price, as account %s.\n",
			summary.Held, summary.Failed, summary.Skipped, summary.Cost, summary.Account)
	}
	if err == nil && summary.Failed > 0 {
		err = fmt.Errorf("%d of %d checks have failed", summary.Failed, summary.Held+summary.Failed)
	}
	return err
}

// crowd is how many jobs of one account another one's must not wait for.
const crowd = 20

// quotaTime bounds the look at the quotas.
const quotaTime = 30 * time.Second

// before looks at the account's quotas. It fails only where a deploy would hang.
func (c *checkCommand) before(ctx context.Context, s *command.Session, settings aws.Config) error {
	bounded, cancel := context.WithTimeout(ctx, quotaTime)
	defer cancel()
	quotas := deploycheck.Quotas(bounded, settings, c.Context)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	hangs := false
	for _, quota := range quotas {
		hangs = hangs || quota.State == deploycheck.QuotaFatal
		if s.JSON {
			if err := s.Print(quota); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("%-4s  %s: %s", quota.State, quota.Name, quota.Detail)
		if quota.Mend != "" {
			line += "\n      " + strings.ReplaceAll(quota.Mend, "\n", "\n      ")
		}
		if _, err := fmt.Fprintln(s.Out, line); err != nil {
			return err
		}
	}
	if hangs {
		return errors.New("a deploy would hang: raise what has failed first, or skip this look with PREFLIGHT=off")
	}
	return nil
}

// catalog returns the models of the deploy.
func (c *checkCommand) catalog(s *command.Session) (*catalog.Catalog, error) {
	return setting.Catalog(cmp.Or(c.Context["family"], s.Getenv("CUTROOM_FAMILY"), catalog.DefaultFamily),
		cmp.Or(c.Context["catalog"], s.Getenv("CUTROOM_CATALOG")))
}

// reportCheck prints a row of the table.
func reportCheck(s *command.Session, r deploycheck.Result) error {
	if s.JSON {
		return s.Print(r)
	}
	line := fmt.Sprintf("%-7s  %-15s  %6.1f s  %s", r.State, r.Check, r.Seconds, r.Detail)
	if r.State == deploycheck.Failed {
		line += "\n" + strings.Repeat(" ", 36) + "look: " + r.Runbook
		if r.LogGroup != "" {
			line += ", log group " + r.LogGroup
		}
	}
	_, err := fmt.Fprintln(s.Out, line)
	return err
}
