package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"cutroom/cmd/cutroom/command"
	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/app/records"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/durable"
	"cutroom/shared/service/backup"
	"cutroom/shared/service/move"
)

// moveCommand moves what this machine keeps to a deploy in AWS.
type moveCommand struct {
	dataFlag
	tiersFlag
	ToStage string `required:"" placeholder:"STAGE" help:"Stage of the deploy."`
	Ahead   bool   `help:"Only copy the bytes of files and results, while the server goes on, so that the move itself is short."`
	DryRun  bool   `help:"Only say what would be moved."`
	Check   bool   `help:"Read all bytes at the deploy again and compare them; after a move, do nothing else."`
}

// Help is the help text beyond the flags.
func (moveCommand) Help() string {
	return "Moves keys, budgets, files, usage and jobs, those that have not ended included, with the server stopped. " +
		"What is broken off is run again and goes on. The data folder stays as it is, and is not served any more " +
		"(docs/deploy.md)."
}

// Run moves, or says what would be moved.
func (c *moveCommand) Run(ctx context.Context, out *command.Session) error {
	if err := checkNotLost(ctx, c.dataFlag); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if !c.Ahead && !c.DryRun {
		lock, err := lockFolder(c.Data)
		if err != nil {
			return fmt.Errorf("a move is for a server that is stopped, except with --ahead and --dry-run: %w", err)
		}
		defer lock.release()
	}
	mover, err := c.mover(ctx)
	if err != nil {
		return err
	}
	if c.Ahead {
		source, err := c.source(ctx)
		if err != nil {
			return err
		}
		copied, err := mover.CopyBlobs(ctx, source)
		if err != nil {
			return err
		}
		return c.tell(out, fmt.Sprintf("Copied %d blobs that were not there.", copied), move.Counts{Copied: copied})
	}
	removeLeftWork(c.Data)
	return c.withSnapshot(ctx, func(r *records.Records) error {
		mover.Records = r.All
		return c.move(ctx, out, mover)
	})
}

// source returns the id of the database that the bytes belong to, which they usually know.
func (c *moveCommand) source(ctx context.Context) (id string, err error) {
	mark, err := diskblob.ReadMark(c.blobFolder())
	if err != nil || mark.Database != "" {
		return mark.Database, err
	}
	err = c.withSnapshot(ctx, func(r *records.Records) (err error) {
		id, err = r.All.ID(ctx)
		return err
	})
	return id, err
}

// move moves, counts or checks.
func (c *moveCommand) move(ctx context.Context, out *command.Session, mover move.Mover) error {
	if err := c.checkTiers(ctx, mover); err != nil {
		return err
	}
	counts, state, err := mover.Count(ctx)
	switch {
	case err != nil:
		return err
	case c.DryRun && state == move.Done:
		return c.tell(out, "Everything was moved.", counts)
	case c.DryRun:
		return c.tell(out, "To be moved: "+listCounts(counts)+".", counts)
	case c.Check && state == move.Done:
		if err := mover.Check(ctx); err != nil {
			return fmt.Errorf("since the move, or by it: %w", err)
		}
		return c.tell(out, "The deploy has what was moved: "+listCounts(counts)+".", counts)
	}
	if counts, err = mover.Move(ctx); err != nil {
		return fmt.Errorf("the move is not complete; run it again to go on: %w", err)
	}
	return c.tell(out, "Moved and compared: "+listCounts(counts)+".", counts)
}

// checkTiers fails if a key has a tier that the deploy has not, as far as its table is known.
func (c *moveCommand) checkTiers(ctx context.Context, mover move.Mover) error {
	tiers, err := c.table()
	if err != nil {
		return err
	}
	for key, err := range mover.Records.Keys(ctx) {
		if err != nil {
			return err
		}
		if _, known := tiers[key.Tier]; !known && key.RevokedAt.IsZero() && key.Tier != credential.DevTier {
			return fmt.Errorf("the key %s has the tier %q, which is not in the table of tiers: deploy that, and name it "+
				"by --tiers", key.ID, key.Tier)
		}
	}
	return nil
}

// mover returns what moves to the deploy, without the records.
func (c *moveCommand) mover(ctx context.Context) (move.Mover, error) {
	settings, err := deployer(ctx)
	if err != nil {
		return move.Mover{}, err
	}
	deploy, err := deploycheck.Find(ctx, settings, c.ToStage)
	if err != nil {
		return move.Mover{}, err
	}
	if deploy.Bucket == "" || deploy.StateMachine == "" {
		return move.Mover{}, fmt.Errorf("the stack of the stage %q does not say where its bucket and state machine are",
			c.ToStage)
	}
	blobs, err := diskblob.NewView(c.blobFolder())
	if err != nil {
		return move.Mover{}, err
	}
	machine, err := boottime.Open()
	if err != nil {
		return move.Mover{}, err
	}
	client := dynamo.NewClient(settings)
	name := func(table string) string { return dynamo.TableName(c.ToStage, table) }
	queues := map[job.Lane]string{job.VideoLane: deploy.VideoQueue, job.ImageLane: deploy.ImageQueue}
	return move.Mover{
		Blobs: blobs, Store: s3blob.New(settings, deploy.Bucket), Digests: c.Check, Now: time.Now,
		Target: dynamo.NewMoved(client, name, dynamo.NewBudgets(client, name("usage"), machine, rand.Text),
			stepfn.NewMachine(settings, deploy.StateMachine, queues), time.Now),
		Close: func() error {
			return durable.Write(movedFile(c.Data), strings.NewReader(c.ToStage+" in "+settings.Region), nil)
		},
		Closed: func() (bool, error) {
			_, err := os.Stat(movedFile(c.Data))
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return err == nil, err
		},
	}, nil
}

// withSnapshot opens a copy of the records, of the newest schema, for the length of a call.
// The data folder stays as it is.
func (c *moveCommand) withSnapshot(ctx context.Context, use func(*records.Records) error) (err error) {
	database, err := c.database()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(c.Data, backup.WorkPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	taken := filepath.Join(work, "snapshot")
	if err := database.Snapshot(ctx, taken); err != nil {
		return err
	}
	copied, err := records.Find(c.Records, work)
	if err != nil {
		return err
	}
	snapshot, err := os.Open(taken)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if err := copied.Place(ctx, snapshot); err != nil {
		return err
	}
	opened, err := copied.Open(ctx, records.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer opened.Close()
	return use(opened)
}

func (c *moveCommand) tell(out *command.Session, text string, counts move.Counts) error {
	if out.JSON {
		return out.Print(counts)
	}
	fmt.Fprintln(out.Out, text)
	return nil
}

// listCounts says what is moved.
func listCounts(n move.Counts) string {
	return fmt.Sprintf("%d accounts with %d keys, %d budgets, %d files, %d rows of usage, %d jobs that ended and %d "+
		"that had not, and %d blobs (%s)", n.Accounts, n.Keys, n.Budgets, n.Files, n.Usage, n.Ended, n.Open, n.Blobs,
		humanize.Bytes(uint64(n.Bytes)))
}

// movedName is the file in a data folder whose keys and jobs are, or are being made,
// elsewhere. It says where.
const movedName = "moved"

func movedFile(data string) string { return filepath.Join(data, movedName) }

// checkNotMoved fails if what a data folder keeps was moved: its jobs would have two owners.
func checkNotMoved(data string) error {
	to, err := os.ReadFile(movedFile(data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("what %s keeps was moved to the stage %s; to serve it here all the same, with jobs that may have "+
		"run there, delete the file %s", data, to, movedFile(data))
}
