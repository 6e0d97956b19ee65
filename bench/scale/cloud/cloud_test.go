package cloud

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/awsclient"
)

// still is a clock that stands until the test moves it.
type still struct {
	now  time.Time
	turn int64
	// one says that all calls are of one caller.
	one bool
}

func (s *still) Now() time.Time { return s.now }
func (s *still) Turn() int64 {
	if !s.one {
		s.turn++
	}
	return s.turn
}
func (s *still) After(time.Duration, func()) {}

func newTest() (*Cloud, *dynamodb.Client, *still) {
	clock := &still{now: time.Unix(1_800_000_000, 0)}
	c := New(clock, rand.New(rand.NewPCG(1, 1)), dynamo.Tables())
	return c, dynamo.NewClient(c.Config()), clock
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	sc := scope{
		item:   item{"a": number("5"), "s": text("mango"), "set": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}},
		names:  map[string]string{"#a": "a"},
		values: item{":4": number("4"), ":6": number("6"), ":m": text("mango"), ":p": text("ma"), ":2": number("2")},
	}
	for expression, want := range map[string]bool{
		"#a > :4 AND a < :6":                               true,
		"a BETWEEN :4 AND :6 AND s = :m":                   true,
		"a IN (:4, :6) OR begins_with(s, :p)":              true,
		"NOT (attribute_exists(a))":                        false,
		"attribute_not_exists(b) OR b < :4":                true,
		"size(set) < :2":                                   false,
		"b < :4":                                           false,
		"a <> :4 AND (a = :4 OR s = :m)":                   true,
		"attribute_not_exists(a) AND a > :2":               false,
		"a >= :6 OR a <= :2 OR b = :m OR a=:4":             false,
		"attribute_exists(s) and size(s) > :4":             true,
		"begins_with(s, :p) AND NOT s = :p":                true,
		"(a > :6 OR a > :4) AND (a > :2)":                  true,
		"attribute_not_exists(set) OR a BETWEEN :2 AND :4": false,
	} {
		if got := parseCondition(expression)(sc); got != want {
			t.Errorf("%s is %v", expression, got)
		}
	}
	after := item{"set": sc.item["set"]}
	for _, change := range parseUpdate("SET a = a + :4, b = if_not_exists(b, :6) - :4 REMOVE s ADD n :2") {
		change(sc, after)
	}
	for name, want := range map[string]string{"a": "9", "b": "2", "n": "2"} {
		if got := after[name].(*types.AttributeValueMemberN).Value; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// A partition that is asked for more than it takes is found, and refuses the rest.
func TestHotPartition(t *testing.T) {
	t.Parallel()
	c, client, clock := newTest()
	c.DynamoDB.Limit(true)
	add := func(id string) error {
		_, err := client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
			TableName: aws.String("usage"), UpdateExpression: aws.String("ADD n :one"),
			Key: item{
				"id": &types.AttributeValueMemberS{Value: id}, "part": &types.AttributeValueMemberS{Value: "day"},
			},
			ExpressionAttributeValues: item{":one": &types.AttributeValueMemberN{Value: "1"}},
		})
		return err
	}
	for range PartitionWrites {
		if err := add("hot"); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("hot"); !awsclient.IsThrottle(err) {
		t.Errorf("write %d of a second: %v", PartitionWrites+1, err)
	}
	if err := add("cold"); err != nil {
		t.Errorf("another partition is refused: %v", err)
	}
	clock.now = clock.now.Add(time.Second)
	if err := add("hot"); err != nil {
		t.Errorf("the next second: %v", err)
	}
	if h := c.DynamoDB.Hottest()[0]; h.Key != "hot" || h.Writes != PartitionWrites {
		t.Errorf("the hottest is %+v", h)
	}
}

// A transaction counts twice, is written once for one token, and refuses as one.
func TestTransactions(t *testing.T) {
	t.Parallel()
	c, client, _ := newTest()
	put := func(token, id, condition string) error {
		write := types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("usage"),
			Item: item{
				"id": &types.AttributeValueMemberS{Value: id}, "part": &types.AttributeValueMemberS{Value: "p"},
			},
		}}
		if condition != "" {
			write.Put.ConditionExpression = &condition
		}
		_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: &token, TransactItems: []types.TransactWriteItem{write},
		})
		return err
	}
	if err := errors.Join(put("1", "a", ""), put("1", "a", "attribute_not_exists(id)")); err != nil {
		t.Fatal(err)
	}
	if got := c.DynamoDB.Totals()["usage"].Writes; got != 2 {
		t.Errorf("a transaction of one small item used %v units", got)
	}
	var cancelled *types.TransactionCanceledException
	if err := put("2", "a", "attribute_not_exists(id)"); !errors.As(err, &cancelled) ||
		*cancelled.CancellationReasons[0].Code != "ConditionalCheckFailed" {
		t.Errorf("a false condition: %v", err)
	}
}

// A transaction that is cancelled because a partition is busy is told as such.
func TestThrottledTransaction(t *testing.T) {
	t.Parallel()
	c, client, _ := newTest()
	c.DynamoDB.Limit(true)
	store := dynamo.NewUsage(client, "usage")
	record := usage.Record{Account: "acme", Model: "m", Day: "2027-01-15", Counts: usage.Counts{Requests: 1}}
	for i := range 8 * PartitionWrites {
		record.ID = strconv.Itoa(i)
		if err := store.Add(context.Background(), []usage.Record{record}); err != nil {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v, want that the records are busy", err)
			}
			return
		}
	}
	t.Error("nothing was throttled")
}

// Two transactions that hold one item at the same time: the later one is tried again when the
// first is over, which is counted. One caller's come one after another, and meet nothing.
func TestTransactionsMeet(t *testing.T) {
	t.Parallel()
	c, client, clock := newTest()
	added := 0
	add := func() error {
		added++
		return dynamo.NewUsage(client, "usage").Add(context.Background(), []usage.Record{{
			ID: strconv.Itoa(added), Account: "acme", Model: "m", Day: "2027-01-15",
			Counts: usage.Counts{Requests: 1},
		}})
	}
	if err := add(); err != nil {
		t.Fatal(err)
	}
	for range 40 { // an account's usage is in eight partitions
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	met := c.DynamoDB.Totals()["usage"].Conflicts
	if met == 0 {
		t.Error("of 41 transactions at one time on eight items none met another")
	}
	clock.now = clock.now.Add(time.Minute)
	if err := add(); err != nil || c.DynamoDB.Totals()["usage"].Conflicts != met {
		t.Errorf("a minute later: error %v, %d conflicts after %d", err, c.DynamoDB.Totals()["usage"].Conflicts, met)
	}
	clock.one = true
	for range 40 {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.DynamoDB.Totals()["usage"].Conflicts; got != met {
		t.Errorf("one caller's transactions met each other %d times", got-met)
	}
}

// What is throttled is tried four times, each in the second in which it would come.
func TestThrottledCallsAreTriedAgain(t *testing.T) {
	t.Parallel()
	c, client, _ := newTest()
	c.DynamoDB.Limit(true)
	read := func() error {
		_, err := client.GetItem(context.Background(), &dynamodb.GetItemInput{
			TableName: aws.String("usage"), ConsistentRead: aws.Bool(true),
			Key: item{
				"id": &types.AttributeValueMemberS{Value: "hot"}, "part": &types.AttributeValueMemberS{Value: "p"},
			},
		})
		return err
	}
	for range PartitionReads {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	if err := read(); !awsclient.IsThrottle(err) {
		t.Errorf("read %d of a second: %v", PartitionReads+1, err)
	}
	if got := c.DynamoDB.Totals()["usage"].Throttled; got != awsclient.Attempts {
		t.Errorf("%d attempts were throttled, want %d", got, awsclient.Attempts)
	}
}
