package dynamo

import (
	"context"
	"fmt"
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
// written to them. Each write is on the condition that nothing is there, or else that it has
// the mark of the same source and that the move from there is begun (see moved_marks.go).
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
		files: NewFiles(client, name("files"), now), usage: NewUsage(client, usage),
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

// SetLedger changes the state of the move from a source. One that another attempt has brought
// further is not begun again: what was written is served then.
//
// Errors: move.ErrDiffers if it is further.
func (m *Moved) SetLedger(ctx context.Context, source string, state move.State) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	put := &dynamodb.PutItemInput{TableName: &m.ledger, Item: item{
		"id": text(ledgerPrefix + source), "state": text(string(state)), "changed_at": number(m.now().UnixMilli()),
	}}
	if state == move.Begun {
		put.ConditionExpression = aws.String("attribute_not_exists(#state) OR #state = :begun")
		put.ExpressionAttributeNames = named("state")
		put.ExpressionAttributeValues = item{":begun": text(string(state))}
	}
	_, err := m.client.PutItem(ctx, put)
	if _, failed := conditionFailed(err); failed {
		return fmt.Errorf("%w: another attempt has gone on meanwhile", move.ErrDiffers)
	}
	return storeError("write the ledger", err)
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
	if err != nil || !reflect.DeepEqual(there.File, plain(f)) {
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
func (m *Moved) PutFile(ctx context.Context, source string, f file.File) error {
	_, err := m.files.get(ctx, f.Account, f.ID)
	if fault.Is(err, fault.NotFound) {
		err = m.createFile(ctx, source, plain(f))
	}
	if err != nil {
		return storeError("move a file", err)
	}
	return m.HasFile(ctx, f)
}

// createFile records a file that is not there, with its entry and what it counts. All are in the
// first partition, where every version finds them.
func (m *Moved) createFile(ctx context.Context, source string, f file.File) error {
	at := m.files.entryPlace(f, false)
	writes, err := m.files.puts(m.files.ownItem(f, false), entryOf(f, at))
	if err != nil {
		return err
	}
	for _, write := range writes {
		mark(write.Put.Item, source)
	}
	_, err = m.files.commit(ctx, at, writes, tally{bytes: f.Counts()})
	return err
}

// usageItemOf returns the one item of what a key has used of a model on a day.
func usageItemOf(u move.Usage) usageItem {
	return usageItem{
		Account: u.Account, Part: usagePart(u.Day, u.Model, u.Key, 0),
		Day: u.Day, Model: u.Model, Key: u.Key, Requests: u.Requests, PromptTokens: u.PromptTokens,
		CachedTokens: u.CachedTokens, CompletionTokens: u.CompletionTokens, ReasoningTokens: u.ReasoningTokens,
		Estimated: u.Estimated, SessionSeconds: u.SessionSeconds, Jobs: u.Jobs, JobsCompleted: u.JobsCompleted, Cost: u.Cost,
		BatchRequests: u.BatchRequests, BatchCost: u.BatchCost,
	}
}

// PutUsage records what was used.
func (m *Moved) PutUsage(ctx context.Context, source string, u move.Usage) error {
	values, err := attributevalue.MarshalMap(usageItemOf(u))
	if err != nil {
		return fmt.Errorf("dynamo: move usage: %w", err)
	}
	there, err := m.put(ctx, m.usage.table, mark(values, source))
	if err == nil && marked(there, source) && !reflect.DeepEqual(there, values) {
		err = m.replace(ctx, source, m.usage.table, values)
	}
	if err != nil {
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
func (m *Moved) PutBudget(ctx context.Context, source string, b budget.Budget) error {
	return m.changeBudget(ctx, source, b.ID, &b)
}

// changeBudget makes a budget what it is to be, nil for none, if it has the mark of the
// source or there is none.
func (m *Moved) changeBudget(ctx context.Context, source string, id budget.ID, after *budget.Budget) error {
	table := m.budgets.table
	err := m.budgets.change(ctx, audit.Operator(m.now()), id, after, func(unchanged condition) types.TransactWriteItem {
		if unchanged.values != nil {
			unchanged.expression += " AND " + hasMark
			unchanged.values[":source"] = text(source)
		}
		if after == nil {
			return types.TransactWriteItem{Delete: &types.Delete{TableName: &table, Key: budgetKey(id),
				ConditionExpression: &unchanged.expression, ExpressionAttributeValues: unchanged.values}}
		}
		return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: mark(budgetItem(*after), source),
			ConditionExpression: &unchanged.expression, ExpressionAttributeValues: unchanged.values}}
	}, m.begun(source))
	switch {
	case refused(err) != nil:
		return differs("the budget", fmt.Sprintf("%+v", id))
	case after == nil && fault.Is(err, fault.NotFound):
		return nil
	}
	return storeError("move a budget", err)
}

// PutCounter records what was used of a budget.
func (m *Moved) PutCounter(ctx context.Context, source string, c move.Counter) error {
	values := mark(usedKey(c.Counter), source)
	values["used"], values[ttlAttribute] = number(c.Used), counterEnd(c.Counter)
	if c.Warned > 0 {
		values["warned"] = number(c.Warned)
	}
	there, err := m.put(ctx, m.usage.table, values)
	same := there == nil || numberOf(there["used"]) == c.Used
	if err == nil && !same && marked(there, source) {
		same, err = true, m.replace(ctx, source, m.usage.table, values)
	}
	if err != nil {
		return storeError("move a counter", err)
	}
	if !same {
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
func (m *Moved) PutJob(ctx context.Context, source string, j job.Job, attempts []webhook.Attempt) error {
	record, request, err := endedItems(j)
	if err != nil {
		return err
	}
	there, err := m.jobItem(ctx, j.ID, RecordPart)
	if err != nil {
		return storeError("move a job", err)
	}
	if there != nil && !marked(there, source) {
		return m.HasJob(ctx, j)
	}
	if n := len(attempts); n > 0 && attempts[n-1].Next.IsZero() {
		if err := m.putAttempts(ctx, source, j, attempts); err != nil {
			return fmt.Errorf("the webhook of %s: %w", j.ID, err)
		}
	}
	mark(record, source)
	if there != nil && !reflect.DeepEqual(there, record) {
		err = m.replace(ctx, source, m.jobs.table, record, request)
	}
	if there == nil {
		err = transact(ctx, m.client, []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: &m.jobs.table, Item: record,
				ConditionExpression: aws.String("attribute_not_exists(#id)"), ExpressionAttributeNames: named("id"),
			}},
			{Put: &types.Put{TableName: &m.jobs.table, Item: mark(request, source)}},
		})
	}
	if err != nil && refused(err) == nil {
		return storeError("move a job", err)
	}
	return m.HasJob(ctx, j)
}

// putAttempts records the attempts at the webhook of a job. Others are replaced: an earlier
// attempt of the move wrote them, or they were made here because the webhook was not done when it wrote the
// job.
func (m *Moved) putAttempts(ctx context.Context, source string, j job.Job, attempts []webhook.Attempt) error {
	kept := make([]types.AttributeValue, len(attempts))
	for i, a := range attempts {
		var err error
		if kept[i], err = encodeAttempt(a); err != nil {
			return err
		}
	}
	there, err := m.jobItem(ctx, j.ID, webhookPart)
	if err != nil {
		return err
	}
	list := &types.AttributeValueMemberL{Value: kept}
	if reflect.DeepEqual(there[attemptsAttribute], types.AttributeValue(list)) {
		return nil
	}
	values := jobKey(j.ID, webhookPart)
	values[attemptsAttribute], values[ttlAttribute] = list, seconds(j.Deadline.Add(recordAge))
	return m.whileBegun(ctx, source, types.TransactWriteItem{Put: &types.Put{TableName: &m.jobs.table, Item: values}})
}

// jobItem reads an item of a job, nil if there is none.
func (m *Moved) jobItem(ctx context.Context, id, part string) (item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := m.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &m.jobs.table, Key: jobKey(id, part), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return found.Item, nil
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
