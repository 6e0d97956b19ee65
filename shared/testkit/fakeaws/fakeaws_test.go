package fakeaws

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
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/awsclient"
)

// A still clock moves only when the test says so.
type still struct {
	now  time.Time
	turn int64
	// one means that all calls have the same caller.
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

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func TestExpressionsAreEvaluated(t *testing.T) {
	t.Parallel()
	sc := scope{
		item: item{
			"a": number("5"), "s": text("mango"), "set": &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
			"yes": &types.AttributeValueMemberBOOL{Value: true},
		},
		names: map[string]string{"#a": "a"},
		values: item{
			":4": number("4"), ":6": number("6"), ":m": text("mango"), ":p": text("ma"), ":2": number("2"),
			":no": &types.AttributeValueMemberBOOL{Value: false}, ":yes": &types.AttributeValueMemberBOOL{Value: true},
		},
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
		"yes = :yes AND yes <> :no":                        true,
	} {
		if got := parseCondition(expression)(sc); got != want {
			t.Errorf("%s evaluates to %v", expression, got)
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

func TestCapacityUnitsFollowSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 1, "7": 2, "-7": 3, "1024": 3, "1000": 2, "0.25": 2} {
		if got := numberSize(text); got != want {
			t.Errorf("the number %s has %d bytes, want %d", text, got, want)
		}
	}
	large := item{"n": text(string(make([]byte, 1024)))}
	for _, c := range []struct{ got, want float64 }{
		{readUnits(0, aws.Bool(true)), 1}, {readUnits(0, nil), 0.5}, {readUnits(4097, aws.Bool(true)), 2},
		{writeUnits(nil, nil), 1}, {writeUnits(large, nil), 2},
	} {
		if c.got != c.want {
			t.Errorf("%v units, want %v", c.got, c.want)
		}
	}
}

// A partition at its limit rejects reads and writes. A call fails only after all its attempts. Other partitions, and
// the next second, are not affected.
func TestHotPartitionRejectsCalls(t *testing.T) {
	t.Parallel()
	c, client, clock := newTest()
	c.DynamoDB.Limit(true)
	add := func(id string) error {
		_, err := client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
			TableName: aws.String("usage"), UpdateExpression: aws.String("ADD n :one"),
			Key: keyOf(id, "day"), ExpressionAttributeValues: item{":one": number("1")},
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
	if got := c.DynamoDB.Totals()["usage"].Throttled; got != awsclient.Attempts {
		t.Errorf("%d attempts were throttled, want %d", got, awsclient.Attempts)
	}
	if err := add("cold"); err != nil {
		t.Errorf("another partition rejects calls: %v", err)
	}
	clock.now = clock.now.Add(time.Second)
	if err := add("hot"); err != nil {
		t.Errorf("the next second: %v", err)
	}
	if h := c.DynamoDB.Hottest()[0]; h.Key != "hot" || h.Writes != PartitionWrites {
		t.Errorf("the hottest partition is %+v", h)
	}
}

// A transaction uses twice the units, is written only once per token, and reports which condition failed.
func TestTransactionsCountTwice(t *testing.T) {
	t.Parallel()
	c, client, _ := newTest()
	put := func(token, condition string) error {
		write := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("usage"), Item: keyOf("a", "p")}}
		if condition != "" {
			write.Put.ConditionExpression = &condition
		}
		_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: &token, TransactItems: []types.TransactWriteItem{write},
		})
		return err
	}
	if err := errors.Join(put("1", ""), put("1", "attribute_not_exists(id)")); err != nil {
		t.Fatal(err)
	}
	if got := c.DynamoDB.Totals()["usage"].Writes; got != 2 {
		t.Errorf("a transaction of one small item used %v units", got)
	}
	var cancelled *types.TransactionCanceledException
	if err := put("2", "attribute_not_exists(id)"); !errors.As(err, &cancelled) ||
		*cancelled.CancellationReasons[0].Code != "ConditionalCheckFailed" {
		t.Errorf("a false condition: %v", err)
	}
}

// If two callers make transactions on one item at the same time, they conflict, and the later one
// is retried. One caller's transactions run one after the other and do not conflict.
func TestConcurrentTransactionsConflict(t *testing.T) {
	t.Parallel()
	c, client, clock := newTest()
	added := 0
	conflictsOf := func(transactions int) int {
		before := c.DynamoDB.Totals()["usage"].Conflicts
		for range transactions { // an account's usage is spread over eight partitions
			added++
			record := usage.Record{
				ID: strconv.Itoa(added), Account: "acme", Model: "m", Day: "2027-01-15", Counts: usage.Counts{Requests: 1},
			}
			if err := dynamo.NewUsage(client, "usage").Add(context.Background(), []usage.Record{record}); err != nil {
				t.Fatal(err)
			}
		}
		return c.DynamoDB.Totals()["usage"].Conflicts - before
	}
	if conflictsOf(41) == 0 {
		t.Error("41 transactions of different callers on eight items had no conflict")
	}
	clock.now = clock.now.Add(time.Minute)
	if n := conflictsOf(1); n != 0 {
		t.Errorf("a minute later: %d conflicts", n)
	}
	clock.one = true
	if n := conflictsOf(40); n != 0 {
		t.Errorf("one caller's transactions: %d conflicts", n)
	}
}
