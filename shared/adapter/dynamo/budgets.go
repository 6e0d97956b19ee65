package dynamo

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithy "github.com/aws/smithy-go/middleware"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
)

// Budgets is a budget.Store in the usage table.
//
// An account's budgets are the items of one partition. Each counter has its own partition, with an item for the
// used amount and an item per allocation, so that one query reads everything. One transaction changes the used
// amount and an allocation. The condition on the used amount enforces the limit. The condition on the allocation
// distinguishes a retry from another write. The table's stream delivers warnings to the function that sends them.
type Budgets struct {
	client  *dynamodb.Client
	table   string
	machine Machine
	newID   func() string

	mu sync.Mutex
	// storeTime is the time in DynamoDB's last response, in seconds since 1970, or 0 if there was
	// none. timeRead is the machine's time when that response arrived.
	storeTime int64
	timeRead  time.Duration
}

// Machine is a clock that cannot be set and that keeps running while the process is suspended.
type Machine interface {
	Now() time.Duration
}

var _ budget.Store = (*Budgets)(nil)

// newID returns a unique string that identifies a write when it is retried after a lost response.
func NewBudgets(client *dynamodb.Client, table string, machine Machine, newID func() string) *Budgets {
	return &Budgets{client: client, table: table, machine: machine, newID: newID}
}

const (
	budgetPrefix, counterPrefix = "budget/", "budget-used/"
	warningsPrefix              = "budget-warning/"
	usedPart, allocationPrefix  = "used", "lease/"
	// keptCounters is how long counters are kept after the end of their window.
	keptCounters = 400 * 24 * time.Hour
)

func (b *Budgets) Budgets(ctx context.Context, account string) ([]budget.Budget, error) {
	items, err := b.query(ctx, budgetPrefix+account, "")
	if err != nil {
		return nil, storeError("read budgets", err)
	}
	var budgets []budget.Budget
	for _, i := range items {
		r := reader{item: i}
		budgets = append(budgets, readBudget(account, &r))
		if r.err != nil {
			return nil, r.err
		}
	}
	slices.SortFunc(budgets, func(a, b budget.Budget) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Period, b.Period), cmp.Compare(a.Unit, b.Unit))
	})
	return budgets, nil
}

func readBudget(account string, r *reader) budget.Budget {
	return budget.Budget{
		ID: budget.ID{
			Account: account, Key: r.text("budget_key"), Period: budget.Period(r.text("period")),
			Unit: budget.Unit(r.text("unit")),
		},
		Limit: r.number("max_used"), WarnURL: r.text("warn_url"),
	}
}

func budgetItem(one budget.Budget) item {
	i := budgetKey(one.ID)
	i["budget_key"], i["period"], i["unit"] = text(one.Key), text(string(one.Period)), text(string(one.Unit))
	i["max_used"] = number(one.Limit)
	if one.WarnURL != "" {
		i["warn_url"] = text(one.WarnURL)
	}
	return i
}

func (b *Budgets) Set(ctx context.Context, from audit.Origin, one budget.Budget) error {
	err := b.change(ctx, from, one.ID, &one, func(unchanged condition) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: &b.table, Item: budgetItem(one),
			ConditionExpression: &unchanged.expression, ExpressionAttributeValues: unchanged.values}}
	})
	return storeError("set a budget", err)
}

func (b *Budgets) Delete(ctx context.Context, from audit.Origin, id budget.ID) error {
	err := b.change(ctx, from, id, nil, func(unchanged condition) types.TransactWriteItem {
		return types.TransactWriteItem{Delete: &types.Delete{TableName: &b.table, Key: budgetKey(id),
			ConditionExpression: &unchanged.expression, ExpressionAttributeValues: unchanged.values}}
	})
	return storeError("delete a budget", err)
}

type condition struct {
	expression string
	values     item
}

// change writes a budget, or deletes it if after is nil, together with its audit entry. If another
// call has changed the budget, it starts over.
//
// Errors: fault.NotFound if the budget to delete does not exist.
func (b *Budgets) change(ctx context.Context, from audit.Origin, id budget.ID, after *budget.Budget,
	write func(unchanged condition) types.TransactWriteItem) error {
	for try := 1; ; try++ {
		all, err := b.Budgets(ctx, id.Account)
		if err != nil {
			return err
		}
		var before *budget.Budget
		unchanged := condition{expression: "attribute_not_exists(id)"}
		if i := slices.IndexFunc(all, func(b budget.Budget) bool { return b.ID == id }); i >= 0 {
			before = &all[i]
			unchanged = condition{"max_used = :limit AND attribute_not_exists(warn_url)", item{":limit": number(before.Limit)}}
			if before.WarnURL != "" {
				unchanged = condition{"max_used = :limit AND warn_url = :url",
					item{":limit": number(before.Limit), ":url": text(before.WarnURL)}}
			}
		}
		switch {
		case before == nil && after == nil:
			return fault.New(fault.NotFound, "The budget does not exist.")
		case before != nil && after != nil && *before == *after:
			return nil
		}
		entry, err := budget.Entry(from, before, after)
		if err != nil {
			return err
		}
		err = transact(ctx, b.client, []types.TransactWriteItem{write(unchanged), note(b.table, entry)})
		if refused(err) == nil || try == ConflictTries {
			return err
		}
	}
}

func (b *Budgets) Used(ctx context.Context, counters []budget.Counter) ([]int64, error) {
	used := make([]int64, len(counters))
	for i, c := range counters {
		var err error
		if used[i], err = b.usedOf(ctx, c); err != nil {
			return nil, storeError("read a counter", err)
		}
	}
	return used, nil
}

// claimWrites returns the writes that reserve a job's holds, in the order of claims. If a write's condition fails
// (refusal.failed), retake checks that claim again.
func (b *Budgets) claimWrites(claims []budget.Claim) []types.TransactWriteItem {
	var writes []types.TransactWriteItem
	for _, c := range claims {
		writes = append(writes, b.takeUsed(c.Counter, c.Limit, c.Amount))
	}
	return writes
}

// retake ends expired allocations and checks again whether a rejected claim fits. It returns nil if the claim fits.
//
// Errors: fault.Exhausted if too little remains.
func (b *Budgets) retake(ctx context.Context, c budget.Claim, now time.Time) error {
	used, err := b.usedOf(ctx, c.Counter)
	if err == nil && c.Limit-used < c.Amount {
		err = budget.UsedUp(c.Counter, now)
	}
	return err
}

func (b *Budgets) settleWrites(settled []budget.Settlement) []types.TransactWriteItem {
	var writes []types.TransactWriteItem
	for _, s := range settled {
		if n := s.Returned(); n > 0 {
			writes = append(writes, b.returnUsed(s.Counter, n))
		}
	}
	return writes
}

// takeUsed takes an amount from a counter if enough remains. A missing counter starts at 0.
func (b *Budgets) takeUsed(c budget.Counter, limit, amount int64) types.TransactWriteItem {
	condition := "attribute_not_exists(used) OR used <= :rest"
	if amount > limit {
		condition = "used <= :rest" // even an unused counter has too little
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: usedKey(c), UpdateExpression: aws.String("SET #ttl = :ttl ADD used :amount"),
		ConditionExpression: &condition, ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":amount": number(amount), ":rest": number(limit - amount), ":ttl": counterEnd(c),
		},
	}}
}

func (b *Budgets) returnUsed(c budget.Counter, amount int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: usedKey(c), UpdateExpression: aws.String("ADD used :amount"),
		ExpressionAttributeValues: item{":amount": number(-amount)},
	}}
}

func (b *Budgets) query(ctx context.Context, id, prefix string) ([]item, error) {
	input := &dynamodb.QueryInput{
		TableName: &b.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("id = :id"),
		ExpressionAttributeValues: item{":id": text(id)},
	}
	if prefix != "" {
		input.KeyConditionExpression = aws.String("id = :id AND begins_with(part, :prefix)")
		input.ExpressionAttributeValues[":prefix"] = text(prefix)
	}
	var items []item
	for {
		page, err := b.client.Query(ctx, input)
		if err != nil {
			return nil, err
		}
		b.noteTime(page.ResultMetadata)
		items = append(items, page.Items...)
		if page.LastEvaluatedKey == nil {
			return items, nil
		}
		input.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

func (b *Budgets) noteTime(metadata smithy.Metadata) {
	now, err := storeTime(metadata)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storeTime, b.timeRead = now, b.machine.Now()
}

// storeNow returns DynamoDB's time in seconds since 1970, extrapolated from its last response. It
// is never ahead, because DynamoDB rounds seconds down.
func (b *Budgets) storeNow() (now int64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.storeTime + int64((b.machine.Now()-b.timeRead)/time.Second), b.storeTime > 0
}

func budgetKey(id budget.ID) item {
	part := strings.Join([]string{url.PathEscape(id.Key), string(id.Period), string(id.Unit)}, "/")
	return item{"id": text(budgetPrefix + id.Account), "part": text(part)}
}

func counterID(c budget.Counter) string {
	return counterPrefix + strings.Join([]string{
		url.PathEscape(c.Account), url.PathEscape(c.Key), string(c.Period), string(c.Unit), string(c.Window),
	}, "/")
}

func usedKey(c budget.Counter) item { return item{"id": text(counterID(c)), "part": text(usedPart)} }
func counterEnd(c budget.Counter) types.AttributeValue {
	return seconds(c.Window.Ends().Add(keptCounters))
}
