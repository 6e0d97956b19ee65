// Command restore brings a stage's records back from the tables' backups, under the names that its stacks expect.
// docs/runbook.md shows its use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/platform/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "restore:", err)
		os.Exit(1)
	}
}

type restorer struct {
	client *dynamodb.Client
	stage  string
	at     time.Time
	// overwrite replaces records that the stage's table has too.
	overwrite bool
	// protect protects a table that is created, as the option protect=true of the deployment does.
	protect bool
	out     io.Writer
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	r := restorer{out: out}
	flags := flag.NewFlagSet("restore [flags] tables", flag.ContinueOnError)
	flags.StringVar(&r.stage, "stage", "dev", "the deployment's stage")
	flags.BoolVar(&r.overwrite, "overwrite", false, "also replace records that were changed since then")
	flags.BoolVar(&r.protect, "protect", false, "protect deleted tables that are created again, as in a stage with protect=true; always in prod")
	flags.Func("at", "the time to restore, such as 2026-11-29T10:00:00Z", func(text string) (err error) {
		r.at, err = time.Parse(time.RFC3339, text)
		return err
	})
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var tables []dynamo.Table
	var known []string
	for _, table := range dynamo.Tables() {
		known = append(known, table.Name)
		if slices.Contains(flags.Args(), table.Name) {
			tables = append(tables, table)
		}
	}
	if r.at.IsZero() || len(tables) == 0 || len(tables) != flags.NArg() {
		return fmt.Errorf("-at is required, and one or more of the tables %s", strings.Join(known, ", "))
	}
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	r.client = dynamo.NewClient(settings)
	for _, table := range tables {
		if err := r.table(ctx, table); err != nil {
			return fmt.Errorf("restore the table %s: %w", table.Name, err)
		}
	}
	return nil
}

// table restores a table. DynamoDB restores only into new tables. So it copies the records from there into the stage's
// table, whose TTL, stream and tags remain. If that table is missing, it is created from its last backup.
func (r *restorer) table(ctx context.Context, table dynamo.Table) error {
	live := dynamo.TableName(r.stage, table.Name)
	var missing *types.ResourceNotFoundException
	if _, err := r.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &live}); errors.As(err, &missing) {
		return r.create(ctx, table, live)
	}
	restored := live + "-" + r.at.UTC().Format("20060102T150405Z")
	_, err := r.client.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: &live, TargetTableName: &restored, RestoreDateTime: &r.at,
	})
	var begun *types.TableAlreadyExistsException // by an earlier, interrupted run
	if err != nil && !errors.As(err, &begun) {
		return err
	}
	if err := r.await(ctx, restored); err != nil {
		return err
	}
	n, err := r.each(ctx, restored, func(item map[string]types.AttributeValue) (bool, error) {
		put := &dynamodb.PutItemInput{TableName: &live, Item: item}
		if !r.overwrite {
			put.ConditionExpression = aws.String("attribute_not_exists(#key)")
			put.ExpressionAttributeNames = map[string]string{"#key": table.PartitionKey}
		}
		_, err := r.client.PutItem(ctx, put)
		var exists *types.ConditionalCheckFailedException
		if errors.As(err, &exists) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: wrote %d records.\n", live, n)
	_, err = r.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &restored})
	return err
}

// each calls a function for each record of a table, many at a time. It counts the calls that return true.
func (r *restorer) each(ctx context.Context, table string, do func(map[string]types.AttributeValue) (bool, error)) (int64, error) {
	const atOnce = 32
	var n atomic.Int64
	pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n.Load(), err
		}
		var group errgroup.Group
		group.SetLimit(atOnce)
		for _, item := range page.Items {
			group.Go(func() error {
				did, err := do(item)
				if did {
					n.Add(1)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return n.Load(), err
		}
	}
	return n.Load(), nil
}

func (r *restorer) await(ctx context.Context, table string) error {
	fmt.Fprintf(r.out, "Waiting for %s. AWS usually takes 20 minutes or more.\n", table)
	for {
		got, err := r.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil || got.Table.TableStatus == types.TableStatusActive {
			return err
		}
		if !clock.Wait(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// create restores a deleted table from the newest backup. DynamoDB makes a backup when it deletes a table, and restores
// neither TTL nor stream, tags and settings.
func (r *restorer) create(ctx context.Context, table dynamo.Table, name string) error {
	backups, err := r.client.ListBackups(ctx, &dynamodb.ListBackupsInput{TableName: &name, BackupType: types.BackupTypeFilterAll, TimeRangeUpperBound: &r.at})
	if err != nil {
		return err
	}
	if len(backups.BackupSummaries) == 0 {
		return fmt.Errorf("%s does not exist and has no backup from before %s", name, r.at)
	}
	newest := slices.MaxFunc(backups.BackupSummaries, func(a, b types.BackupSummary) int {
		return a.BackupCreationDateTime.Compare(*b.BackupCreationDateTime)
	})
	made, err := r.client.RestoreTableFromBackup(ctx,
		&dynamodb.RestoreTableFromBackupInput{BackupArn: newest.BackupArn, TargetTableName: &name})
	if err != nil {
		return err
	}
	if err := r.await(ctx, name); err != nil {
		return err
	}
	update := &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(r.protect || r.stage == "prod")}
	if table.StreamsNewImages || table.StreamsOldImages {
		update.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
		if table.StreamsOldImages {
			update.StreamSpecification.StreamViewType = types.StreamViewTypeOldImage
		}
	}
	if _, err := r.client.UpdateTable(ctx, update); err != nil {
		return err
	}
	if err := r.await(ctx, name); err != nil {
		return err
	}
	_, ttl := r.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &table.TTL, Enabled: aws.Bool(true)}})
	_, backup := r.client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{TableName: &name,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)}})
	_, tags := r.client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: made.TableDescription.TableArn, Tags: []types.Tag{
		{Key: aws.String("service"), Value: aws.String("cutroom")}, {Key: aws.String("stage"), Value: &r.stage}}})
	if err := errors.Join(ttl, backup, tags); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: created from the backup of %s. Now deploy with another tag, such as -c tags=restored=%d: CloudFormation then\n"+
		"reads the address of the table's new stream.\n", name, newest.BackupCreationDateTime, time.Now().Unix())
	return nil
}
