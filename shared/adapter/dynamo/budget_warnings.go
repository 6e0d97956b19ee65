package dynamo

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/webhook"
)

// WarningPart is the sort key of the item for a warning that has a receiver. The item is written
// once, so it appears once in the table's stream.
const WarningPart = "warning"

func (b *Budgets) Warn(ctx context.Context, c budget.Counter, missed int64, at time.Time) (budget.Noted, error) {
	at = at.UTC().Truncate(time.Millisecond)
	for range ConflictTries {
		noted, err := b.findWarning(ctx, c, missed, at)
		if err != nil || noted.Warning.Percent == 0 {
			return noted, storeError("look up a warning", err)
		}
		w := noted.Warning
		writes := []types.TransactWriteItem{{Update: &types.Update{
			TableName: &b.table, Key: usedKey(c), UpdateExpression: aws.String("SET warned = :percent"),
			ConditionExpression:       aws.String("attribute_not_exists(warned) OR warned < :percent"),
			ExpressionAttributeValues: item{":percent": number(int64(w.Percent))},
		}}}
		if w.WarnURL != "" {
			writes = append(writes, b.keepWarning(w))
		}
		if err := transact(ctx, b.client, writes); err == nil || refused(err) == nil {
			return noted, storeError("record a warning", err)
		}
	}
	return budget.Noted{}, busy(errors.New("the counter keeps changing"))
}

// findWarning returns the warning that is due, if any, and the highest recorded percentage.
func (b *Budgets) findWarning(ctx context.Context, c budget.Counter, missed int64, at time.Time) (n budget.Noted, err error) {
	counters, err := b.query(ctx, counterID(c), usedPart)
	if err != nil || len(counters) == 0 {
		return n, err
	}
	budgets, err := b.Budgets(ctx, c.Account)
	if err != nil {
		return n, err
	}
	i := slices.IndexFunc(budgets, func(b budget.Budget) bool { return b.ID == c.ID })
	if i < 0 {
		return n, nil
	}
	r := reader{item: counters[0]}
	w := budget.Warning{State: budget.State{Budget: budgets[i], Window: c.Window, Used: r.number("used")}, At: at}
	n.Percent = int(r.number("warned"))
	if w.Percent = budget.Warnable(w.Used, w.Limit, missed); w.Percent > n.Percent {
		n = budget.Noted{Warning: w, Percent: w.Percent}
	}
	return n, r.err
}

// keepWarning uses an update, because some roles that spend from budgets have no permission for PutItem.
func (b *Budgets) keepWarning(w budget.Warning) types.TransactWriteItem {
	attributes := item{
		"warning": text(w.EventID()), "account": text(w.Account), "budget_key": text(w.Key), "period": text(string(w.Period)),
		"unit": text(string(w.Unit)), "term": text(string(w.Window)), "percentage": number(int64(w.Percent)),
		"max_used": number(w.Limit), "used": number(w.Used), "warn_url": text(w.WarnURL),
		"noted_at": number(w.At.UnixMilli()), ttlAttribute: seconds(w.At.Add(recordAge)),
	}
	names, values := map[string]string{}, item{}
	var set []string
	for name, value := range attributes {
		names["#"+name], values[":"+name] = name, value
		set = append(set, "#"+name+" = :"+name)
	}
	slices.Sort(set) // a retry must send the same bytes
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: warningKey(w.EventID()), UpdateExpression: aws.String("SET " + strings.Join(set, ", ")),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}}
}

func (b *Budgets) Warning(ctx context.Context, id string) (budget.Warning, error) {
	return NewWarnings(b.client, b.table).Warning(ctx, id)
}

type Warnings struct {
	client *dynamodb.Client
	table  string
}

var _ webhook.Warnings = (*Warnings)(nil)

func NewWarnings(client *dynamodb.Client, table string) *Warnings { return &Warnings{client, table} }

func (w *Warnings) Warning(ctx context.Context, id string) (budget.Warning, error) {
	found, err := readItem(ctx, w.client, w.table, warningKey(id))
	if err != nil {
		return budget.Warning{}, storeError("read a warning", err)
	}
	if len(found) == 0 {
		return budget.Warning{}, fault.New(fault.NotFound, "The warning does not exist.")
	}
	r := reader{item: found}
	read := budget.Warning{Percent: int(r.number("percentage")), At: r.moment("noted_at")}
	read.Window, read.Used = budget.Window(r.text("term")), r.number("used")
	read.Budget = budget.Budget{
		ID: budget.ID{
			Account: r.text("account"), Key: r.text("budget_key"), Period: budget.Period(r.text("period")),
			Unit: budget.Unit(r.text("unit")),
		},
		Limit: r.number("max_used"), WarnURL: r.text("warn_url"),
	}
	return read, r.err
}

func warningKey(id string) item {
	return item{"id": text(warningsPrefix + id), "part": text(WarningPart)}
}

// NewWarning returns the first attempt to send a warning, from a new image in the usage table's stream.
func NewWarning(image map[string]events.DynamoDBAttributeValue) (webhook.ScheduledAttempt, bool) {
	text := textOf(image)
	noted, there := image["noted_at"]
	if text("part") != WarningPart || !budget.IsWarning(text("warning")) || !there || noted.DataType() != events.DataTypeNumber {
		return webhook.ScheduledAttempt{}, false
	}
	at, err := strconv.ParseInt(noted.Number(), 10, 64)
	return webhook.First(text("warning"), text("account"), time.UnixMilli(at).UTC()), err == nil
}
