package dynamo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

// The record changes while the job runs. The request does not, so it is a separate item.
const (
	RecordPart  = "record"
	requestPart = "request"
)

// JobTimeLayout is also the state machine's layout, so that conditions can compare times as strings.
const JobTimeLayout = "2006-01-02T15:04:05.000Z"

// recordAge is the time from a job's deadline to its record's TTL. It counts from the deadline because the end is
// not known in advance. Because of the extra day, no record is deleted while the service still shows it.
const recordAge = job.DefaultRecordAge + 24*time.Hour

type jobRecord struct {
	ID   string `dynamodbav:"id"`
	Part string `dynamodbav:"part"`
	// Account is the account or, in some records of version 0.1.0, one of Owner's partitions.
	Account string     `dynamodbav:"account"`
	Owner   string     `dynamodbav:"owner,omitempty"`
	Key     string     `dynamodbav:"key"`
	Model   string     `dynamodbav:"model"`
	Lane    job.Lane   `dynamodbav:"lane"`
	Seed    uint32     `dynamodbav:"seed"`
	Status  job.Status `dynamodbav:"status"`
	// OpenStatus is the status of an open job. It is separate, so that starting a job does not
	// write to the index of the account's jobs. It is empty in records of version 0.1.0.
	OpenStatus job.Status `dynamodbav:"open_status,omitempty"`
	Progress   float64    `dynamodbav:"progress"`
	Runs       int        `dynamodbav:"runs"`
	Nonce      string     `dynamodbav:"nonce"`
	CreatedAt  string     `dynamodbav:"created_at"`
	Deadline   string     `dynamodbav:"deadline"`
	// RunDeadline replaces Deadline when the job starts. It is empty if they are the same.
	RunDeadline string `dynamodbav:"run_deadline,omitempty"`
	StartedAt   string `dynamodbav:"started_at,omitempty"`
	CompletedAt string `dynamodbav:"completed_at,omitempty"`
	Webhook     string `dynamodbav:"webhook,omitempty"`
	Trace       string `dynamodbav:"trace,omitempty"`
	Estimate    int64  `dynamodbav:"estimate,omitempty"` // in milliseconds
	Result      string `dynamodbav:"result,omitempty"`
	Failure     string `dynamodbav:"failure,omitempty"`
	Holds       string `dynamodbav:"holds,omitempty"`
	TTL         int64  `dynamodbav:"ttl"`
}

const ownerAttribute = "owner"

type jobRequest struct {
	ID      string `dynamodbav:"id"`
	Part    string `dynamodbav:"part"`
	Request string `dynamodbav:"request"`
	TTL     int64  `dynamodbav:"ttl"`
}

func jobKey(id, part string) item { return item{"id": text(id), "part": text(part)} }

func jobItems(j job.Job) (record, request item, err error) {
	body, err := json.Marshal(j.Request)
	if err != nil {
		return nil, nil, fmt.Errorf("request of job %s: %w", j.ID, err)
	}
	holds, err := encodeHolds(j.Holds)
	if err != nil {
		return nil, nil, fmt.Errorf("holds of job %s: %w", j.ID, err)
	}
	ttl := j.Deadline.Add(recordAge).Unix()
	runDeadline := ""
	if j.RunDeadline().After(j.Deadline) {
		runDeadline = writeTime(j.RunDeadline())
	}
	record, err = attributevalue.MarshalMap(jobRecord{
		ID: j.ID, Part: RecordPart, Account: j.Account, Key: j.Key, Model: j.Model, Lane: j.Lane, Seed: j.Seed,
		Status: j.Status, OpenStatus: job.Pending, CreatedAt: writeTime(j.CreatedAt), Deadline: writeTime(j.Deadline),
		Webhook: j.Webhook, Trace: j.Trace, Estimate: j.Estimate.Milliseconds(), Holds: holds, TTL: ttl,
		RunDeadline: runDeadline,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("record of job %s: %w", j.ID, err)
	}
	request, err = attributevalue.MarshalMap(jobRequest{ID: j.ID, Part: requestPart, Request: string(body), TTL: ttl})
	return record, request, err
}

func encodeHolds(holds []budget.Hold) (string, error) {
	if len(holds) == 0 {
		return "", nil
	}
	body, err := json.Marshal(holds)
	return string(body), err
}

func readJob(recordItem, requestItem item) (job.Job, error) {
	var request jobRequest
	if err := attributevalue.UnmarshalMap(requestItem, &request); err != nil {
		return job.Job{}, fmt.Errorf("request of a job: %w", err)
	}
	j, err := readRecord(recordItem)
	if err != nil {
		return job.Job{}, err
	}
	if err := json.Unmarshal([]byte(request.Request), &j.Request); err != nil {
		return job.Job{}, fmt.Errorf("request of job %s: %w", j.ID, err)
	}
	return j, nil
}

// readRecord returns a job without its request.
func readRecord(recordItem item) (job.Job, error) {
	var r jobRecord
	if err := attributevalue.UnmarshalMap(recordItem, &r); err != nil {
		return job.Job{}, fmt.Errorf("record of a job: %w", err)
	}
	j := job.Job{
		ID: r.ID, Account: cmp.Or(r.Owner, r.Account), Key: r.Key, Model: r.Model, Lane: r.Lane, Seed: r.Seed,
		Status: r.Status, Progress: r.Progress, Runs: r.Runs, Nonce: r.Nonce, Webhook: r.Webhook, Trace: r.Trace,
		Estimate: milliseconds(r.Estimate),
	}
	for _, t := range []struct {
		to   *time.Time
		from string
	}{
		{&j.CreatedAt, r.CreatedAt}, {&j.Deadline, r.Deadline}, {&j.StartedAt, r.StartedAt}, {&j.CompletedAt, r.CompletedAt},
	} {
		var err error
		if *t.to, err = readTime(t.from); err != nil {
			return job.Job{}, fmt.Errorf("record of job %s: %w", r.ID, err)
		}
	}
	if j.Status == job.Pending && !j.StartedAt.IsZero() {
		j.Status = job.Processing
	}
	if r.Result != "" {
		j.Result = new(job.Result)
		if err := json.Unmarshal([]byte(r.Result), j.Result); err != nil {
			return job.Job{}, fmt.Errorf("result of job %s: %w", r.ID, err)
		}
	}
	if r.Holds != "" {
		if err := json.Unmarshal([]byte(r.Holds), &j.Holds); err != nil {
			return job.Job{}, fmt.Errorf("holds of job %s: %w", r.ID, err)
		}
	}
	if r.Failure != "" {
		j.Failure = new(job.Failure)
		if err := json.Unmarshal([]byte(r.Failure), j.Failure); err != nil {
			return job.Job{}, fmt.Errorf("failure of job %s: %w", r.ID, err)
		}
	}
	return j, nil
}

func writeTime(t time.Time) string { return t.UTC().Format(JobTimeLayout) }

// readTime parses a time with any number of decimals, because the state machine may omit zeros.
func readTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err
}

func fraction(f float64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatFloat(f, 'f', -1, 64)}
}

func encoded(value any) (types.AttributeValue, error) {
	body, err := json.Marshal(value)
	return text(string(body)), err
}

// named returns placeholders for attribute names in expressions, such as "#status". Many of the
// names are reserved words in DynamoDB.
func named(attributes ...string) map[string]string {
	names := map[string]string{}
	for _, attribute := range attributes {
		names["#"+attribute] = attribute
	}
	return names
}
