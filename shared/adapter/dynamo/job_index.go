package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/job"
)

// jobsByAccount is the index of an account's jobs in the order of their ids. Only the
// record of a job has the attribute account, so the index has nothing else. It includes
// status and model for filters: a list of one status would otherwise read every record. As a
// start leaves the attribute status (jobRecord.OpenStatus), a job writes the index twice.
//
// A partition in the order of time is not split by DynamoDB, and ends at a thousand writes a
// second. So an account that may have many open jobs is spread over indexPartitions: the
// first is that of every account, and of all jobs of earlier versions; the others have a name
// that no account has, and their records say whose they are in another attribute. An item
// says from when on an account is spread. That is spreadDelay after the first job with such a
// limit, or without one while largeFrom are open, because earlier versions do not understand these records, and who lists jobs looks
// for the item only once in spreadLook. It stays when the limit is lowered.
const jobsByAccount = "jobs-by-account"

const (
	// indexPartitions is over how many partitions of the index a spread account is.
	indexPartitions = 8
	// spreadSets is how many sets of open jobs the limit of an account has that is spread: it
	// is then above 500. A job is open for some seconds, so with less there are not enough of
	// them to fill a partition.
	spreadSets = 3
	// unitEntries is how many entries of the index a query reads for the least that it costs.
	unitEntries = 25
	// spreadPart is the part of the item that says from when on an account is spread.
	spreadPart = "index"
)

// jobIndex says which accounts are spread over partitions of the index.
type jobIndex struct {
	*spreads
	// sets and unit are spreadSets and unitEntries.
	sets int
	unit int
}

func newJobIndex(client *dynamodb.Client, table string, now func() time.Time) *jobIndex {
	return &jobIndex{spreads: newSpreads(client, table, now, spreadKey), sets: spreadSets, unit: unitEntries}
}

// indexPartition names a partition of an account in the index.
func indexPartition(account string, n uint32) string {
	if n == 0 {
		return account
	}
	// No account has the character in its name.
	return fmt.Sprintf("%s#%d", account, n)
}

func spreadKey(account string) item { return jobKey("account#"+account, spreadPart) }

// isFor reports whether an account with such a limit, or one without that has many open jobs,
// is to be spread.
func (x *jobIndex) isFor(limit openLimit) bool { return limit.sets >= x.sets && !limit.quiet }

// partitionOf returns the partition of a new job. Where it cannot be told whether the account is
// spread, that is the first, which is always listed.
func (x *jobIndex) partitionOf(ctx context.Context, j job.Job, limit openLimit) string {
	if !x.isFor(limit) || !x.isSpread(ctx, j.Account) {
		return j.Account
	}
	return indexPartition(j.Account, hashOf(j.ID)%indexPartitions)
}

// SpreadJobs makes the jobs of an account that are accepted from a time on be in all
// partitions of the index, if its limit of open jobs is high, or it has none and many are open.
// Accept does it by itself, for an hour later; who knows an account to be large can do it before.
//
// Errors: fault.Unavailable.
func (s *Jobs) SpreadJobs(ctx context.Context, account string, from time.Time) error {
	_, err := s.index.spread(ctx, account, from)
	return storeError("spread the jobs of an account", err)
}

// entries reads about so many entries of the index, below the id after, the highest id first;
// more reports whether the index continues.
func (s *Jobs) entries(ctx context.Context, account, after string, size int) (entries []job.Job, more bool, err error) {
	from, err := s.index.spreadFrom(ctx, account)
	if err != nil {
		return nil, false, err
	}
	if from.IsZero() {
		return s.index.page(ctx, account, after, size)
	}
	pages := make([]indexPage, indexPartitions)
	reading, within := errgroup.WithContext(ctx)
	for n := range pages {
		reading.Go(func() (err error) {
			// Twice the part of each, because they differ.
			pages[n].entries, pages[n].more, err = s.index.page(
				within, indexPartition(account, uint32(n)), after, max(s.index.unit, 2*size/indexPartitions))
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, false, err
	}
	entries, more = merged(pages)
	return entries, more, nil
}

// indexPage is a page of a partition of the index; more says that the partition continues.
type indexPage struct {
	entries []job.Job
	more    bool
}

// merged returns the entries of pages, one of each partition, in the order of their ids: those
// that are not below the end of a page whose partition continues, because others of it belong
// before them.
func merged(pages []indexPage) (entries []job.Job, more bool) {
	least := ""
	for _, page := range pages {
		entries = append(entries, page.entries...)
		if page.more {
			more, least = true, max(least, page.entries[len(page.entries)-1].ID)
		}
	}
	slices.SortFunc(entries, func(a, b job.Job) int { return cmp.Compare(b.ID, a.ID) })
	return slices.DeleteFunc(entries, func(entry job.Job) bool { return entry.ID < least }), more
}

// page reads a page of a partition of the index, below the id after. A page that goes on has
// at least one entry.
func (x *jobIndex) page(ctx context.Context, partition, after string, size int) (entries []job.Job, more bool, err error) {
	condition, values := "#account = :partition", item{":partition": text(partition)}
	names := named("account")
	if after != "" {
		condition += " AND #id < :after"
		names["#id"], values[":after"] = "id", text(after)
	}
	got, err := x.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &x.table, IndexName: aws.String(jobsByAccount), ScanIndexForward: aws.Bool(false),
		Limit:                  aws.Int32(int32(min(size, longestPage))),
		KeyConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if err != nil {
		return nil, false, err
	}
	for _, entry := range got.Items {
		r := reader{item: entry}
		entries = append(entries, job.Job{ID: r.text("id"), Status: job.Status(r.text("status")), Model: r.text("model")})
		if r.err != nil {
			return nil, false, r.err
		}
	}
	return entries, got.LastEvaluatedKey != nil && len(entries) > 0, nil
}
