package dynamo

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/move"
)

// Moved is a move.Target: the tables of a deploy, as records of another installation are
// written to them. Each write is on the condition that nothing is there.
type Moved struct {
	client *dynamodb.Client
	// ledger is the table that has the ledger, which is that of credentials.
	ledger   string
	keys     *Keys
	budgets  *Budgets
	files    *Files
	usage    *Usage
	jobs     *Jobs
	webhooks *Webhooks
	now      func() time.Time
}

var _ move.Target = (*Moved)(nil)

// NewMoved returns the tables of a deploy, whose names are those of the schema's tables
// there. The dispatcher takes the jobs that have not ended, and budgets are those of the
// deploy.
func NewMoved(
	client *dynamodb.Client, name func(table string) string, budgets *Budgets, dispatcher Dispatcher, now func() time.Time,
) *Moved {
	credentials, usage, jobs := name("credentials"), name("usage"), name("jobs")
	return &Moved{
		client: client, ledger: credentials, keys: NewKeys(client, credentials, usage), budgets: budgets,
		files: NewFiles(client, name("files")), usage: NewUsage(client, usage),
		// The jobs were counted in the usage when they were accepted at first.
		jobs:     NewJobs(NewRuns(client, jobs).HoldIn(budgets), dispatcher, nil, now),
		webhooks: NewWebhooks(client, jobs), now: now,
	}
}

// ledgerPrefix and the id of a source are the id of a move's item. It has no account, so
// that no list of keys has it.
const ledgerPrefix = "move#"

// Ledger returns the state of the move from a source.
func (m *Moved) Ledger(ctx context.Context, source string) (move.State, error) {
	found, err := m.keys.get(ctx, ledgerPrefix+source)
	if err != nil {
		return move.None, storeError("read the ledger", err)
	}
	r := reader{item: found}
	if found == nil {
		return move.None, nil
	}
	return move.State(r.text("state")), r.err
}

// SetLedger changes the state of the move from a source.
func (m *Moved) SetLedger(ctx context.Context, source string, state move.State) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := m.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &m.ledger, Item: item{
		"id": text(ledgerPrefix + source), "state": text(string(state)), "changed_at": number(m.now().UnixMilli()),
	}})
	return storeError("write the ledger", err)
}

// Holds says what the deploy holds of an account.
func (m *Moved) Holds(ctx context.Context, account string) (string, error) {
	for _, held := range []struct {
		what, table, index, key string
		// partitions are over how many an account may be spread.
		partitions uint32
		partition  func(account string, n uint32) string
	}{
		{"keys", m.keys.table, keysByAccount, "account", 1, indexPartition},
		{"files", m.files.table, "", "account", 1, indexPartition},
		{"usage", m.usage.table, "", "id", usageShards, usagePartition},
		{"jobs", m.jobs.table, jobsByAccount, "account", indexPartitions, indexPartition},
	} {
		for n := range held.partitions {
			found, err := m.any(ctx, held.table, held.index, held.key, held.partition(account, n))
			if err != nil {
				return "", storeError("look for an account", err)
			}
			if found {
				return held.what, nil
			}
		}
	}
	return "", nil
}

// any reports whether a partition of a table, or of its index, has an item.
func (m *Moved) any(ctx context.Context, table, index, key, partition string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	query := &dynamodb.QueryInput{
		TableName: &table, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#key = :partition"),
		ExpressionAttributeNames:  map[string]string{"#key": key},
		ExpressionAttributeValues: item{":partition": text(partition)},
	}
	if index != "" {
		query.IndexName = &index
	}
	found, err := m.client.Query(ctx, query)
	return err == nil && len(found.Items) > 0, err
}

// differs is the error for something that is not as it should be.
func differs(what, id string) error { return fmt.Errorf("%w: %s %s", move.ErrDiffers, what, id) }

// put writes an item where there is none. It returns what is there instead, nil if it was
// written.
func (m *Moved) put(ctx context.Context, table string, values item) (there item, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err = m.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &table, Item: values, ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		return old, nil
	}
	return nil, err
}

// HasFile fails with move.ErrDiffers unless a file is there as it is.
func (m *Moved) HasFile(ctx context.Context, f file.File) error {
	there, err := m.files.get(ctx, f.Account, f.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return storeError("read a file", err)
	}
	if err != nil || !reflect.DeepEqual(there, plain(f)) {
		return differs("the file", f.ID)
	}
	return nil
}

// plain returns a stored file without what only its upload needed.
func plain(f file.File) file.File {
	f.UploadUntil, f.Upload, f.Room = time.Time{}, file.PendingUpload{}, file.Reservation{}
	return f
}

// PutFile records a stored file.
func (m *Moved) PutFile(ctx context.Context, f file.File) error {
	_, err := m.files.get(ctx, f.Account, f.ID)
	if fault.Is(err, fault.NotFound) {
		err = m.files.Create(ctx, plain(f), 0)
	}
	if err != nil {
		return storeError("move a file", err)
	}
	return m.HasFile(ctx, f)
}

// usageItemOf returns the one item of what a key has used of a model on a day.
func usageItemOf(u move.Usage) usageItem {
	return usageItem{
		Account: u.Account, Part: fmt.Sprintf("%s/%s/%s/0", u.Day, u.Model, url.PathEscape(u.Key)),
		Day: u.Day, Model: u.Model, Key: u.Key, Requests: u.Requests, PromptTokens: u.PromptTokens,
		CachedTokens: u.CachedTokens, CompletionTokens: u.CompletionTokens, ReasoningTokens: u.ReasoningTokens,
		Estimated: u.Estimated, SessionSeconds: u.SessionSeconds, Jobs: u.Jobs, JobsCompleted: u.JobsCompleted, Cost: u.Cost,
		BatchRequests: u.BatchRequests, BatchCost: u.BatchCost,
	}
}

// PutUsage records what was used.
func (m *Moved) PutUsage(ctx context.Context, u move.Usage) error {
	values, err := attributevalue.MarshalMap(usageItemOf(u))
	if err != nil {
		return fmt.Errorf("dynamo: move usage: %w", err)
	}
	if _, err := m.put(ctx, m.usage.table, values); err != nil {
		return storeError("move usage", err)
	}
	return m.HasUsage(ctx, u)
}

// HasUsage fails with move.ErrDiffers unless so much is recorded.
func (m *Moved) HasUsage(ctx context.Context, u move.Usage) error {
	want := usageItemOf(u)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := m.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &m.usage.table, Key: item{"id": text(want.Account), "part": text(want.Part)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return storeError("read usage", err)
	}
	var there usageItem
	if err := attributevalue.UnmarshalMap(found.Item, &there); err != nil {
		return fmt.Errorf("dynamo: read usage: %w", err)
	}
	if there != want {
		return differs("the usage", want.Account+"/"+want.Part)
	}
	return nil
}

// PutBudget sets a budget.
func (m *Moved) PutBudget(ctx context.Context, b budget.Budget) error {
	return m.budgets.Set(ctx, audit.Operator(m.now()), b)
}

// PutCounter records what was used of a budget.
func (m *Moved) PutCounter(ctx context.Context, c move.Counter) error {
	values := usedKey(c.Counter)
	values["used"], values[ttlAttribute] = number(c.Used), counterEnd(c.Counter)
	if c.Warned > 0 {
		values["warned"] = number(c.Warned)
	}
	there, err := m.put(ctx, m.usage.table, values)
	if err != nil {
		return storeError("move a counter", err)
	}
	if there != nil && numberOf(there["used"]) != c.Used {
		return differs("the counter", counterID(c.Counter))
	}
	return nil
}

// PutKey makes a key. One that was changed at the deploy since stays as it is there.
func (m *Moved) PutKey(ctx context.Context, key credential.Key) error {
	err := m.keys.CreateKey(ctx, audit.Operator(m.now()), key)
	if fault.Is(err, fault.Conflict) {
		there, found := m.keys.FindKey(ctx, key.Hash)
		if found != nil || there.Account != key.Account || !there.CreatedAt.Equal(key.CreatedAt) {
			return differs("the key", key.ID)
		}
		return nil
	}
	return err
}

// PutJob records a job that has ended, and before it the attempts of its webhook: the
// stream of the table begins with the first attempt that was not made. Attempts that go on
// begin anew.
func (m *Moved) PutJob(ctx context.Context, j job.Job, attempts []webhook.Attempt) error {
	if n := len(attempts); n > 0 && attempts[n-1].Next.IsZero() {
		told := webhook.Event{ID: j.ID, Account: j.Account, URL: j.Webhook, Begun: j.Deadline}
		for _, a := range attempts {
			if err := m.webhooks.Record(ctx, told, a); err != nil {
				return fmt.Errorf("the webhook of %s: %w", j.ID, err)
			}
		}
	}
	record, request, err := endedItems(j)
	if err != nil {
		return err
	}
	err = transact(ctx, m.client, []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &m.jobs.table, Item: record,
			ConditionExpression: aws.String("attribute_not_exists(#id)"), ExpressionAttributeNames: named("id"),
		}},
		{Put: &types.Put{TableName: &m.jobs.table, Item: request}},
	})
	if err != nil && refused(err) == nil {
		return storeError("move a job", err)
	}
	return m.HasJob(ctx, j)
}

// endedItems returns the items of a job that has ended.
func endedItems(j job.Job) (record, request item, err error) {
	if record, request, err = jobItems(j); err != nil {
		return nil, nil, err
	}
	record["progress"], record["runs"] = fraction(j.Progress), number(int64(j.Runs))
	record["nonce"] = text(j.Nonce)
	record["completed_at"] = text(writeTime(j.CompletedAt))
	if !j.StartedAt.IsZero() {
		record["started_at"] = text(writeTime(j.StartedAt))
	}
	if j.Result != nil {
		if record["result"], err = encoded(j.Result); err != nil {
			return nil, nil, err
		}
	}
	if j.Failure != nil {
		record["failure"], err = encoded(j.Failure)
	}
	return record, request, err
}

// HasJob fails with move.ErrDiffers unless a job is there as it is.
func (m *Moved) HasJob(ctx context.Context, j job.Job) error {
	there, err := m.jobs.Get(ctx, j.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || there.Account != j.Account || !reflect.DeepEqual(there, j) {
		return differs("the job", j.ID)
	}
	return nil
}

// Accept accepts a job that has not ended, with what it holds of budgets. One that is
// there is handed over again, unless it was begun.
func (m *Moved) Accept(ctx context.Context, j job.Job) error {
	var claims []budget.Claim
	for _, h := range j.Holds {
		claims = append(claims, budget.Claim{Counter: h.Counter, Limit: budget.MaxLimit, Amount: h.Amount})
	}
	there, err := m.jobs.Get(ctx, j.ID)
	if err == nil && (there.Account != j.Account || !there.CreatedAt.Equal(j.CreatedAt)) {
		return differs("the job", j.ID)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return m.jobs.Accept(ctx, j, 0, claims...)
}
